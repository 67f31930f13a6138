//! Unpaired surrogates in JSON. The grammar permits an escape such as `\ud800` without its other half (RFC 8259 §8.2),
//! but such a string is not Unicode. Parsers refuse or replace it, each in a different way. I-JSON forbids it (RFC 7493
//! §2.1), and so does this service.

use crate::{Pointer, strings};

/// The violation of a string with an unpaired surrogate.
pub const MESSAGE: &str =
    "must not contain an unpaired surrogate, such as \\ud800 alone, which is not a character (RFC 7493, section 2.1)";

/// Pointers to the first strings with an unpaired surrogate in well-formed JSON: member names, and values.
pub fn unpaired(json: &str) -> Vec<Pointer> {
    if has_surrogates(json) { strings::find(json, |text, _| is_unpaired(text)) } else { Vec::new() }
}

/// Whether the JSON may contain an escaped surrogate, paired or not.
fn has_surrogates(json: &str) -> bool {
    json.as_bytes().windows(4).any(|letters| letters.starts_with(b"\\u") && is_surrogate_digits(&letters[2..]))
}

/// Whether these are the first two digits of a surrogate: `d8` to `df`.
fn is_surrogate_digits(digits: &[u8]) -> bool {
    matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])
}

/// Whether a string, as written in JSON, has half of a pair of surrogates.
fn is_unpaired(text: &str) -> bool {
    let mut rest = text;
    // Whether the escape just before is the first half of a pair.
    let mut awaits_second = false;
    while let Some(start) = rest.find('\\') {
        if awaits_second && start > 0 {
            return true;
        }
        let escape = rest.split_at(start).1;
        let digits = escape.strip_prefix("\\u").and_then(|digits| u16::from_str_radix(digits.get(..4)?, 16).ok());
        match digits {
            Some(0xd800..=0xdbff) if awaits_second => return true,
            Some(0xd800..=0xdbff) => awaits_second = true,
            Some(0xdc00..=0xdfff) if awaits_second => awaits_second = false,
            Some(0xdc00..=0xdfff) => return true,
            _ if awaits_second => return true,
            _ => {}
        }
        // An escape other than `\u….` has two characters, of which the second may be a backslash.
        let length = if digits.is_some() { 6 } else { 2 };
        rest = escape.get(length..).unwrap_or_default();
    }
    awaits_second
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, value::RawValue};

    use super::*;
    use crate::strings::MOST;

    fn pointers(json: &str) -> Vec<String> {
        unpaired(json).iter().map(|pointer| pointer.as_str().to_owned()).collect()
    }

    #[test]
    fn half_of_a_pair_is_found_wherever_it_is() {
        for text in [
            r"\ud800",
            r"\uDBFFx",
            r"\udc00\ud800",
            r"\ud83d\ud83d\ude00",
            r"\ud83d \ude00",
            r"\ud83d\n\ude00",
            r"\\\ud800",
            r#"\"\udfff"#,
            r"\ud83d\\ude00",
        ] {
            assert_eq!(pointers(&format!(r#"{{"a":"{text}"}}"#)), ["/a"], "{text}");
            assert_eq!(pointers(&format!(r#"{{"{text}":1}}"#)), [format!("/{text}")], "{text}");
        }
        for text in
            [r"\ud83d\ude00", r"\uD83D\uDE00\ud83d\ude00", r"\\ud800", r#"\"\\ud800"#, r"\ud7ff\ue000", r"ud800"]
        {
            assert_eq!(pointers(&format!(r#"{{"a":"{text}","{text}":["{text}"]}}"#)), [""; 0], "{text}");
        }
    }

    #[test]
    fn every_text_is_found_with_its_pointer() {
        let json = r#" { "a" : [ 1 , "x" , {"b,{[\"" : "\ud800" , "c":[[],["\udfff"]]} ] ,
            "d\u00e9/~" : {"\ud800":"\ud800","e":{}} , "f":"\ud83d\ude00","g":"\udc00"} "#;
        assert_eq!(pointers(json), ["/a/2/b,{[\"", "/a/2/c/1/0", "/dé~1~0/\\ud800", "/g"]);
        assert_eq!((pointers(r#""\ud800""#), pointers(r#"["\ud800"]"#)), (vec![String::new()], vec!["/0".to_owned()]));
    }

    #[test]
    fn a_report_is_bounded() {
        let many = vec![r#""\ud800""#; 10_000].join(",");
        assert_eq!(unpaired(&format!("[{many}]")).len(), MOST);
        let long = format!(r#"{{"{}":"\ud800"}}"#, "n".repeat(100_000));
        assert_eq!(pointers(&long)[0].len(), 1 + MOST);
        let deep = format!(r#"{}"\ud800"{}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(pointers(&deep)[0].len(), MOST * "/0".len());
        let escaped = format!(r#"{{"{}":"\ud800"}}"#, r"\ud83d\ude00".repeat(100_000));
        assert_eq!(pointers(&escaped)[0].chars().count(), 1 + MOST);
    }

    #[test]
    fn many_texts_with_one_pointer_are_not_all_read() {
        let members = vec![r#""":"\ud800""#; 100_000].join(",");
        let json = format!(r#"{{"{}":{{{members},"last":"\ud800"}}}}"#, "n".repeat(500_000));
        assert_eq!(unpaired(&json).len(), 1);
    }

    /// A string in JSON, with and without pairs.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(r"\ud83d"),
            Just(r"\ude00"),
            Just(r"\uD800"),
            Just(r"\uDFFF"),
            Just(r"\ud83d\ude00"),
            Just(r"\\"),
            Just(r#"\""#),
            Just(r"\u00e9"),
            Just("ud800"),
            Just("é"),
            Just("[{,"),
        ];
        prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![text(), Just("1.5e3".to_owned()), Just("null".to_owned())];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|elements| format!("[ {} ]", elements.join(" ,"))),
                prop::collection::vec((text(), inner), 0..4).prop_map(|members| {
                    let members = members.into_iter().map(|(name, value)| format!("{name} : {value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_without_a_finding_is_what_a_strict_parser_reads(json in json()) {
            prop_assert!(serde_json::from_str::<&RawValue>(&json).is_ok(), "it is well-formed: {}", json);
            prop_assert_eq!(unpaired(&json).is_empty(), serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
        }

        #[test]
        fn no_text_makes_the_search_panic(text in "[\\[\\]{}\":,a0é\\\\ud8c ]{0,60}") {
            let _ = unpaired(&text);
        }
    }
}
