//! Arguments as a request's query, from which list use cases read their input.

use std::{collections::BTreeSet, ops::RangeInclusive};

use problem::{Query, Rule, Violations, json_body::plain_integer};
use serde_json::{Map, Value};

/// Reads arguments as a request's query. An argument whose type differs from the tool's `schema` is a violation, in
/// addition to those that the use case finds.
pub(super) fn read_query<T>(arguments: &Map<String, Value>, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
    let mut pairs = Vec::new();
    let mut violations = Violations::default();
    for (name, value) in arguments {
        match in_query(value, &schema["properties"][name]) {
            Ok(values) => pairs.extend(values.into_iter().map(|value| (name.as_str(), value))),
            Err(message) => violations.add(name.as_str(), Rule::InvalidType, message),
        }
    }
    let mut query = Query::new(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    query.violations = violations;
    read(query)
}

/// The values of the query parameter that corresponds to an argument. An array becomes a repeated parameter.
///
/// A query contains only strings, so the type is checked here: a string, an integer, or an array of strings. An empty
/// array is refused, since it would produce no parameter, and the list would be unfiltered.
///
/// # Errors
///
/// The requirement, if the argument's type differs from its schema.
fn in_query(value: &Value, schema: &Value) -> Result<Vec<String>, String> {
    match (schema["type"].as_str(), value) {
        (Some("string"), Value::String(text)) => Ok(vec![text.clone()]),
        (Some("string"), _) => Err("must be a string".to_owned()),
        (Some("integer"), Value::Number(number)) => {
            let number = number.to_string();
            Ok(vec![plain_integer(&number).unwrap_or(number)])
        }
        (Some("integer"), _) => Err("must be a number".to_owned()),
        (Some("array"), _) => {
            let [least, most] = ["minItems", "maxItems"].map(|bound| schema[bound].as_u64().unwrap_or_default());
            let message = || format!("must be an array of {least} to {most} different strings, each without a comma");
            texts(value, least..=most).ok_or_else(message)
        }
        // The use case refuses an unknown name regardless of its value.
        _ => Ok(vec![String::new()]),
    }
}

/// The strings in an array of `count` different strings without commas, at which a query would be split.
fn texts(value: &Value, count: RangeInclusive<u64>) -> Option<Vec<String>> {
    let items = value.as_array().filter(|items| count.contains(&(items.len() as u64)))?;
    let texts: BTreeSet<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    let are_whole = texts.len() == items.len() && !texts.iter().any(|text| text.contains(','));
    are_whole.then(|| texts.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use problem::Violation;
    use serde_json::json;

    use super::*;
    use crate::tools;

    const TEXTS: [&str; 6] = ["type", "webhookIdentifier", "eventIdentifier", "createdFrom", "createdUntil", "cursor"];

    /// Reads the arguments of `list_deliveries` with a use case that accepts any string, and returns the states and the
    /// limit.
    fn read(arguments: &Value) -> Result<(Vec<String>, Option<String>), Vec<String>> {
        let schema = (tools::find("list_deliveries").expect("a tool").input)();
        read_query(arguments.as_object().expect("an object"), &schema, |mut query| {
            let states = query.list("status", "a string", |text| Some(text.to_owned()));
            let limit = query.optional("limit", "a string", |text| Some(text.to_owned()));
            for name in TEXTS {
                query.optional(name, "a string", Some);
            }
            let read = query.finish().map(|()| (states, limit));
            read.map_err(|problem| problem.violations().iter().map(Violation::name).collect())
        })
    }

    #[test]
    fn arguments_of_the_types_of_the_schema_are_read_as_a_query() {
        let states = ["cancelled", "delivered", "failed", "pending", "retrying"];
        let owned: Vec<_> = states.iter().map(|state| (*state).to_owned()).collect();
        assert_eq!(read(&json!({ "status": states, "limit": 25 })), Ok((owned, Some("25".to_owned()))));
        assert_eq!(read(&json!({ "limit": 25.0 })), Ok((Vec::new(), Some("25".to_owned()))));
        assert_eq!(read(&json!({ "status": ["failed"] })), Ok((vec!["failed".to_owned()], None)));
        assert_eq!(read(&json!({})), Ok((Vec::new(), None)));
        for name in TEXTS {
            assert!(read(&json!({ name: "x" })).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_filter_of_a_wrong_type_is_lost() {
        let others = [json!([]), json!(["x"]), json!({}), Value::Null, json!(true)];
        for name in TEXTS.into_iter().chain(["limit"]) {
            for value in &others {
                assert_eq!(read(&json!({ name: value })), Err(vec![name.to_owned()]), "{name}: {value}");
            }
        }
        let bad = [
            ("limit", json!("25")),
            ("limit", json!([5])),
            ("cursor", json!(5)),
            ("status", json!("failed")),
            ("status", json!({ "failed": true })),
            ("status", Value::Null),
            ("status", json!([])),
            ("status", json!([1])),
            ("status", json!(["failed", null])),
            ("status", json!(["failed", "failed"])),
            ("status", json!(["failed,retrying"])),
            ("status", json!(["1", "2", "3", "4", "5", "6"])),
            ("status", json!(vec!["failed"; 90_000])),
        ];
        for (name, value) in bad {
            assert_eq!(read(&json!({ name: value })), Err(vec![name.to_owned()]), "{name}");
        }
    }

    #[test]
    fn an_unknown_argument_is_refused_with_any_value() {
        for value in [json!([]), json!({}), Value::Null, json!("x"), json!(["x", "x"])] {
            assert_eq!(read(&json!({ "unknown": value })), Err(vec!["unknown".to_owned()]), "{value}");
        }
        let fields = read(&json!({ "limit": "5", "status": [], "state": [] })).expect_err("violations");
        assert_eq!(fields, ["limit", "status", "state"], "all are found at once");
    }
}
