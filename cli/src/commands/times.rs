//! Durations and times in options.

use std::time::Duration;

use jiff::Timestamp;

use crate::machine;

const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// Reads a duration such as `90s`, `5m`, `4h` or `2d`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = UNITS.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.trim().strip_suffix(*unit)?.parse().ok()?;
        Some(u64::from(number) * seconds)
    });
    seconds.map(Duration::from_secs).ok_or_else(|| "it is not a duration: write it as 90s, 5m, 4h or 2d".to_owned())
}

/// Reads a time: in RFC 3339, or as the duration since then.
pub fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = duration(text) {
        return machine::now().checked_sub(ago).map_err(|_| "it is too long ago".to_owned());
    }
    let wrong = |_| "it is not a time: write it as 2026-11-20T22:00:00Z, or how long ago it was, such as 3h".to_owned();
    text.trim().parse().map_err(wrong)
}

/// Reads a time in the future: in RFC 3339, or as the duration until then.
pub fn future_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(from_now) = duration(text) {
        return machine::now().checked_add(from_now).map_err(|_| "it is too far away".to_owned());
    }
    let wrong = |_| "it is not a time: write it as 2026-11-21T06:00:00Z, or how long from now, such as 3h".to_owned();
    text.trim().parse().map_err(wrong)
}

/// A duration for people, in its two largest units.
pub fn shown_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_one_number_and_one_unit() {
        for (text, seconds) in [("90s", 90), ("5m", 300), (" 4h", 14_400), ("2d", 172_800), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "5", "m", "-5m", "5 m", "1h30m", "5ü", "99999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_may_be_given_as_the_duration_since_then() {
        let given = |text: &str| time(text).map(|time| time.to_string());
        assert_eq!(given("2026-11-20T23:00:00+01:00").as_deref(), Ok("2026-11-20T22:00:00Z"));
        let begun = time("3h").expect("a duration");
        let ago = machine::now().duration_since(begun).as_secs();
        assert!((10_800..10_900).contains(&ago), "{ago}");
        assert!(given("yesterday").is_err() && given("2026-11-20T22:00:00").is_err());
    }

    #[test]
    fn a_future_time_may_be_given_as_the_duration_until_then() {
        let given = |text: &str| future_time(text).map(|time| time.to_string());
        assert_eq!(given("2026-11-21T06:00:00Z").as_deref(), Ok("2026-11-21T06:00:00Z"));
        let left = future_time("3h").expect("a duration").duration_since(machine::now()).as_secs();
        assert!((10_700..=10_800).contains(&left), "{left}");
        assert!(given("tomorrow").is_err());
    }

    #[test]
    fn a_duration_is_shown_in_its_two_largest_units() {
        for (seconds, shown) in
            [(0, "0 s"), (59, "59 s"), (301, "5 min 1 s"), (11_700, "3 h 15 min"), (180_000, "2 d 2 h")]
        {
            assert_eq!(shown_duration(Duration::from_secs(seconds)), shown);
        }
    }
}
