//! The only reader of the wall clock, and the format of times on the wire and in the table.

use std::{
    borrow::Cow,
    fmt,
    ops::{Add, Sub},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use jiff::{Timestamp, civil::DateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A source of the time. Use cases take it as an argument, so that tests can set it.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
}

/// A clock that can be shared between tasks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
    fn now(&self) -> Time {
        Time(Timestamp::now().as_millisecond())
    }
}

/// A moment in milliseconds since the Unix epoch. Written as RFC 3339 UTC with exactly three decimals
/// (`2026-11-20T09:45:00.123Z`), so that the strings sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// The first and last moments with a four-digit year that `jiff` can represent.
const FIRST: Time = Time(-62_167_219_200_000); // 0000-01-01T00:00:00Z
const LAST: Time = Time(253_402_207_200_000); // 9999-12-30T22:00:00Z

impl Time {
    /// The moment this many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch: the form of JWT's NumericDate, of signatures and of DynamoDB's TTL.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The day in UTC: `2026-11-20`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// Parses a time from a client: RFC 3339 with a `T`, and a `Z` or an offset; both letters may be lower case (§5.6).
    /// The offset may lack its colon, since Python's `%z` writes none. Digits beyond milliseconds are cut off, since
    /// Python, Java and Go write finer times by default. Times outside the supported range become the first or the last
    /// supported time, since clients use them to mean "always" and "never".
    pub fn of_client(text: &str) -> Option<Self> {
        let text = text.to_ascii_uppercase();
        let (moment, rest) = text.split_at_checked(19)?;
        let form = moment.bytes().zip(*b"0000-00-00T00:00:00").all(|(byte, model)| match model {
            b'0' => byte.is_ascii_digit(),
            _ => byte == model,
        });
        let zone = rest.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
        let fraction = rest.strip_suffix(zone)?;
        let is_fraction = fraction.is_empty() || fraction.len() > 1 && fraction.rfind('.') == Some(0);
        let zone = with_colon(zone);
        let zoned = zone == "Z" || zone.len() == 6 && zone.starts_with(['+', '-']) && zone.get(3..4) == Some(":");
        if !(form && is_fraction && zoned) {
            return None;
        }
        moment.parse::<DateTime>().ok()?;
        let never = || {
            let zone_exists = format!("2000-01-01T00:00:00{zone}").parse::<Timestamp>().is_ok();
            (zone_exists && moment >= "9999-12-29").then_some(LAST)
        };
        let to_the_millisecond = &fraction[..fraction.len().min(4)];
        format!("{moment}{to_the_millisecond}{zone}")
            .parse()
            .ok()
            .or_else(never)
            .map(|time: Self| time.clamp(FIRST, LAST))
    }

