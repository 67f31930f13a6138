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

    /// The options for the range up to now, unless it has another end.
    pub fn options_until(&self, now: Timestamp) -> String {
        let created_until = Some(self.created_until.unwrap_or(now));
        Self { created_from: self.created_from, created_until }.options()
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
        let until_now = Range { created_from, created_until: None }.options_until(at("2026-11-20T06:00:00Z"));
        let range = Range { created_from, created_until: Some(at("2026-11-20T07:00:00+01:00")) };
        let options = "--from 2026-11-20T05:00:00.123Z --until 2026-11-20T06:00:00.000Z";
        assert_eq!((range.options().as_str(), until_now.as_str()), (options, options));
        assert_eq!(range.options_until(at("2026-11-20T09:00:00Z")), options);
    }
}
