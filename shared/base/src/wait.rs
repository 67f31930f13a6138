//! Durations in settings, such as `30s`.

use std::{str::FromStr, time::Duration};

/// The units of a duration, with the milliseconds of each. A test compares them with the patterns of template.yaml.
pub const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000), ("d", 24 * 60 * 60 * 1000)];

/// Parses a number with one of the [`UNITS`].
pub fn parse(text: &str) -> Option<Duration> {
    let unit = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))
}

/// A duration in a setting, such as `30s` or `90d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

/// A string that is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a number with a unit, at most 10 years, such as `500ms`, `30s`, `5m`, `2h` or `90d`")]
pub struct WaitError;

impl FromStr for Wait {
    type Err = WaitError;

    fn from_str(text: &str) -> Result<Self, WaitError> {
        const LONGEST: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
        parse(text.trim()).filter(|wait| *wait <= LONGEST).map(Self).ok_or(WaitError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("1s", 1_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(text.parse(), Ok(Wait(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5s", "1 s", "5 minutes", "99999999999999999999s", "18446744073709551615h"]
        {
            assert_eq!(text.parse::<Wait>(), Err(WaitError), "{text}");
        }
    }
}