    /// The duration from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// An offset with its colon: `+01:00` for `+0100`. Other strings stay unchanged.
fn with_colon(zone: &str) -> Cow<'_, str> {
    match zone.split_at_checked(3) {
        Some((hours, minutes)) if minutes.len() == 2 && !zone.contains(':') => format!("{hours}:{minutes}").into(),
        _ => zone.into(),
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates far beyond any date with a four-digit year.
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Saturates far before any date with a four-digit year.
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Time {
    /// Never fails: a time whose year does not have four digits is written as the nearest one that does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = (*self).clamp(FIRST, LAST);
        let timestamp = Timestamp::from_millisecond(written.0).expect("it is between the first and the last");
        write!(f, "{timestamp:.3}")
    }
}

/// A string that is not an RFC 3339 time.
#[derive(Debug, thiserror::Error)]
#[error("not a time in RFC 3339, such as 2026-11-20T09:45:00.123Z")]
pub struct TimeError(#[source] jiff::Error);

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Ok(Self(text.parse::<Timestamp>().map_err(TimeError)?.as_millisecond()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Sleeps for a duration. The service sleeps only through this function, so that a search finds every pause. Anything
/// that depends on the time takes a [`Time`] instead, so that no test has to wait.
#[expect(clippy::disallowed_methods, reason = "this is the one place that pauses")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_is_written_with_three_decimals_and_read_back() {
        for (millis, text) in [
            (1_795_167_900_123, "2026-11-20T09:45:00.123Z"),
            (1_795_167_900_000, "2026-11-20T09:45:00.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Time::from_millis(millis).to_string(), text);
            assert_eq!(text.parse::<Time>().expect("a time"), Time::from_millis(millis));
        }
    }

    #[test]
    fn a_time_of_a_client_is_read_in_rfc_3339_and_cut_to_milliseconds() {
        let time = Time::from_millis(1_795_167_900_120);
        for text in [
            "2026-11-20T09:45:00.12Z",
            "2026-11-20T09:45:00.120Z",
            "2026-11-20T11:15:00.120+01:30",
            "2026-11-20T09:45:00.120999+00:00",
            "2026-11-20T09:45:00.120999999Z",
            "2026-11-20T09:45:00.12099999999999999999Z",
            "2026-11-20t09:45:00.120z",
            "2026-11-20t11:15:00.120+01:30",
            "2026-11-20T09:45:00.120+0000",
            "2026-11-20T11:15:00.120999+0130",
            "2026-11-20T04:45:00.12-0500",
        ] {
            assert_eq!(Time::of_client(text), Some(time), "{text}");
        }
        assert_eq!(Time::of_client("1969-12-31T23:59:59.9999Z"), Some(Time::from_millis(-1)), "cut, and not rounded");
        assert_eq!(Time::of_client("2026-11-20T04:45:00-05:00"), Some(Time::from_millis(1_795_167_900_000)));
        let never = Time::of_client("9999-12-31T23:59:59.999Z").expect("a time");
        assert!(never > time && never.to_string().starts_with("9999-12-30"));
        for text in [
            "",
            "2026-11-20",
            "2026-11-20T09:45Z",
            "2026-11-20T09:45:00",
            "2026-11-20 09:45:00Z",
            "2026-11-20T09:45:00.Z",
            "2026-11-20T09:45:00.1234",
            "2026-11-20T09:45:00..1234Z",
            "2026-11-20T09:45:00.1.2Z",
            "2026-11-20T09:45:00,120Z",
            "2026-11-20T09:45:00+01",
            "2026-11-20T09:45:00+1:00",
            "2026-11-20T09:45:00+010000",
            "2026-11-20T09:45:00+-100",
            "2026-11-20T09:45:00+9999",
            "2026-11-20T09:45:00+0\u{e9}1",
            "2026-11-20T09:45:00x+\u{e9}1",
            "2026-11-20T09:45:00 01:00",
            "2026-11-20T09:45:00Z[UTC]",
            "2026-02-30T09:45:00Z",
            "2026-11-20T25:45:00Z",
            "9999-12-31T25:45:00Z",
            "9999-12-31T23:45:00+99:99",
            "+02026-11-20T09:45:00Z",
            "1795167900",
            "2026-11-20T09:45:0\u{661}Z",
            "now",
        ] {
            assert_eq!(Time::of_client(text), None, "{text}");
        }
    }

    #[test]
    fn the_order_of_texts_is_the_order_of_times() {
        let early = Time::from_millis(1_795_167_899_999);
        let late = early + Duration::from_millis(1);
        assert!(early.to_string() < late.to_string());
        assert_eq!(late.since(early), Duration::from_millis(1));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn the_edges_of_time_are_written_and_not_refused() {
        let first = "0000-01-01T00:00:00.000Z";
        let last = "9999-12-30T22:00:00.000Z";
        for (text, written) in [
            ("9999-12-30T22:00:00.500Z", last),
            ("9999-12-30T22:00:00.999Z", last),
            ("9999-12-30T22:00:01Z", last),
            ("9999-12-31T23:59:60-23:59", last),
            ("9999-12-29T23:59:59-23:59", last),
            ("9999-12-30T21:59:59.999Z", "9999-12-30T21:59:59.999Z"),
            ("0000-01-01T00:00:00+23:59", first),
            ("0000-01-01T00:00:00.001Z", "0000-01-01T00:00:00.001Z"),
        ] {
            assert_eq!(Time::of_client(text).map(|time| time.to_string()).as_deref(), Some(written), "{text}");
        }
        for (millis, written) in [(i64::MAX, last), (LAST.0 + 1, last), (FIRST.0 - 1, first), (i64::MIN, first)] {
            assert_eq!(Time::from_millis(millis).to_string(), written);
        }
    }

    proptest! {
        #[test]
        fn any_time_of_a_client_can_be_written_and_read_back(
            text in "(000[0-4]|[12][0-9]{3}|999[5-9])-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]{1,12})?(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])",
        ) {
            // Only a day that does not exist in its month is refused.
            let civil = text[..19].parse::<DateTime>().is_ok();
            let time = Time::of_client(&text);
            prop_assert_eq!(time.is_some(), civil, "{}", &text);
            if let Some(time) = time {
                let written = time.to_string();
                prop_assert_eq!(written.len(), 24, "{}", &written);
                prop_assert_eq!(Time::of_client(&written), Some(time));
                prop_assert_eq!(written.parse::<Time>().ok(), Some(time));
            }
        }

        #[test]
        fn the_order_of_all_texts_is_the_order_of_times(one in any::<i64>(), other in any::<i64>()) {
            let [one, other] = [one, other].map(Time::from_millis);
            prop_assert!(one.min(other).to_string() <= one.max(other).to_string());
        }
    }
}
