//! Normalizing a call's arguments: models and clients' forms write the same value in several ways.

use std::collections::BTreeMap;

use problem::json_body::plain_integer;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    protocol::json::{self, Json},
    schemas::allows,
};

/// Arguments that n8n adds to each call for its own use: <https://github.com/n8n-io/n8n/issues/21500>.
const ADDED_BY_CLIENTS: [&str; 5] = ["action", "chatInput", "sessionId", "tool", "toolCallId"];

/// Normalizes arguments for use cases. Models and clients' forms send null or an empty string for members that they
/// mean to leave out. Some write integers as `2.0` or `"2"`, truth values as `"true"`, and arrays and objects as texts of
/// JSON. Such members are removed or converted to the schema's type.
///
/// Null removes a webhook's member if that member is optional. But if a member that cannot be null is null as well, the
/// caller sends null for everything that it leaves out, and nothing is removed.
///
/// Only members that the schema defines are changed. Members that some clients add to each call are removed. Any
/// other unknown member is kept, so that the use case refuses it by name.
pub fn normalized(arguments: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let member = |name: &str| &schema["properties"][name];
    let cannot_be_null = |name: &str| !member(name).is_null() && !allows(member(name), "null");
    let fills_with_null = arguments.iter().any(|(name, value)| value.is_null() && cannot_be_null(name));
    let normalize = |(name, value): (String, Value)| {
        let member = &schema["properties"][&name];
        let is_left_out = match &value {
            _ if member.is_null() => ADDED_BY_CLIENTS.contains(&&*name),
            Value::Null => fills_with_null || !allows(member, "null"),
            // No argument has an empty string as its value.
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        (!is_left_out).then(|| (name, typed(value, member)))
    };
    arguments.into_iter().filter_map(normalize).collect()
}

/// A value with the type of its schema, if it can have only this type.
fn typed(value: Value, schema: &Value) -> Value {
    match value {
        Value::String(text) if !allows(schema, "string") => meant(text, schema),
        value if allows(schema, "integer") => integer(value),
        value => value,
    }
}

/// The value that a text means, if the schema allows its type; otherwise the text, which the use case refuses.
fn meant(text: String, schema: &Value) -> Value {
    let number = allows(schema, "integer").then(|| plain_integer(&text)).flatten();
    if let Some(number) = number.and_then(|number| number.parse::<i64>().ok()) {
        return number.into();
    }
    if allows(schema, "boolean") && ["true", "false"].contains(&&*text) {
        return (text == "true").into();
    }
    let is_allowed = |value: &Value| match value {
        Value::Array(_) => allows(schema, "array"),
        Value::Object(_) => allows(schema, "object"),
        _ => false,
    };
    parsed(&text).filter(is_allowed).unwrap_or_else(|| text.into())
}

/// A text's JSON; `None` if a member is given twice, or if parsing loses digits of a number.
fn parsed(text: &str) -> Option<Value> {
    let Json { value, doubled } = json::read(text.as_bytes()).ok()?;
    let is_exact = doubled.is_none() && serde_json::from_str::<&RawValue>(text).is_ok_and(keeps_digits);
    is_exact.then_some(value)
}

/// Whether parsing keeps all digits of the numbers.
fn keeps_digits(json: &RawValue) -> bool {
    /// The number of digits that a double keeps in any case.
    const OF_DOUBLE: usize = 15;
    let text = json.get();
    match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str::<BTreeMap<String, &RawValue>>(text)
            .is_ok_and(|members| members.into_values().all(keeps_digits)),
        Some(b'[') => {
            serde_json::from_str::<Vec<&RawValue>>(text).is_ok_and(|items| items.into_iter().all(keeps_digits))
        }
        Some(b'-' | b'0'..=b'9') => {
            let digits = text.split(['e', 'E']).next().unwrap_or_default().bytes().filter(u8::is_ascii_digit);
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() || digits.count() <= OF_DOUBLE
        }
        _ => true,
    }
}

