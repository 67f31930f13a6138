//! `Retry-After` (RFC 9110 §10.2.3), in all formats that servers send.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, civil::DateTime, fmt::rfc2822, tz::TimeZone};

use base::Time;

/// The longest wait, in seconds. A larger number is probably a time since 1970, which the header does not allow.
const MAX_SECONDS: f64 = 10.0 * 365.25 * 24.0 * 60.0 * 60.0;

/// The wait that a `Retry-After` requests; `None` if it cannot be parsed. A date in the past requests no wait.
pub(crate) fn wait(header: &str, now: Time) -> Option<Duration> {
    let text = header.trim().trim_matches('"').trim();
    if text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return seconds(text);
    }
    date(text).map(|date| date.since(now))
}

/// A number of seconds, with or without decimals, rounded up to milliseconds.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    let whole_millis = Duration::try_from_secs_f64((seconds * 1_000.0).ceil() / 1_000.0).ok()?;
    (seconds <= MAX_SECONDS).then_some(whole_millis)
}

/// A date in one of HTTP's three forms, also with `UTC` or a numeric offset, or in RFC 3339 or ISO 8601. Without an
/// offset it is in UTC.
fn date(text: &str) -> Option<Time> {
    let of_http = |text: &str| {
        let date = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(date.as_millis()).ok()
    };
    let of_http_in_utc = || of_http(&format!("{} GMT", text.strip_suffix(" UTC")?));
    let of_mail = || rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok();
    let without_offset = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    let millis = of_http(text)
        .or_else(of_http_in_utc)
        .or_else(|| of_mail().map(Timestamp::as_millisecond))
        .or_else(|| text.parse().ok().map(Timestamp::as_millisecond))
        .or_else(|| without_offset().map(|date| date.timestamp().as_millisecond()))?;
    Some(Time::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000); // 2026-11-20T09:45:00Z, a Friday

    #[test]
    fn every_form_that_servers_send_is_read() {
        for (header, millis) in [
            ("120", 120_000),
            (" 120 ", 120_000),
            ("\"120\"", 120_000),
            ("0", 0),
            ("1.5", 1_500),
            ("0.5", 500),
            ("0.0001", 1),
            ("2.0", 2_000),
            ("86400.0", 86_400_000),
            ("Fri, 20 Nov 2026 09:47:00 GMT", 120_000),
            ("Friday, 20-Nov-26 09:47:00 GMT", 120_000),
            ("Fri Nov 20 09:47:00 2026", 120_000),
            ("Fri, 20 Nov 2026 09:47:00 UTC", 120_000),
            ("Friday, 20-Nov-26 09:47:00 UTC", 120_000),
            ("Fri, 20 Nov 2026 09:47:00 +0000", 120_000),
            ("Fri, 20 Nov 2026 10:47:00 +0100", 120_000),
            ("Fri, 20 Nov 2026 04:47:00 -0500", 120_000),
            ("2026-11-20T09:47:00Z", 120_000),
            ("2026-11-20T09:47:00.250Z", 120_250),
            ("2026-11-20T10:47:00+01:00", 120_000),
            ("2026-11-20 09:47:00Z", 120_000),
            ("2026-11-20T09:47:00", 120_000),
            ("2026-11-20 09:47:00", 120_000),
            ("\"2026-11-20T09:47:00Z\"", 120_000),
            ("Fri, 20 Nov 2020 09:47:00 GMT", 0),
            ("2020-11-20T09:47:00Z", 0),
        ] {
            assert_eq!(wait(header, NOW), Some(Duration::from_millis(millis)), "{header}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_asks_for_nothing() {
        for header in [
            "",
            " ",
            "\"\"",
            "-3",
            "-0.5",
            "+5",
            "1e3",
            "inf",
            "NaN",
            ".5",
            "1.2.3",
            "5 s",
            "soon",
            "1795168020",
            "1795168020000",
            "99999999999999999999999999",
            "Fri, 20 Nov 2026",
            "20/11/2026 09:47",
        ] {
            assert_eq!(wait(header, NOW), None, "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(header in "\\PC{0,40}") {
            let _ = wait(&header, NOW);
        }

        #[test]
        fn no_number_makes_the_reader_panic(header in "[0-9.\"TZ:+-]{0,30}") {
            let _ = wait(&header, NOW);
        }
    }
}
