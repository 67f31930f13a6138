//! Faults within a member's value: a duplicate member, and null in place of a member's value. Serde would keep the last
//! of duplicate members, and would take null for a missing member.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{Pointer, Rule};

/// A fault: its place within the value, the rule, and the text of the violation.
type Fault = (Pointer, Rule, &'static str);

/// The first faults within a value, at most this many. JSON that `serde_json` cannot read is read up to that place: reading the value
/// fails as well.
pub(crate) fn faults(json: &str, limit: usize) -> Vec<Fault> {
    let mut faults = Faults { path: Vec::new(), found: Vec::new(), limit };
    if json.starts_with(['{', '[']) {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let _read = Nested(&mut faults).deserialize(&mut deserializer);
    }
    faults.found
}

/// A step from a value to one within it.
enum Step {
    Member(String),
    Element(usize),
}

struct Faults {
    /// The way to the value that is read.
    path: Vec<Step>,
    found: Vec<Fault>,
    limit: usize,
}

impl Faults {
    fn add(&mut self, rule: Rule, detail: &'static str) {
        if self.found.len() < self.limit {
            let pointer = self.path.iter().fold(Pointer::default(), |pointer, step| match step {
                Step::Member(name) => pointer.member(name),
                Step::Element(index) => pointer.at(*index),
            });
            self.found.push((pointer, rule, detail));
        }
    }
}

/// A value and everything within it.
struct Nested<'a>(&'a mut Faults);

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
        // An element that is null has the wrong type, which reading the list finds.
        if matches!(self.0.path.last(), Some(Step::Member(_))) {
            self.0.add(Rule::InvalidType, "must not be null");
        }
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
                self.0.add(Rule::Duplicate, "must be given only once");
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

    fn found(json: &str) -> Vec<(String, Rule)> {
        faults(json, 100).into_iter().map(|(pointer, rule, _)| (pointer.as_str().to_owned(), rule)).collect()
    }

    #[test]
    fn duplicate_members_and_null_are_found_at_every_depth() {
        let json = r#"{"a":1,"\u0061":2,"b":[{"c":null,"d":{"e":[],"e":true}},{"c":-1.5}],"f/g":null}"#;
        let expected = [
            ("/a", Rule::Duplicate),
            ("/b/0/c", Rule::InvalidType),
            ("/b/0/d/e", Rule::Duplicate),
            ("/f~1g", Rule::InvalidType),
        ];
        assert_eq!(found(json), expected.map(|(pointer, rule)| (pointer.to_owned(), rule)));
    }

    #[test]
    fn a_value_without_such_members_has_no_faults() {
        for json in ["null", "1", r#""null""#, "[null,[null]]", r#"[{"a":1},{"a":{"a":2}}]"#, "{}", "[]"] {
            assert!(found(json).is_empty(), "{json}");
        }
    }

    #[test]
    fn a_report_is_bounded_and_unreadable_json_is_read_up_to_its_fault() {
        let many = vec![r#"{"a":null}"#; 1_000].join(",");
        assert_eq!(faults(&format!("[{many}]"), 100).len(), 100);
        assert_eq!(found(r#"{"a":null,"b":1e400,"c":null}"#), [("/a".to_owned(), Rule::InvalidType)]);
    }
}
