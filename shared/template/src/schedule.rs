//! The expressions of EventBridge Scheduler: `rate(5 minutes)` and `cron(15 4 * * ? *)`.
//!
//! Settings have another format for durations (`500ms`, `90d`), which `base::wait` reads.
//! <https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html>

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A schedule's expression without a fixed interval.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule `{0}` is neither a rate of minutes, hours or days nor a cron that runs once a day")]
pub struct ScheduleError(String);

/// Reads a schedule's interval: `rate(5 minutes)`, or once a day, `cron(15 4 * * ? *)`.
///
/// # Errors
/// If the string is anything else: other crons have no fixed interval.
pub(crate) fn interval(expression: &str) -> Result<Duration, ScheduleError> {
    let seconds = expression.strip_suffix(')').and_then(|expression| {
        let (kind, inner) = expression.split_once('(')?;
        match (kind, inner.split(' ').collect::<Vec<_>>().as_slice()) {
            ("rate", [number, unit]) => {
                let unit = match *unit {
                    "minute" | "minutes" => MINUTE,
                    "hour" | "hours" => HOUR,
                    "day" | "days" => DAY,
                    _ => return None,
                };
                number.parse::<u64>().ok()?.checked_mul(unit)
            }
            ("cron", [minute, hour, "*", "*", "?", "*"]) => {
                let below = |text: &str, limit| text.parse::<u8>().is_ok_and(|number| number < limit);
                (below(minute, 60) && below(hour, 24)).then_some(DAY)
            }
            _ => None,
        }
    });
    seconds.map(Duration::from_secs).ok_or_else(|| ScheduleError(expression.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_daily_crons_are_read() {
        for (expression, seconds) in [
            ("rate(1 minute)", 60),
            ("rate(2 hours)", 7_200),
            ("rate(3 days)", 3 * 86_400),
            ("cron(15 4 * * ? *)", 86_400),
        ] {
            assert_eq!(interval(expression), Ok(Duration::from_secs(seconds)), "{expression}");
        }
    }

    #[test]
    fn an_expression_without_a_fixed_interval_is_refused_by_name() {
        for other in [
            "cron(0/5 * * * ? *)",
            "cron(15 4 ? * MON *)",
            "cron(15 24 * * ? *)",
            "rate()",
            "rate(1 week)",
            "rate(18446744073709551615 hours)",
            "5m",
            "at(x)",
            "",
        ] {
            let error = interval(other).expect_err(other).to_string();
            assert!(error.contains(&format!("`{other}`")), "{error}");
        }
    }
}
