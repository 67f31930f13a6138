//! The schemas of tools. What the API takes and gives as well has its schema in the contract (openapi.yaml): tools show
//! that one, and none of their own that could differ.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::untrusted;

/// Members that say once more what another member says, for clients that were published for other platforms: a model
/// would only read them.
const LEFT_OUT: [&str; 5] = ["entity", "health", "ownerName", "ownerType", "userIdentifier"];

/// The schemas of the contract, by name.
static CONTRACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/schemas.json"))).expect("the build script wrote JSON")
});

/// The schema of this name in the contract: references resolved, and strangers' texts in the form in which they are
/// marked.
pub fn of(name: &str) -> Value {
    resolved(&CONTRACT[name])
}

/// An object with these members, some of which must be there, and no others.
pub fn object(members: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
}

/// A list of things with this schema.
pub fn list(items: Value, description: &str) -> Value {
    json!({ "type": "array", "items": items, "description": description })
}

/// The same schema with another description.
pub fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The schema of an object with these members as well.
pub fn with(mut object: Value, members: Value) -> Value {
    if let (Some(known), Value::Object(more)) = (object["properties"].as_object_mut(), members) {
        known.extend(more);
    }
    object
}

/// The same where this member must be there.
pub fn requiring(mut object: Value, member: &str) -> Value {
    match object["required"].as_array_mut() {
        Some(required) => required.push(member.into()),
        None => object["required"] = json!([member]),
    }
    object
}

/// The same with examples.
pub fn with_examples(mut schema: Value, examples: Value) -> Value {
    schema["examples"] = examples;
    schema
}

fn resolved(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let reference = keywords.get("$ref").and_then(Value::as_str);
            let referred = reference.and_then(|reference| reference.rsplit('/').next()).map(of);
            // What stands beside a reference is said of this place.
            let mut whole = referred.and_then(|referred| referred.as_object().cloned()).unwrap_or_default();
            let beside = keywords.iter().filter(|(name, _)| *name != "$ref");
            whole.extend(beside.map(|(name, value)| (name.clone(), resolved(value))));
            leave_out(&mut whole);
            if untrusted::is_so(schema) { untrusted::schema(&whole) } else { whole.into() }
        }
        Value::Array(items) => items.iter().map(resolved).collect(),
        other => other.clone(),
    }
}

fn leave_out(schema: &mut Map<String, Value>) {
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !LEFT_OUT.iter().any(|left_out| name == left_out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_the_contract_stands_for_itself() {
        for name in ["Webhook", "WebhookRequest", "Delivery", "DeliveryPage", "Recovery", "Connection"] {
            let schema = of(name);
            assert_eq!(schema["type"], "object", "{name}");
            assert!(!schema.to_string().contains("$ref"), "{name}");
        }
        assert_eq!(of("Delivery")["properties"]["event"]["properties"]["id"]["pattern"], "^evt_[0-9a-z]+$");
    }

    #[test]
    fn what_stands_beside_a_reference_is_said_of_its_place() {
        let created = &of("Delivery")["properties"]["createdDate"];
        assert_eq!(created["description"], "When the delivery was made of the event.");
        assert_eq!(created["format"], "date-time");
    }

    #[test]
    fn nothing_is_said_twice() {
        let webhook = of("Webhook");
        for name in LEFT_OUT {
            assert!(webhook["properties"].get(name).is_none(), "{name}");
            assert!(!webhook["required"].as_array().expect("a list").contains(&name.into()), "{name}");
        }
        assert!(webhook["properties"].get("ownerIdentifier").is_some());
    }
}