/// Converts a number without a fraction to an integer, as JSON Schema defines one. A double holds every integer up to
/// 2^53.
fn integer(value: Value) -> Value {
    const MAX: f64 = 9_007_199_254_740_992.0;
    match value.as_f64() {
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < MAX => (number as i64).into(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools;

    #[test]
    fn null_arguments_count_as_absent() {
        for tool in tools::ALL {
            let schema = (tool.input)();
            // Null removes these webhook members.
            let clears = |name: &String| ["eventFilter", "maxAttemptsPerSecond"].contains(&&**name);
            let names = || schema["properties"].as_object().expect("an object").keys().filter(|name| !clears(name));
            for nothing in [Value::Null, "".into()] {
                let left_out: Map<_, _> = names().map(|name| (name.clone(), nothing.clone())).collect();
                assert_eq!(normalized(left_out, &schema), Map::new(), "{}", tool.name);
            }
        }
        let schema = (tools::find("list_deliveries").expect("a tool").input)();
        let given =
            |arguments: Value| Value::Object(normalized(arguments.as_object().cloned().expect("an object"), &schema));
        assert_eq!(given(json!({ "cursor": "", "limit": 2.0 })), json!({ "limit": 2 }));
        assert_eq!(given(json!({ "limit": "2", "sessionId": "s", "toolCallId": "c" })), json!({ "limit": 2 }));
        // Other arguments are kept, and refused.
        for refused in [
            json!({ "unknown": null }),
            json!({ "type": 1 }),
            json!({ "limit": 2.5 }),
            json!({ "limit": 1e300 }),
            json!({ "limit": "2.5" }),
            json!({ "limit": "two" }),
            json!({ "status": [null] }),
        ] {
            assert_eq!(given(refused.clone()), refused);
        }
        assert_eq!(given(json!({ "limit": -2.0 })), json!({ "limit": -2 }));
        let schema = (tools::find("change_webhook").expect("a tool").input)();
        let change = json!({ "enabled": "false", "name": "5", "maxAttemptsPerSecond": null, "version": "3" });
        let expected = json!({ "enabled": false, "name": "5", "maxAttemptsPerSecond": null, "version": 3 });
        assert_eq!(Value::Object(normalized(change.as_object().cloned().expect("an object"), &schema)), expected);
    }

    #[test]
    fn an_array_or_an_object_may_be_a_text_of_json() {
        let of = |tool: &str, arguments: Value| {
            let schema = (tools::find(tool).expect("a tool").input)();
            Value::Object(normalized(arguments.as_object().cloned().expect("an object"), &schema))
        };
        assert_eq!(of("list_deliveries", json!({ "status": r#" ["failed"] "# })), json!({ "status": ["failed"] }));
        let filter = r#"{"bookingNumber":[1152921504606846977,{"numeric":[">=",10.5]}]}"#;
        let texts = json!({ "eventFilter": filter, "eventList": "[]", "headers": r#"{"X-Key":"[1]"}"#, "name": "[1]" });
        let meant = of("change_webhook", texts);
        assert_eq!(meant["eventFilter"].to_string(), filter);
        assert_eq!((&meant["eventList"], &meant["headers"]), (&json!([]), &json!({ "X-Key": "[1]" })));
        assert_eq!(meant["name"], "[1]", "a member that may be a string keeps its text");
        // Other texts are kept, and refused.
        for (name, text) in [
            ("eventList", "booking.created"),
            ("eventList", r#"["booking.created""#),
            ("eventList", r#"{"booking.created":true}"#),
            ("eventList", "null"),
            ("eventFilter", "[]"),
            ("eventFilter", r#"{"a":[1],"a":[2]}"#),
            ("eventFilter", r#"{"a":[0.12345678901234567890]}"#),
            ("eventFilter", r#"{"a":[{"b":[123456789012345678901234567890]}]}"#),
            ("eventFilter", r#"{"a":[1e400]}"#),
            ("enabled", "[true]"),
        ] {
            let kept = json!({ name: text });
            assert_eq!(of("change_webhook", kept.clone()), kept);
        }
    }

    #[test]
    fn a_caller_that_fills_in_null_removes_no_filter() {
        let schema = (tools::find("change_webhook").expect("a tool").input)();
        let kept =
            |arguments: Value| Value::Object(normalized(arguments.as_object().expect("an object").clone(), &schema));
        let filled = json!({ "name": "n", "eventFilter": null, "maxAttemptsPerSecond": null, "enabled": null });
        assert_eq!(kept(filled), json!({ "name": "n" }));
        let removal = json!({ "name": "n", "eventFilter": null });
        assert_eq!(kept(removal.clone()), removal);
    }
}
