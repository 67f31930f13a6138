//! No example in the two documents contains a `$ref` member. Libraries that resolve references look for `$ref`
//! everywhere, and fail if it leads nowhere.

use std::{fs, path::Path};

use serde_json::Value;
use webhooks::events::asyncapi;

/// The keywords whose values are data.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// The locations of `$ref` members within a document's data.
fn references(value: &Value, place: &str, is_data: bool) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let of = |(name, member): (&String, &Value)| {
                let place = format!("{place}/{name}");
                let mut found = references(member, &place, is_data || DATA.contains(&name.as_str()));
                found.extend((is_data && name == "$ref").then_some(place));
                found
            };
            members.iter().flat_map(of).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| references(item, place, is_data)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn no_example_of_a_document_contains_a_reference() {
    let yaml = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml"));
    let contract = template::yaml_to_json(&yaml.expect("the project has an openapi.yaml")).expect("YAML");
    let events = serde_json::from_str(&asyncapi::document("https://api.waypost.example")).expect("JSON");
    for document in [contract, events] {
        assert_eq!(references(&document, "", false), Vec::<String>::new());
    }
    let planted = serde_json::json!({ "a": { "$ref": "#/b" }, "examples": { "x": { "value": [{ "$ref": "#/c" }] } } });
    assert_eq!(references(&planted, "", false), ["/examples/x/value/$ref"]);
}
