//! The code of an error that a provider reports (RFC 6749 §4.1.2.1), as far as it may be repeated.

/// The longest code that is repeated.
const LONGEST: usize = 64;

/// A provider's code for an error, such as `temporarily_unavailable`. The RFC allows nearly every visible character and
/// any length; a code that is repeated in an address, on a page and in the log is a name, as all registered ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode<'a>(&'a str);

impl<'a> ErrorCode<'a> {
    /// Reads a code: up to 64 letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        (plain && (1..=LONGEST).contains(&text.len())).then_some(Self(text))
    }

    /// The code.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_short_name_and_everything_else_is_not_repeated() {
        for good in ["access_denied", "temporarily_unavailable", "UNAUTHORIZED", "E-1.2", &"x".repeat(64)] {
            assert_eq!(ErrorCode::parse(good).map(ErrorCode::as_str), Some(good));
        }
        for bad in ["", " ", "a b", "<b>", "a&b=c", "https://x", "ä", "a\r\nb", "a%0d", &"x".repeat(65)] {
            assert_eq!(ErrorCode::parse(bad), None, "{bad}");
        }
    }
}
