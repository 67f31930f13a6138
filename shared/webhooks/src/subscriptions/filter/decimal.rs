//! JSON numbers, compared exactly: a double would confuse 1152921504606846977 with its neighbour.

use std::cmp::Ordering;

use serde_json::value::RawValue;

/// The text of a JSON number as a decimal. Different ways to write the same number are equal: 10.50, 10.5 and 1.05e1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// The significant digits, without zeros at either end; empty for zero.
    digits: Box<str>,
    /// The power of ten of the first digit; 0 for zero.
    magnitude: i64,
}

impl Decimal {
    /// Reads the text of a JSON number, which the caller's parser has accepted. An exponent of more than 18 digits
    /// counts as the largest one.
    pub fn read(number: &str) -> Self {
        let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: String = [whole, fraction].concat();
        let significant = all.trim_start_matches('0');
        let leading = i64::try_from(all.len() - significant.len()).unwrap_or(i64::MAX);
        let digits = significant.trim_end_matches('0');
        if digits.is_empty() {
            return Self { is_negative: false, digits: "".into(), magnitude: 0 };
        }
        let before_point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
        Self { is_negative, digits: digits.into(), magnitude: exponent_of(exponent) + before_point - 1 - leading }
    }

    /// The number in a string such as `830.00`; `None` if the string is not a JSON number.
    pub fn of_text(text: &str) -> Option<Self> {
        let is_number = text.ends_with(|last: char| last.is_ascii_digit())
            && text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = is_number.then(|| serde_json::from_str::<&RawValue>(text).ok())??;
        Some(Self::read(number.get()))
    }

    /// The shortest way to write the number without an exponent, such as `20417` or `-0.5`; `None` if it has more than
    /// `longest` characters.
    pub fn plain(&self, longest: usize) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        // A small number has zeros before its digits, and a large one after them. They are counted before they are
        // written, since an exponent of a few characters can mean any number of zeros.
        let zeros_before = usize::try_from((-self.magnitude).max(0)).ok()?;
        let before_point = usize::try_from(self.magnitude.max(0)).ok()?.checked_add(1)?;
        if zeros_before.max(before_point) > longest {
            return None;
        }
        let digits = format!("{}{}", "0".repeat(zeros_before), self.digits);
        let sign = if self.is_negative { "-" } else { "" };
        let text = match digits.split_at_checked(before_point) {
            None | Some((_, "")) => format!("{sign}{digits:0<before_point$}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        };
        (text.len() <= longest).then_some(text)
    }

    /// Whether a double represents every integer of this magnitude exactly: up to ±2⁵³.
    pub fn is_up_to_exact_double(&self) -> bool {
        self.cmp_absolute(&Self::read("9007199254740992")) != Ordering::Greater
    }

    fn cmp_absolute(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Digits without zeros at their ends compare like strings.
            (false, false) => self.magnitude.cmp(&other.magnitude).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.cmp_absolute(other),
            (true, true) => other.cmp_absolute(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The exponent. Beyond 18 digits, the largest or smallest one of 18 digits, so that adding lengths cannot overflow.
fn exponent_of(text: &str) -> i64 {
    const LARGEST: i64 = 999_999_999_999_999_999;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    let exponent = if digits.len() > 18 { LARGEST } else { digits.parse().unwrap_or(0) };
    if is_negative { -exponent } else { exponent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compared(one: &str, other: &str) -> Ordering {
        Decimal::read(one).cmp(&Decimal::read(other))
    }

    #[test]
    fn different_texts_of_one_number_are_equal() {
        for texts in [
            &["10.5", "10.50", "1.05e1", "105E-1", "0.105e+2", "1050e-0002"][..],
            &["0", "-0", "0.0", "0e5", "-0.00E-7"],
            &["100", "1e2", "1E+2", "100.00"],
            &["0.001", "1e-3", "0.1e-2"],
        ] {
            for one in texts {
                for other in texts {
                    assert_eq!(Decimal::read(one), Decimal::read(other), "{one} {other}");
                    assert_eq!(compared(one, other), Ordering::Equal, "{one} {other}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_a_number_only_in_the_syntax_of_json() {
        assert_eq!(Decimal::of_text("830.00"), Some(Decimal::read("830")));
        assert_eq!(Decimal::of_text("-1e2"), Some(Decimal::read("-100")));
        for text in ["", "-", "1 ", " 1", "+1", "01", "1.", ".5", "1,5", "0x1", "1 2", "B-1", "2026-11-20", "٣"] {
            assert_eq!(Decimal::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_in_their_order_to_the_last_digit() {
        let ascending = [
            "-1e400",
            "-1152921504606846977",
            "-1152921504606846976",
            "-10.51",
            "-10.5",
            "-1e-400",
            "0",
            "1e-400",
            "0.09",
            "0.1",
            "0.10000000000000000001",
            "9",
            "10",
            "10.5",
            "10.51",
            "99",
            "100",
            "1152921504606846976",
            "1152921504606846977",
            "1e400",
            "1e999999999999999999999999",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (position, other) in ascending.iter().enumerate() {
                assert_eq!(compared(one, other), at.cmp(&position), "{one} {other}");
            }
        }
    }

    #[test]
    fn the_plain_text_is_the_shortest_without_an_exponent() {
        for (number, plain) in [
            ("20417", "20417"),
            ("20417.0", "20417"),
            ("20417.00", "20417"),
            ("2.0417E4", "20417"),
            ("2.0417e5", "204170"),
            ("204.17e-1", "20.417"),
            ("-0.50", "-0.5"),
            ("5e-3", "0.005"),
            ("1e3", "1000"),
            ("-0.0e9", "0"),
            ("1e15", "1000000000000000"),
        ] {
            assert_eq!(Decimal::read(number).plain(16).as_deref(), Some(plain), "{number}");
        }
        for long in
            ["1e16", "1e-15", "-1000000000000000", "0.123456789012345", "1e999999999999999999", "1e-999999999999999999"]
        {
            assert_eq!(Decimal::read(long).plain(16), None, "{long}");
        }
    }

    #[test]
    fn the_largest_exact_double_is_two_to_the_53() {
        for (number, is_exact) in [
            ("0", true),
            ("-9007199254740992", true),
            ("9.007199254740992e15", true),
            ("9007199254740992.1", false),
            ("9007199254740993", false),
            ("-1e400", false),
        ] {
            assert_eq!(Decimal::read(number).is_up_to_exact_double(), is_exact, "{number}");
        }
    }

    proptest! {
        #[test]
        fn the_plain_text_is_a_json_number_of_the_same_value(number in "-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?") {
            let read = Decimal::read(&number);
            let plain = read.plain(256).expect("at most 99 zeros");
            prop_assert_eq!(Decimal::of_text(&plain), Some(read), "{} {}", number, plain);
            let has_final_zero = plain.contains('.') && plain.ends_with('0');
            prop_assert!(!plain.contains(['e', 'E']) && !has_final_zero, "{}", plain);
        }

        #[test]
        fn integers_compare_as_integers(one in any::<i64>(), other in any::<i64>(), zeros in 0_usize..5) {
            let padded = format!("{other}.{}", "0".repeat(zeros + 1));
            prop_assert_eq!(compared(&one.to_string(), &padded), one.cmp(&other));
        }
    }
}
