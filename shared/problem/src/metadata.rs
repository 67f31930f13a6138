//! Metadata: strings by which an integrator matches this service's objects with those in its own systems. The service
//! stores and shows them, and never interprets them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{JsonBody, Pointer, Rule, Violations, name};

/// The member of a request.
const MEMBER: &str = "metadata";
const MAX_MEMBERS: usize = 20;
/// The longest member name, in characters.
const MAX_NAME: usize = 40;
/// The longest value, in characters.
const MAX_VALUE: usize = 500;
/// The maximum size of all members as JSON, in bytes. Every publish request reads all of its entity's webhooks, and one
/// response lists them.
const MAX_TOGETHER: usize = 2 * 1024;

/// An application's or a webhook's metadata; empty if it has none.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Takes the `metadata` member from a body. Faults are added to the body's violations.
    pub fn take(body: &mut JsonBody<'_>) -> Option<Self> {
        let what = format!(
            "an object without nesting: at most {MAX_MEMBERS} members with string values of at most {MAX_VALUE} \
             characters"
        );
        let members = body.optional_texts(MEMBER, &what)?;
        check(&members, &mut body.violations);
        Some(Self(members))
    }

    /// Takes the `metadata` member from a body that changes an object. `null` removes all metadata.
    pub fn take_change(body: &mut JsonBody<'_>) -> Option<Self> {
        if body.take_null(MEMBER) { Some(Self::default()) } else { Self::take(body) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Adds a violation for each fault.
fn check(members: &BTreeMap<String, String>, violations: &mut Violations) {
    if members.len() > MAX_MEMBERS {
        violations.add(MEMBER, Rule::TooLong, format!("must have at most {MAX_MEMBERS} members"));
        return;
    }
    for (name, value) in members {
        let pointer = Pointer::from(MEMBER).member(name);
        if let Err(fault) = name::checked(name, MAX_NAME) {
            let detail = format!("has a name that is not allowed: a name {fault}");
            violations.add(pointer.clone(), Rule::InvalidFormat, detail);
        }
        if value.chars().count() > MAX_VALUE {
            violations.add(pointer, Rule::TooLong, format!("must have at most {MAX_VALUE} characters"));
        }
    }
    if serde_json::to_string(members).map_or(usize::MAX, |json| json.len()) > MAX_TOGETHER {
        violations.add(MEMBER, Rule::TooLong, format!("must have at most {MAX_TOGETHER} bytes in total, as JSON"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Violation;
    use serde_json::json;

    fn read(body: &str, take: fn(&mut JsonBody<'_>) -> Option<Metadata>) -> Result<Option<Metadata>, Vec<String>> {
        let mut body = JsonBody::read(body.as_bytes()).expect("an object");
        let metadata = take(&mut body);
        let faults = body.into_violations().into_list();
        if faults.is_empty() { Ok(metadata) } else { Err(faults.iter().map(Violation::name).collect()) }
    }

    fn taken(metadata: &serde_json::Value) -> Result<Option<Metadata>, Vec<String>> {
        read(&json!({ "metadata": metadata }).to_string(), Metadata::take)
    }

    #[test]
    fn metadata_is_shown_as_it_was_given() {
        let given = json!({"bookingSystem": "pms-7", "Größe": "", "note": "two\nlines \"quoted\""});
        let metadata = taken(&given).expect("good").expect("metadata");
        assert_eq!(serde_json::to_value(&metadata).expect("JSON"), given);
        assert!(!metadata.is_empty());
    }

    #[test]
    fn a_body_without_metadata_says_nothing_about_it() {
        assert_eq!(read("{}", Metadata::take), Ok(None));
        assert_eq!(read("{}", Metadata::take_change), Ok(None));
    }

    #[test]
    fn null_removes_metadata_in_a_change_only() {
        assert_eq!(read(r#"{"metadata":null}"#, Metadata::take_change), Ok(Some(Metadata::default())));
        assert_eq!(read(r#"{"metadata":null}"#, Metadata::take), Err(vec!["metadata".to_owned()]));
        let object = read(r#"{"metadata":{"a":"b"}}"#, Metadata::take_change).expect("good").expect("metadata");
        assert_eq!(serde_json::to_value(object).expect("JSON"), json!({"a": "b"}));
    }

    #[test]
    fn a_value_is_a_text_and_never_an_object_or_a_number() {
        for bad in [json!({"a": 1}), json!({"a": null}), json!({"a": {"b": "c"}}), json!(["a"]), json!("a")] {
            assert_eq!(taken(&bad), Err(vec!["metadata".to_owned()]), "{bad}");
        }
        assert_eq!(
            read(r#"{"metadata":{"a":"1","a":"2"}}"#, Metadata::take),
            Err(vec!["metadata.a".to_owned()]),
            "a doubled name"
        );
    }

    #[test]
    fn each_limit_is_exact_and_each_fault_has_its_place() {
        let members = |count: usize| {
            (0..count).map(|number| (format!("k{number}"), json!(""))).collect::<serde_json::Map<_, _>>()
        };
        assert!(taken(&members(MAX_MEMBERS).into()).is_ok());
        assert_eq!(taken(&members(MAX_MEMBERS + 1).into()), Err(vec!["metadata".to_owned()]));
        let longest = "ä".repeat(MAX_NAME);
        assert!(taken(&json!({ (longest.clone()): "é".repeat(MAX_VALUE) })).is_ok());
        let longer = format!("{longest}ä");
        let faults = taken(&json!({ (longer.clone()): "", "": "", "v": "é".repeat(MAX_VALUE + 1) }));
        assert_eq!(faults, Err(vec!["metadata.".to_owned(), "metadata.v".to_owned(), format!("metadata.{longer}")]));
    }

    #[test]
    fn all_members_together_are_limited_as_json() {
        // `{"a":"…","b":"…",…}`: seven bytes per value, and one more.
        let with_last = |length: usize| {
            let first = ["a", "b", "c", "d"].map(|name| (name.to_owned(), json!("x".repeat(MAX_VALUE - 10))));
            let last = ("e".to_owned(), json!("x".repeat(length)));
            serde_json::Value::from_iter(first.into_iter().chain([last]))
        };
        let left = MAX_TOGETHER - 1 - 5 * 7 - 4 * (MAX_VALUE - 10);
        assert_eq!(with_last(left).to_string().len(), MAX_TOGETHER);
        assert!(taken(&with_last(left)).is_ok());
        assert_eq!(taken(&with_last(left + 1)), Err(vec!["metadata".to_owned()]));
        let quotes = "\"".repeat(MAX_VALUE);
        let escaped = json!({"a": quotes, "b": quotes, "c": quotes});
        assert_eq!(taken(&escaped), Err(vec!["metadata".to_owned()]), "an escaped character takes more bytes");
    }
}
