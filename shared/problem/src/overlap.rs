//! The overlap of a rotation: how long the replaced secret stays valid after the new one is requested.

use std::time::Duration;

use crate::{JsonBody, Problem, Rule};

/// The default: a day.
const DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest overlap, in seconds: seven days.
const MAX: u32 = 7 * 24 * 60 * 60;

/// Reads the overlap from a body without other members. The body may be empty.
pub fn overlap(body: &[u8]) -> Result<Duration, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(DEFAULT);
    }
    let mut body = JsonBody::read(body)?;
    let overlap = take(&mut body);
    body.finish()?;
    Ok(overlap)
}

/// Takes the overlap from a body that may have other members. An invalid one is added to the body's violations.
pub fn take(body: &mut JsonBody<'_>) -> Duration {
    let wanted = format!("a number of seconds, an integer from 0 to {MAX}");
    let seconds = body.optional::<u32>("overlapSeconds", &wanted);
    if seconds.is_some_and(|seconds| seconds > MAX) {
        body.violations.add("overlapSeconds", Rule::OutOfRange, format!("must be {wanted}"));
    }
    seconds.map_or(DEFAULT, |seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_is_a_day_unless_the_request_says_otherwise() {
        for (body, seconds) in [
            ("", 86_400),
            (" ", 86_400),
            ("{}", 86_400),
            (r#"{"overlapSeconds":0}"#, 0),
            (r#"{"overlapSeconds":604800}"#, 604_800),
            (r#"{"overlapSeconds":3600.0}"#, 3600),
            (r#"{"overlapSeconds":1e3}"#, 1000),
        ] {
            assert_eq!(overlap(body.as_bytes()).expect(body).as_secs(), seconds, "{body}");
        }
        for bad in ["604801", "604801.0", "-1", "1.5", "null", "\"1\"", "99999999999", "1e-400"] {
            let body = format!(r#"{{"overlapSeconds":{bad}}}"#);
            let problem = overlap(body.as_bytes()).expect_err(bad);
            assert_eq!(problem.violations()[0].pointer, "overlapSeconds".into(), "{bad}");
        }
        for bad in ["[]", "null", r#"{"overlap":1}"#] {
            assert!(overlap(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
