//! Duplicate members within a member's value. Serde would keep the last of them.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{MAX_POINTER, Pointer};

/// The places of the first duplicate members within a value, at most this many. JSON that `serde_json` cannot read is
/// read up to that place: reading the value fails as well.
pub(crate) fn find(json: &str, limit: usize) -> Vec<Pointer> {
    let mut duplicates = Duplicates { path: Vec::new(), found: Vec::new(), limit };
    if json.starts_with(['{', '[']) {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let _read = Nested(&mut duplicates).deserialize(&mut deserializer);
    }
    duplicates.found
}

/// A step from a value to one within it.
enum Step {
    Member(String),
    Element(usize),
}

struct Duplicates {
    /// The way to the value that is read.
    path: Vec<Step>,
    found: Vec<Pointer>,
    limit: usize,
}

impl Duplicates {
    fn add(&mut self) {
        if self.found.len() >= self.limit {
            return;
        }
        // A violation shows only the beginning of a pointer, and names may be as long as the body.
        let mut pointer = Pointer::default();
        for step in &self.path {
            if pointer.as_str().len() > MAX_POINTER {
                break;
            }
            pointer = match step {
                Step::Member(name) => pointer.member(&name[..name.floor_char_boundary(MAX_POINTER + 1)]),
                Step::Element(index) => pointer.at(*index),
            };
        }
        self.found.push(pointer);
    }
}

/// A value and everything within it.
struct Nested<'a>(&'a mut Duplicates);

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.0.path.push(Step::Element(index));
            let element = elements.next_element_seed(Nested(&mut *self.0))?;
            self.0.path.pop();
            if element.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let is_new = names.insert(name.clone());
            self.0.path.push(Step::Member(name));
            if !is_new {
                self.0.add();
            }
            members.next_value_seed(Nested(&mut *self.0))?;
            self.0.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Vec<String> {
        find(json, 100).iter().map(|pointer| pointer.as_str().to_owned()).collect()
    }

    #[test]
    fn duplicate_members_are_found_at_every_depth() {
        let json = r#"{"a":1,"\u0061":2,"b":[{"c":null,"d":{"e":[],"e":true}},{"c":-1.5}],"f/g":null,"f/g":0}"#;
        assert_eq!(found(json), ["/a", "/b/0/d/e", "/f~1g"]);
    }

    #[test]
    fn a_value_without_duplicates_has_none() {
        for json in ["null", "1", r#""null""#, "[null,[null]]", r#"[{"a":1},{"a":{"a":2}}]"#, "{}", "[]"] {
            assert!(found(json).is_empty(), "{json}");
        }
    }

    #[test]
    fn a_report_is_bounded_and_unreadable_json_is_read_up_to_its_fault() {
        let long = "é".repeat(400_000);
        let deep = format!("{}{{\"b\":1,\"b\":1}}{}", "{\"a\":".repeat(95), "}".repeat(95));
        let found_in_long = find(&format!("{{\"{long}\":{deep}}}"), 100);
        assert!(found_in_long[0].as_str().len() <= 2 * MAX_POINTER, "the pointer is cut");
        let many = vec![r#"{"a":1,"a":2}"#; 1_000].join(",");
        assert_eq!(find(&format!("[{many}]"), 100).len(), 100);
        assert_eq!(found(r#"{"a":1,"a":2,"b":1e400,"c":1,"c":2}"#), ["/a"]);
    }
}
