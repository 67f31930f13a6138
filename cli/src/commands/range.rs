//! The time range of `recover` and `replay`.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::times::time;

/// The range, as members of the API.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The start of the range, such as 2026-11-20T22:00:00Z, or a duration before now such as 90s, 5m, 4h or 2d.
    #[arg(long = "from", value_name = "TIME", value_parser = time)]
    created_from: Timestamp,
    /// The end of the range, which is not part of it. Defaults to now.
    #[arg(long = "until", value_name = "TIME", value_parser = time)]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_until: Option<Timestamp>,
}

impl Range {
    /// The options for the same range, with times instead of durations.
    pub fn options(&self) -> String {
        let until = self.created_until.map(|until| format!(" --until {until:.3}")).unwrap_or_default();
        format!("--from {:.3}{until}", self.created_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_name_the_same_times_again() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let created_from = at("2026-11-20T05:00:00.123456789Z");
        assert_eq!(Range { created_from, created_until: None }.options(), "--from 2026-11-20T05:00:00.123Z");
        let range = Range { created_from, created_until: Some(at("2026-11-20T07:00:00+01:00")) };
        assert_eq!(range.options(), "--from 2026-11-20T05:00:00.123Z --until 2026-11-20T06:00:00.000Z");
    }
}
