//! A webhook's attempt settings: how long its endpoint may take to respond, and how often a failed attempt is retried.
//! The table stores only values that differ from the default.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use problem::{Rule, Violations, plain_integer};

/// The longest timeout, in seconds, which is the default: the limit of `outbound::Limits::default`.
const LONGEST: u32 = 15;

/// Why a pull webhook has no timeout.
pub const NO_TIMEOUT: &str = "must be omitted: a pull webhook sends no requests";
/// Why a pull webhook has no `retries` setting.
pub const NO_RETRIES: &str = "must be omitted: a pull webhook has the default schedule";

/// How long an endpoint may take to respond, from 1 to 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutSeconds(u32);

impl TimeoutSeconds {
    /// The number of seconds.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// An exchange's timeout.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }

    /// Reads a timeout; a bad value is a violation.
    pub fn take(field: &'static str, json: &str, violations: &mut Violations) -> Option<Self> {
        // Clients that have only doubles write `5.0`.
        let integer = plain_integer(json);
        let seconds = integer.as_ref().and_then(|seconds| seconds.parse().ok());
        let timeout = seconds.filter(|seconds| (1..=LONGEST).contains(seconds)).map(Self);
        if timeout.is_none() {
            let rule = if integer.is_some() { Rule::OutOfRange } else { Rule::InvalidType };
            violations.add(field, rule, format!("must be an integer from 1 to {LONGEST}"));
        }
        timeout
    }

    /// Whether it is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for TimeoutSeconds {
    fn default() -> Self {
        Self(LONGEST)
    }
}

/// How a failed attempt is retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retries {
    /// The deployment's schedule.
    #[default]
    Default,
    /// The part of the deployment's schedule that falls within an hour.
    Short,
    /// No retries: the first attempt is the last.
    None,
}

impl Retries {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Short => "short",
            Self::None => "none",
        }
    }

    /// Whether this is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn timeout(seconds: u32) -> TimeoutSeconds {
        TimeoutSeconds(seconds)
    }

    #[test]
    fn a_timeout_is_an_integer_from_1_to_15() {
        let read = |json: &str| {
            let mut violations = Violations::default();
            TimeoutSeconds::take("timeoutSeconds", json, &mut violations).map(TimeoutSeconds::get)
        };
        assert_eq!([read("1"), read("5.0"), read("15")], [Some(1), Some(5), Some(15)]);
        for bad in ["0", "16", "-1", "1.5", "\"5\"", "null", "true", "[1]", "{}", "4294967297"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_default_timeout_is_the_limit_of_an_exchange() {
        assert_eq!(TimeoutSeconds::default().duration(), outbound::Limits::default().whole);
    }

    #[test]
    fn retries_have_the_same_names_on_the_wire_and_in_the_table() {
        for retries in [Retries::Default, Retries::Short, Retries::None] {
            assert_eq!(serde_json::to_value(retries).expect("JSON"), retries.as_str());
        }
    }
}
