//! A request body's canonical form, which is the same for bodies with equal values.
//!
//! A client that serializes its JSON again may order or space members differently, or write a number or a string in
//! another way. The request is still the same.

use serde_json::value::RawValue;

use crate::json_body::{MAX_DEPTH, without_byte_order_mark};

/// A body's canonical form; an empty body means an object without members. `None` if the body is not JSON, or too
/// deeply nested to be accepted; the request is then identified by its bytes.
pub fn of_body(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(without_byte_order_mark(body)).ok()?;
    if text.trim().is_empty() {
        return Some("{}".to_owned());
    }
    // The reader below relies on the JSON being well-formed.
    serde_json::from_str::<&RawValue>(text).ok()?;
    Reader { rest: text }.value(0)
}

/// A reader of well-formed JSON.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<String> {
        match self.next()? {
            b'{' if depth < MAX_DEPTH => self.object(depth),
            b'[' if depth < MAX_DEPTH => self.array(depth),
            b'{' | b'[' => None,
            b'"' => self.text(),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(self.rest.len());
                let word = self.take(end);
                Some(if word.starts_with(['t', 'f', 'n']) { word.to_owned() } else { number(word) })
            }
        }
    }

    /// The members, ordered by name. Those with the same name keep their order.
    fn object(&mut self, depth: usize) -> Option<String> {
        self.take(1);
        let mut members = Vec::new();
        while self.next()? != b'}' {
            let name = self.text()?;
            self.next()?;
            self.take(1); // the colon
            members.push((name, self.value(depth + 1)?));
            self.skip_comma()?;
        }
        self.take(1);
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let members: Vec<_> = members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
        Some(format!("{{{}}}", members.join(",")))
    }

    fn array(&mut self, depth: usize) -> Option<String> {
        self.take(1);
        let mut elements = Vec::new();
        while self.next()? != b']' {
            elements.push(self.value(depth + 1)?);
            self.skip_comma()?;
        }
        self.take(1);
        Some(format!("[{}]", elements.join(",")))
    }

    /// A string, with each character always written in the same way. A string with an unpaired surrogate, which no
    /// program can read, is left as it is.
    fn text(&mut self) -> Option<String> {
        let mut escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        })?;
        let token = self.take(end + 2);
        let decoded = serde_json::from_str::<String>(token).ok();
        Some(decoded.and_then(|text| serde_json::to_string(&text).ok()).unwrap_or_else(|| token.to_owned()))
    }

    fn skip_comma(&mut self) -> Option<()> {
        if self.next()? == b',' {
            self.take(1);
        }
        Some(())
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.bytes().next()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

/// A number as its significant digits and a power of ten. So `1`, `1.0` and `10e-1` are equal, but numbers that differ
/// beyond a double's precision are not.
fn number(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let exponent = exponent.parse::<i64>().ok();
    let exponent = exponent.and_then(|exponent| exponent.checked_sub(i64::try_from(fraction.len()).ok()?));
    let exponent =
        exponent.and_then(|exponent| exponent.checked_add(i64::try_from(digits.len() - significant.len()).ok()?));
    match (significant.trim_start_matches('0'), exponent) {
        ("", _) => "0".to_owned(),
        (significant, Some(exponent)) => format!("{sign}{significant}e{exponent}"),
        // No program computes with such a number.
        (_, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn form(body: &str) -> Option<String> {
        of_body(body.as_bytes())
    }

    #[test]
    fn bodies_that_differ_only_in_notation_are_equal() {
        for (one, other) in [
            (r#"{"a":1,"b":[1,2]}"#, "\u{feff} {\n\"b\" : [ 1 ,\t2 ] , \"a\" : 1 }\r\n"),
            (r#"{"a":{"c":1,"b":2}}"#, r#"{"a":{"b":2,"c":1}}"#),
            (r#"{"é/\"":"a\u00e9\/\n😀"}"#, r#"{"\u00e9\/\u0022":"aé/\u000a\ud83d\ude00"}"#),
            (r#"[1,-0,100,0.10,1e2,true,null]"#, r#"[1.0,0,1E+2,1.0e-1,100.00,true,null]"#),
            (r#"[123456789012345678901234567890.10]"#, r#"[12345678901234567890123456789010e-2]"#),
            ("", "{ }"),
            (" \n", "{}"),
        ] {
            assert!(form(one).is_some(), "{one}");
            assert_eq!(form(one), form(other), "{one}");
        }
    }

    #[test]
    fn bodies_with_other_values_are_different() {
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            ("[1,2]", "[2,1]"),
            ("[[1],2]", "[1,[2]]"),
            (r#"["a,b"]"#, r#"["a","b"]"#),
            ("[1]", "[-1]"),
            ("[9007199254740993]", "[9007199254740992]"),
            ("[0.1]", "[0.1000000000000000001]"),
            ("[1e400]", "[1e401]"),
            (r#"["a"]"#, r#"["A"]"#),
            (r#"["\ud800"]"#, r#"["\ud801"]"#),
            ("[1e99999999999999999999]", "[1e99999999999999999998]"),
        ] {
            assert_ne!(form(one), form(other), "{one}");
        }
    }

    #[test]
    fn a_body_that_no_operation_accepts_has_no_form() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(form(&nested(MAX_DEPTH)).is_some());
        for bad in ["{", "x", "{}{}", "[01]", &nested(MAX_DEPTH + 1), &nested(100_000)] {
            assert_eq!(form(bad), None, "{bad:.20}");
        }
        assert_eq!(of_body(b"\"\xff\""), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<Option<bool>>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("\\PC*", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_body_that_is_written_again_is_the_same(value in values()) {
            let pretty = serde_json::to_string_pretty(&value).expect("JSON");
            prop_assert_eq!(form(&value.to_string()), form(&pretty));
            prop_assert!(form(&pretty).is_some());
        }

        #[test]
        fn no_body_makes_the_reader_panic(body in ".*") {
            let _ = form(&body);
        }
    }
}
