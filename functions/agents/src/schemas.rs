//! The schemas of tools. What the API takes and gives as well has its schema in the contract (openapi.yaml): tools show
//! that one, and none of their own that could differ.

use std::{collections::HashSet, sync::LazyLock};

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

/// Writes the schemas of results as clients list them: what a model needs to read a result. A model pays for each word of a
/// list in each conversation, so that names, types and short meanings are left of a schema: no bounds and formats, which
/// results keep anyway, and each meaning once, since several tools show the same webhook. A result that conforms to the
/// whole schema conforms to the listed one.
#[derive(Debug, Default)]
pub struct Listing {
    said: HashSet<String>,
}

impl Listing {
    /// The next schema of the list.
    pub fn schema(&mut self, schema: &Value) -> Value {
        /// Longer lists of values are not needed to read a result.
        const MOST_VALUES: usize = 10;
        let Some(keywords) = schema.as_object() else { return schema.clone() };
        let is_strangers = untrusted::is_so(schema);
        let mut listed = Map::new();
        for (name, value) in keywords {
            let value = match name.as_str() {
                "type" => Some(value.clone()),
                "enum" => Some(value.clone()).filter(|values| values.as_array().map_or(0, Vec::len) <= MOST_VALUES),
                "description" if !is_strangers => self.meaning(value),
                "items" => Some(self.schema(value)),
                "properties" if !is_strangers => {
                    let members = value.as_object().into_iter().flatten();
                    Some(members.map(|(name, member)| (name.clone(), self.schema(member))).collect())
                }
                _ => None,
            };
            listed.extend(value.map(|value| (name.clone(), value)));
        }
        listed.into()
    }

    /// The first sentence of a description, on one line, unless it was said before.
    fn meaning(&mut self, description: &Value) -> Option<Value> {
        let sentence = first_sentence(description.as_str().unwrap_or_default());
        self.said.insert(sentence.clone()).then(|| sentence.into())
    }
}

/// The first sentence of a text, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = |rest: &str| rest.starts_with(|first: char| first.is_uppercase() || first == '`');
    let end = text.match_indices(". ").find(|(end, _)| begins(&text[end + 2..]));
    end.map_or(&*text, |(end, _)| &text[..=end]).to_owned()
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
    fn a_listed_schema_has_names_types_and_meanings_alone() {
        let whole = json!({
            "type": "object", "additionalProperties": false, "required": ["a"], "description": "One.\nTwo. Three.",
            "properties": {
                "a": { "type": "string", "enum": ["x", "y"], "description": "A e.g. this", "examples": ["x"] },
                "description": { "type": "array", "items": { "type": "integer", "minimum": 0 } },
                "name": untrusted::schema(json!({ "type": "string" }).as_object().expect("an object")),
            },
        });
        let expected = json!({
            "type": "object", "description": "One.",
            "properties": {
                "a": { "type": "string", "enum": ["x", "y"], "description": "A e.g. this" },
                "description": { "type": "array", "items": { "type": "integer" } },
                "name": { "type": "object" },
            },
        });
        let mut listing = Listing::default();
        assert_eq!(listing.schema(&whole), expected);
        let again = listing.schema(&whole).to_string();
        assert!(again.contains(r#""enum""#) && !again.contains("this"), "each meaning is listed once: {again}");
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
