//! The JSON of a message. A duplicate member is detected at every depth, since the server must not silently choose one
//! of two values.

use std::{collections::BTreeSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Value, map::Entry};

use problem::json_body::without_byte_order_mark;

/// The maximum nesting, which is the limit of `serde_json`.
pub const MAX_DEPTH: usize = 127;

/// A parsed JSON document.
#[derive(Debug)]
pub struct Json {
    /// The value, without duplicate members.
    pub value: Value,
    /// A duplicate member's name, if there is one.
    pub doubled: Option<String>,
}

/// Reads JSON. A leading byte order mark is ignored (RFC 8259 §8.1).
///
/// # Errors
/// The text is not JSON in UTF-8, has a number beyond the range of a double, or nests deeper than [`MAX_DEPTH`].
pub fn read(json: &[u8]) -> Result<Json, Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(without_byte_order_mark(json));
    let mut doubled = None;
    let value = Reader { doubled: &mut doubled }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Json { value, doubled })
}

/// Reads one value and its descendants.
struct Reader<'a> {
    doubled: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reader { doubled: &mut *self.doubled })? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        let mut doubled = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Reader { doubled: &mut *self.doubled })?;
            match object.entry(name) {
                Entry::Vacant(vacant) => {
                    vacant.insert(value);
                }
                Entry::Occupied(known) => {
                    doubled.insert(known.key().clone());
                }
            }
        }
        for name in doubled {
            object.remove(&name);
            self.doubled.get_or_insert(name);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn a_duplicate_member_is_found_at_every_depth_and_removed() {
        for (text, value) in [
            (r#"{"a":1,"b":2,"a":3}"#, json!({ "b": 2 })),
            (r#"{"a":1,"a":1,"a":1}"#, json!({})),
            (r#"{"a":1,"\u0061":2}"#, json!({})),
            (r#"{"b":{"a":1,"a":2}}"#, json!({ "b": {} })),
            (r#"[[{"b":[{"a":1,"a":2}]}]]"#, json!([[{ "b": [{}] }]])),
        ] {
            let read = read(text.as_bytes()).expect(text);
            assert_eq!((read.value, read.doubled.as_deref()), (value, Some("a")), "{text}");
        }
        let single = read(br#"{"a":{"a":1},"b":[{"a":1},{"a":1}],"A":1}"#).expect("read");
        assert_eq!(single.doubled, None);
    }

    #[test]
    fn json_is_read_up_to_the_limits_of_depth_and_numbers() {
        assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(read(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        for number in ["1e308", "-1e308", "18446744073709551616", "-0", "1e-400"] {
            assert!(read(number.as_bytes()).is_ok(), "{number}");
        }
        for number in ["1e309", "-1e400", &"9".repeat(400)] {
            assert!(read(number.as_bytes()).is_err(), "{number}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        assert_eq!(read("\u{feff}{}".as_bytes()).expect("read").value, json!({}));
        assert!(read("\u{feff}\u{feff}{}".as_bytes()).is_err());
    }

    #[test]
    fn a_text_that_looks_like_parser_internals_is_a_text() {
        let text = r#"{"$serde_json::private::RawValue":"{\"a\":1}"}"#;
        let read = read(text.as_bytes()).expect("read");
        assert_eq!(read.value, json!({ "$serde_json::private::RawValue": "{\"a\":1}" }));
    }

    proptest! {
        #[test]
        fn json_without_duplicate_members_is_read_as_by_serde_json(text in "[\\[\\]{}:,\"ab01e.\\-ntrulfs ]{0,24}") {
            let ours = read(text.as_bytes());
            let theirs = serde_json::from_str::<Value>(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
            if let Ok(ours) = ours && ours.doubled.is_none() {
                prop_assert_eq!(ours.value, theirs.expect("read"));
            }
        }
    }
}
