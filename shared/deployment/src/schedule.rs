//! Durations as settings and schedules write them: `500ms`, `1s`, `5m`, `2h`, and EventBridge's `rate(1 minute)` and
//! `cron(15 4 * * ? *)`.

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

/// Reads how often a schedule of EventBridge comes: `rate(5 minutes)`, or once a day, `cron(15 4 * * ? *)`. Other crons
/// have no fixed interval and are refused.
pub(crate) fn parse_schedule(expression: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(expression.to_owned());
    let (kind, inner) =
        expression.strip_suffix(')').and_then(|expression| expression.split_once('(')).ok_or_else(wrong)?;
    match (kind, inner.split(' ').collect::<Vec<_>>().as_slice()) {
        ("rate", [number, unit]) => {
            let unit = match *unit {
                "minute" | "minutes" => "m",
                "hour" | "hours" => "h",
                "day" | "days" => "d",
                _ => return Err(wrong()),
            };
            parse_duration(&format!("{number}{unit}")).map_err(|_| wrong())
        }
        ("cron", [minute, hour, "*", "*", "?", "*"])
            if minute.parse::<u8>().is_ok_and(|minute| minute < 60)
                && hour.parse::<u8>().is_ok_and(|hour| hour < 24) =>
        {
            Ok(Duration::from_secs(24 * 60 * 60))
        }
        _ => Err(wrong()),
    }
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
    fn rates_are_read_and_of_crons_those_that_come_once_a_day() {
        assert_eq!(parse_schedule("rate(1 minute)"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_schedule("rate(2 hours)"), Ok(Duration::from_secs(7_200)));
        assert_eq!(parse_schedule("cron(15 4 * * ? *)"), Ok(Duration::from_secs(86_400)));
        for other in [
            "cron(0/5 * * * ? *)",
            "cron(15 4 ? * MON *)",
            "cron(15 24 * * ? *)",
            "rate()",
            "rate(1 week)",
            "at(x)",
            "",
        ] {
            assert!(parse_schedule(other).is_err(), "{other} was read");
        }
    }
}
