//! Tools' schemas. Tools use the contract's schemas (openapi.yaml) instead of copies, which could differ.

use std::{collections::HashSet, mem, sync::LazyLock};

use serde_json::{Map, Value, json};

use crate::untrusted;

/// The members of the contract that tools leave out, each with the reason. They repeat another member for published
/// clients of other platforms.
pub const LEFT_OUT: [(&str, &str); 5] = [
    ("entity", "repeats `managingEntity`"),
    ("health", "an older form of `deliveryState`"),
    ("ownerName", "repeats `ownerIdentifier`"),
    ("ownerType", "is the same for every owner"),
    ("userIdentifier", "repeats `ownerIdentifier`"),
];

/// Whether tools leave out this member of the contract.
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == name)
}

/// The schemas of the contract, by name.
static CONTRACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/schemas.json"))).expect("the build script wrote JSON")
});

/// The contract's schema with this name, with references resolved and third-party text in its marked form.
pub fn of(name: &str) -> Value {
    resolved(&CONTRACT[name])
}

/// The schema of an object with exactly these members, of which `required` are required.
pub fn object(members: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
}

/// The schema of a list of items with this schema.
pub fn list(items: Value, description: &str) -> Value {
    json!({ "type": "array", "items": items, "description": description })
}

/// The schema with another description.
pub fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The schema of the cursor for a list's next page.
pub fn cursor() -> Value {
    json!({
        "type": "string",
        "maxLength": 1_000,
        "description": "The `nextCursor` of the previous page.",
    })
}

/// The schema of an object with additional members.
pub fn with(mut object: Value, members: Value) -> Value {
    if let (Some(known), Value::Object(more)) = (object["properties"].as_object_mut(), members) {
        known.extend(more);
    }
    object
}

/// The schema with this member required.
pub fn requiring(mut object: Value, member: &str) -> Value {
    match object["required"].as_array_mut() {
        Some(required) => required.push(member.into()),
        None => object["required"] = json!([member]),
    }
    object
}

/// Whether a schema or one of its alternatives has this type.
pub fn allows(schema: &Value, name: &str) -> bool {
    schema["type"] == name || alternatives(schema).any(|alternative| allows(alternative, name))
}

/// The schema of the values other than null.
pub fn besides_null(schema: &Value) -> &Value {
    alternatives(schema).find(|alternative| alternative["type"] != "null").unwrap_or(schema)
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["anyOf"].as_array().into_iter().flatten()
}

/// The schema with examples.
pub fn with_examples(mut schema: Value, examples: Value) -> Value {
    schema["examples"] = examples;
    schema
}

/// Shortens results' schemas for the list of tools, which uses up a model's context in each conversation. A listed
/// schema keeps names, types and short descriptions, but no bounds and formats. Each description and enumeration is
/// listed once, since several tools show the same webhook. A result that conforms to the full schema conforms to the
/// listed one.
#[derive(Debug, Default)]
pub struct Listing {
    said: HashSet<String>,
}

impl Listing {
    /// The next schema of the list.
    pub fn schema(&mut self, schema: &Value) -> Value {
        /// The longest enumeration that is listed. Longer ones are not needed to read a result.
        const MOST_VALUES: usize = 10;
        let Some(keywords) = schema.as_object() else { return schema.clone() };
        let is_untrusted = untrusted::is_so(schema);
        let mut listed = Map::new();
        for (name, value) in keywords {
            let value = match name.as_str() {
                "type" | "const" => Some(value.clone()),
                "enum" | "examples" if value.as_array().map_or(0, Vec::len) > MOST_VALUES => None,
                "enum" => self.said.insert(value.to_string()).then(|| value.clone()),
                // The known values of a string that may get more values later.
                "examples" if keywords.contains_key("pattern") => {
                    self.said.insert(value.to_string()).then(|| value.clone())
                }
                "description" if !is_untrusted => self.meaning(value),
                "items" => Some(self.schema(value)),
                "anyOf" => {
                    let alternatives = value.as_array().into_iter().flatten();
                    Some(alternatives.map(|alternative| self.schema(alternative)).collect())
                }
                "properties" if !is_untrusted => {
                    let members = value.as_object().into_iter().flatten();
                    Some(members.map(|(name, member)| (name.clone(), self.schema(member))).collect())
                }
                _ => None,
            };
            listed.extend(value.map(|value| (name.clone(), value)));
        }
        listed.into()
    }

    /// The first sentence of a description, on one line, unless an earlier schema in the list has it.
    fn meaning(&mut self, description: &Value) -> Option<Value> {
        let sentence = first_sentence(description.as_str().unwrap_or_default());
        self.said.insert(sentence.clone()).then(|| sentence.into())
    }
}

