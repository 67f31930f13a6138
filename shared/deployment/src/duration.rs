//! Durations as settings and schedules write them: `500ms`, `1s`, `5m`, `2h`, and EventBridge's `rate(1 minute)`.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a whole number and ms, s, m, h or d, such as 500ms or 5m")]
pub struct DurationError(String);

/// Reads a whole number and its unit: `500ms`, `1s`, `5m`, `2h`, `1d`.
///
/// # Errors
/// When the text is anything else.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let unit_at = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or_else(wrong)
}

/// Reads an EventBridge rate expression, `rate(5 minutes)`; a `cron(…)` has no fixed interval and is refused.
pub(crate) fn parse_rate(expression: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(expression.to_owned());
    let (number, unit) = expression
        .strip_prefix("rate(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|inner| inner.split_once(' '))
        .ok_or_else(wrong)?;
    let unit = match unit {
        "minute" | "minutes" => "m",
        "hour" | "hours" => "h",
        "day" | "days" => "d",
        _ => return Err(wrong()),
    };
    parse_duration(&format!("{number}{unit}")).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("1s", 1_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "5", "s", "-1s", "1.5s", "1 s", "5 minutes", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(parse_duration(text).is_err(), "{text} was read");
        }
    }

    #[test]
    fn rates_are_read_and_crons_are_not() {
        assert_eq!(parse_rate("rate(1 minute)"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_rate("rate(2 hours)"), Ok(Duration::from_secs(7_200)));
        assert!(parse_rate("cron(0 3 * * ? *)").is_err());
    }
}
