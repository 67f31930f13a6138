//! How long an event is stored, if its publisher wants less than the deployment's retention: `retentionDays`. It
//! determines the event's `expiresAt`, which its body, heads and attempts copy. The table removes items days late, so
//! reads and lists leave out expired ones.

use std::time::Duration;

use problem::{JsonBody, Rule};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes an event's retention, in days. `longest` is the deployment's retention, which an event may only shorten.
pub(super) fn take(body: &mut JsonBody<'_>, longest: Duration) -> Option<u32> {
    let most = longest.as_secs() / DAY.as_secs();
    let what = match most {
        0 => "omitted: this deployment keeps events for less than a day".to_owned(),
        most => format!("a whole number of days from 1 to {most}, for which this deployment keeps events"),
    };
    let days = body.optional::<u64>("retentionDays", &what)?;
    let is_within = (1..=most).contains(&days);
    let checked = u32::try_from(days).ok().filter(|_| is_within).ok_or_else(|| format!("must be {what}"));
    body.violations.note("retentionDays", Rule::OutOfRange, checked)
}

/// The retention of this many days.
pub(super) fn of_days(days: u32) -> Duration {
    DAY * days
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Problem;

    fn taken(json: &str, longest: Duration) -> Result<Option<u32>, Problem> {
        let mut body = JsonBody::read(json.as_bytes())?;
        let retention = take(&mut body, longest);
        body.finish().map(|()| retention)
    }

    #[test]
    fn an_event_is_kept_for_whole_days_and_no_longer_than_others() {
        let longest = DAY * 90;
        assert_eq!(taken("{}", longest).expect("optional"), None);
        for days in [1, 30, 90] {
            let json = format!(r#"{{"retentionDays":{days}}}"#);
            assert_eq!(taken(&json, longest).expect(&json), Some(days), "{json}");
        }
        for bad in ["0", "91", "-1", "1.5", "\"30\"", "null", "true", "18446744073709551615", "1e400"] {
            let json = format!(r#"{{"retentionDays":{bad}}}"#);
            let problem = taken(&json, longest).expect_err(&json);
            let violation = &problem.violations()[0];
            assert_eq!(violation.name(), "retentionDays", "{json}");
            assert!(violation.detail.contains("1 to 90"), "{violation:?}");
        }
    }

    #[test]
    fn a_deployment_that_keeps_events_for_hours_refuses_days() {
        let problem = taken(r#"{"retentionDays":1}"#, DAY / 2).expect_err("refused");
        assert!(problem.properties["violations"].to_string().contains("less than a day"));
    }
}