/// The first sentence of some text, on one line.
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
            // Keywords next to a reference apply to this occurrence.
            let mut whole = referred.and_then(|referred| referred.as_object().cloned()).unwrap_or_default();
            let beside = keywords.iter().filter(|(name, _)| *name != "$ref");
            whole.extend(beside.map(|(name, value)| (name.clone(), resolved(value))));
            leave_out(&mut whole);
            if untrusted::is_so(schema) { untrusted::schema(&whole) } else { with_one_type(whole).into() }
        }
        Value::Array(items) => items.iter().map(resolved).collect(),
        other => other.clone(),
    }
}

/// Replaces several types with alternatives of one type each. Some models' endpoints refuse a request with a tool whose
/// schema has an array as a `type`.
fn with_one_type(mut schema: Map<String, Value>) -> Map<String, Value> {
    /// The keywords that apply to a value of any type.
    const OF_ALL: [&str; 3] = ["default", "description", "examples"];
    let Some(Value::Array(types)) = schema.get("type").cloned() else { return schema };
    let mut keywords = Map::new();
    for (name, value) in mem::take(&mut schema) {
        let all = if OF_ALL.contains(&&*name) { &mut schema } else { &mut keywords };
        all.insert(name, value);
    }
    let alternative = |name: Value| {
        let mut alternative = if name == "null" { Map::new() } else { keywords.clone() };
        alternative.insert("type".to_owned(), name);
        alternative
    };
    schema.insert("anyOf".to_owned(), types.into_iter().map(alternative).collect());
    schema
}

fn leave_out(schema: &mut Map<String, Value>) {
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        members.retain(|name, _| !is_left_out(name));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(is_left_out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_the_contract_is_complete_in_itself() {
        for name in ["Webhook", "WebhookRequest", "Delivery", "DeliveryPage", "Recovery", "Connection"] {
            let schema = of(name);
            assert_eq!(schema["type"], "object", "{name}");
            assert!(!schema.to_string().contains("$ref"), "{name}");
        }
        assert_eq!(of("Delivery")["properties"]["event"]["properties"]["id"]["pattern"], "^evt_[0-9a-z]+$");
    }

    #[test]
    fn keywords_beside_a_reference_apply_to_its_occurrence() {
        let created = &of("Delivery")["properties"]["createdDate"];
        assert_eq!(created["description"], "When the delivery was created for the event.");
        assert_eq!(created["format"], "date-time");
    }

    #[test]
    fn a_member_with_several_types_has_alternatives_of_one_type() {
        let limit = &of("WebhookChange")["properties"]["maxAttemptsPerSecond"];
        assert_eq!(limit["anyOf"], json!([{ "type": "integer", "minimum": 1, "maximum": 100 }, { "type": "null" }]));
        assert!(limit["description"].is_string() && limit.get("type").is_none(), "{limit}");
        assert!(allows(limit, "integer") && allows(limit, "null") && !allows(limit, "string"));
        assert_eq!(besides_null(limit)["maximum"], 100);
        let name = &of("WebhookChange")["properties"]["name"];
        assert!(!allows(name, "null") && besides_null(name) == name);
    }

    #[test]
    fn a_listed_schema_has_only_names_types_and_short_descriptions() {
        let whole = json!({
            "type": "object", "additionalProperties": false, "required": ["a"], "description": "One.\nTwo. Three.",
            "properties": {
                "a": { "type": "string", "enum": ["x", "y"], "description": "A e.g. this", "examples": ["x"] },
                "description": { "type": "array", "items": { "type": "integer", "minimum": 0 } },
                "name": untrusted::schema(json!({ "type": "string" }).as_object().expect("an object")),
                "reason": { "anyOf": [{ "type": "string", "format": "uri" }, { "type": "null" }], "default": null },
                "status": { "type": "string", "pattern": "^[a-z]+$", "examples": ["failed"] },
            },
        });
        let expected = json!({
            "type": "object", "description": "One.",
            "properties": {
                "a": { "type": "string", "enum": ["x", "y"], "description": "A e.g. this" },
                "description": { "type": "array", "items": { "type": "integer" } },
                "name": { "type": "object" },
                "reason": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "status": { "type": "string", "examples": ["failed"] },
            },
        });
        let mut listing = Listing::default();
        assert_eq!(listing.schema(&whole), expected);
        let again = listing.schema(&whole).to_string();
        let is_repeated = ["enum", "examples", "this"].iter().any(|word| again.contains(word));
        assert!(!is_repeated, "descriptions and values are listed once: {again}");
    }

    #[test]
    fn repeated_members_are_left_out() {
        let webhook = of("Webhook");
        for (name, _) in LEFT_OUT {
            assert!(webhook["properties"].get(name).is_none(), "{name}");
            assert!(!webhook["required"].as_array().expect("a list").contains(&name.into()), "{name}");
        }
        assert!(webhook["properties"].get("ownerIdentifier").is_some());
    }
}
