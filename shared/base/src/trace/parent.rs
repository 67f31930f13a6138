//! `traceparent`: the version, a trace, one of its spans, and flags, in hexadecimal digits.
//! <https://www.w3.org/TR/trace-context-1/#traceparent-header>

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
};

/// The length of a version 00 value, with which values of every version begin.
const LENGTH: usize = 55;
const SAMPLED: u128 = 1;

/// A trace's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

/// A span's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

impl TraceId {
    pub(super) fn new(number: u128) -> Option<Self> {
        NonZeroU128::new(number).map(Self)
    }

    /// Zero, which means no trace, becomes 1; random bytes are practically never zero.
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(NonZeroU128::new(u128::from_be_bytes(bytes)).unwrap_or(NonZeroU128::MIN))
    }
}

impl SpanId {
    /// Zero, which means no span, becomes 1.
    pub(super) fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(NonZeroU64::new(u64::from_be_bytes(bytes)).unwrap_or(NonZeroU64::MIN))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    /// Whether the sender may have recorded the trace. The other flags have no meaning yet, and are not passed on.
    pub(super) sampled: bool,
}

impl Parent {
    /// Reads a value; `None` if the recommendation requires it to be ignored. For a later version, reads only the part
    /// that version 00 defines.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.trim_matches([' ', '\t']).split_at_checked(LENGTH)?;
        let mut fields = known.split('-');
        let mut field = |digits| fields.next().and_then(|field| number(field, digits));
        let version = field(2)?;
        let trace = field(32)?;
        let span = field(16)?;
        let flags = field(2)?;
        let is_whole = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more.starts_with('-'),
        };
        let span = NonZeroU64::new(u64::try_from(span).ok()?)?;
        is_whole.then_some(Self { trace: TraceId::new(trace)?, span: SpanId(span), sampled: flags & SAMPLED != 0 })
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Parses a hexadecimal number with this many digits, in lower case; Rust's parser also accepts a sign and capitals.
pub(super) fn number(text: &str, digits: usize) -> Option<u128> {
    let digit = |byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let read = |number: u128, byte| Some(number << 4 | u128::from(digit(byte)?));
    if text.len() == digits { text.bytes().try_fold(0, read) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn passed_on(text: &str) -> Option<String> {
        Parent::parse(text).map(|parent| parent.to_string())
    }

    #[test]
    fn a_value_is_passed_on_with_no_flag_but_sampled() {
        for (flags, kept) in [("00", "00"), ("01", "01"), ("02", "00"), ("03", "01"), ("fe", "00"), ("ff", "01")] {
            let parent = passed_on(&format!("00-{TRACE}-{SPAN}-{flags}"));
            assert_eq!(parent, Some(format!("00-{TRACE}-{SPAN}-{kept}")));
        }
        assert_eq!(passed_on(&format!(" \t00-{TRACE}-{SPAN}-01 ")), Some(format!("00-{TRACE}-{SPAN}-01")));
    }

    #[test]
    fn the_known_part_of_a_later_version_is_read() {
        for later in ["-01", "-01-", "-01-what-the-future-will-be-like", "-09-é"] {
            assert_eq!(
                passed_on(&format!("cc-{TRACE}-{SPAN}{later}")),
                Some(format!("00-{TRACE}-{SPAN}-01")),
                "{later}"
            );
        }
        for bad in ["-01.what", "-01é", "-0", "-0x", ""] {
            assert_eq!(passed_on(&format!("cc-{TRACE}-{SPAN}{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn a_malformed_value_is_ignored() {
        let zeros = "0".repeat(32);
        for bad in [
            String::new(),
            "00".to_owned(),
            format!("{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-01-01"),
            format!("00-{TRACE}-{SPAN}-011"),
            format!("00-{TRACE}-{SPAN}-0G"),
            format!("00-{TRACE}-{SPAN}-+1"),
            format!("00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01,cc-{TRACE}-{SPAN}-01"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("FF-{TRACE}-{SPAN}-01"),
            format!(".0-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("000-{TRACE}-{SPAN}-01"),
            format!("00_{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{}-01", SPAN.to_uppercase()),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}0-{}-01", &SPAN[1..]),
            format!("00-{}.-{SPAN}-01", &TRACE[1..]),
        ] {
            assert_eq!(passed_on(&bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_span_of_every_trace_is_read_back(trace in 1u128.., span in 1u64.., sampled: bool) {
            let text = format!("00-{trace:032x}-{span:016x}-0{}", u8::from(sampled));
            prop_assert_eq!(passed_on(&text), Some(text));
        }

        #[test]
        fn a_value_with_one_changed_byte_is_ignored_or_read_as_written(position in 0usize..55, byte in 0x20u8..0x7f) {
            let whole = format!("00-{TRACE}-{SPAN}-01");
            let mut changed = whole.clone().into_bytes();
            changed[position] = byte;
            let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let stays = if whole.as_bytes()[position] == b'-' { byte == b'-' } else { is_digit };
            let is_odd = char::from(changed[54]).to_digit(16).is_some_and(|digit| digit % 2 == 1);
            let changed = String::from_utf8(changed).expect("ASCII");
            let expected = format!("00{}-0{}", &changed[2..52], u8::from(is_odd));
            prop_assert_eq!(passed_on(&changed), stays.then_some(expected), "{}", changed);
        }

        #[test]
        fn any_text_is_ignored_or_begins_with_the_value_passed_on(text in "[0-9a-f]{2}-[0-9a-fA-F]{30,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}(-.{0,5})?|\\PC{0,80}") {
            if let Some(passed) = passed_on(&text) {
                prop_assert_eq!(passed.len(), LENGTH);
                prop_assert_eq!(&text.trim_matches([' ', '\t'])[2..52], &passed[2..52]);
            }
        }
    }
}
