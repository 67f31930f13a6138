//! A webhook's rate limit: the maximum number of attempts per second to its endpoint.

use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

use base::Time;
use problem::{Rule, Violations, plain_integer};

/// The highest limit. A webhook that could take more needs no limit: one dispatch run has at most 20 concurrent
/// attempts of a webhook.
const MAX: u32 = 100;

/// Why a pull webhook has no limit.
pub const NOT_PULLED: &str = "must be omitted: the readers of a pull webhook set their own pace";

/// A number of attempts per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerSecond(NonZeroU32);

impl PerSecond {
    /// The number, from 1 to 100.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The time between two attempts.
    pub fn interval(self) -> Duration {
        Duration::from_secs(1) / self.get()
    }
}

/// A webhook's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// The limit.
    pub(crate) per_second: PerSecond,
    /// When it was set. A slot that was reserved under another limit is void.
    pub(crate) since: Time,
}

/// Reads a limit; `null` means none, and a bad value is a violation.
pub fn take(field: &'static str, json: &str, violations: &mut Violations) -> Option<PerSecond> {
    if json == "null" {
        return None;
    }
    // Clients that have only doubles write `5.0`.
    let limit = plain_integer(json).and_then(|limit| limit.parse::<NonZeroU32>().ok());
    let limit = limit.filter(|limit| limit.get() <= MAX).map(PerSecond);
    if limit.is_none() {
        let rule = if plain_integer(json).is_some() { Rule::OutOfRange } else { Rule::InvalidType };
        violations.add(field, rule, format!("must be an integer from 1 to {MAX}, or null for no limit"));
    }
    limit
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn per_second(limit: u32) -> PerSecond {
        PerSecond(NonZeroU32::new(limit).expect("at least one"))
    }

    #[test]
    fn a_limit_is_an_integer_from_1_to_100_and_null_is_none() {
        let read = |json: &str| {
            let mut violations = Violations::default();
            let limit = take("limit", json, &mut violations);
            if violations.into_list().is_empty() { Ok(limit.map(PerSecond::get)) } else { Err(()) }
        };
        assert_eq!([read("null"), read("1"), read("100")], [Ok(None), Ok(Some(1)), Ok(Some(100))]);
        assert_eq!([read("5.0"), read("1e1")], [Ok(Some(5)), Ok(Some(10))], "an integer in JSON Schema");
        for bad in ["0", "0.0", "101", "-1", "1.5", "100.5", "1e3", "\"5\"", "true", "[1]", "{}"] {
            assert_eq!(read(bad), Err(()), "{bad}");
        }
    }

    #[test]
    fn attempts_are_spaced_evenly() {
        assert_eq!(per_second(1).interval(), Duration::from_secs(1));
        assert_eq!(per_second(100).interval(), Duration::from_millis(10));
    }
}
