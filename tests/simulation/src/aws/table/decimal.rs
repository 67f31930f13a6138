//! DynamoDB's numbers, which are decimals with at most 38 digits.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html>

use std::{cmp::Ordering, fmt};

const MOST_DIGITS: u32 = 38;

/// `digits` times ten to the power of `exponent`. The digits do not end in a zero, so equal numbers have equal members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// Reads a number; `None` if DynamoDB would refuse it.
    pub fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i32),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (sign, whole) = match whole.strip_prefix('-') {
            Some(whole) => ("-", whole),
            None => ("", whole.strip_prefix('+').unwrap_or(whole)),
        };
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let significant = digits.trim_end_matches('0');
        let exponent = exponent.checked_add(i32::try_from(digits.len() - significant.len()).ok()?)?;
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Self { digits: 0, exponent: 0 });
        }
        let digits: i128 = format!("{sign}{significant}").parse().ok()?;
        let number = Self { digits, exponent };
        (significant.len() <= MOST_DIGITS as usize && (-130..=125).contains(&number.magnitude())).then_some(number)
    }

    /// The sum; `None` if it has too many digits.
    pub fn plus(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |number: Self| {
            let shift = u32::try_from(number.exponent - exponent).ok()?;
            number.digits.checked_mul(10_i128.checked_pow(shift)?)
        };
        let sum = if self.digits == 0 {
            other
        } else if other.digits == 0 {
            self
        } else {
            Self { digits: aligned(self)?.checked_add(aligned(other)?)?, exponent }
        };
        Self::read(&format!("{}e{}", sum.digits, sum.exponent))
    }

    /// The exponent of the first digit.
    fn magnitude(self) -> i32 {
        self.exponent.saturating_add_unsigned(self.digits.unsigned_abs().checked_ilog10().unwrap_or_default())
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.digits.signum().cmp(&other.digits.signum());
        let by_magnitude = || {
            let order = self.magnitude().cmp(&other.magnitude());
            if self.digits < 0 { order.reverse() } else { order }
        };
        // If the magnitudes are equal, the exponents differ by at most the number of digits, so the product has at most
        // 38 digits.
        let by_digits = || {
            let shift = self.exponent.abs_diff(other.exponent);
            let (one, another) = (self.exponent > other.exponent, other.exponent > self.exponent);
            let raised = |number: i128, raise: bool| if raise { number * 10_i128.pow(shift) } else { number };
            raised(self.digits, one).cmp(&raised(other.digits, another))
        };
        if self.digits == 0 || other.digits == 0 {
            return by_sign;
        }
        by_sign.then_with(by_magnitude).then_with(by_digits)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Formats the number as DynamoDB returns it, without an exponent or superfluous zeros.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = self.digits.unsigned_abs().to_string();
        let Ok(places) = usize::try_from(-self.exponent) else {
            let zeros = usize::try_from(self.exponent).unwrap_or_default();
            return write!(f, "{sign}{digits}{}", "0".repeat(zeros));
        };
        if places == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

/// Whether a string is a small whole number formatted as DynamoDB formats numbers. Nearly all numbers are formatted
/// like this.
pub(super) fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_small = (1..=18).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_small && (!digits.starts_with('0') || text == "0")
}

/// The order of two numbers; `None` if either is not a number.
pub(super) fn order(one: &str, other: &str) -> Option<Ordering> {
    if is_plain(one) && is_plain(other) {
        return Some(one.parse::<i64>().ok()?.cmp(&other.parse().ok()?));
    }
    Some(Decimal::read(one)?.cmp(&Decimal::read(other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal {
        Decimal::read(text).expect(text)
    }

    #[test]
    fn numbers_are_ordered_and_added_as_decimals() {
        let ordered =
            ["-1e125", "-20", "-3", "-0.5", "-1e-130", "0", "1e-130", "0.25", "3", "20", "20.01", "9.9e37", "1e125"];
        for (place, one) in ordered.iter().enumerate() {
            for (other_place, other) in ordered.iter().enumerate() {
                assert_eq!(order(one, other), Some(place.cmp(&other_place)), "{one} {other}");
            }
        }
        for (one, other, sum) in [("0.1", "0.2", "0.3"), ("10", "-10", "0"), ("1e3", "-0.5", "999.5"), ("0", "7", "7")]
        {
            assert_eq!(read(one).plus(read(other)).expect("a sum").to_string(), sum);
        }
        assert_eq!(read("1e125").plus(read("1e-130")), None);
    }

    #[test]
    fn a_number_has_one_text() {
        for (text, plain) in [("007", "7"), ("-0", "0"), ("1.50", "1.5"), ("1E+2", "100"), ("-12e-4", "-0.0012")] {
            assert_eq!(read(text).to_string(), plain);
        }
        for text in ["", "-", "x", "1e126", "1e-131", "--1"].into_iter().chain([&*"9".repeat(39)]) {
            assert!(Decimal::read(text).is_none(), "{text}");
        }
    }
}
