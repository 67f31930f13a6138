//! A schema of openapi.yaml that repeats another agrees with it.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use template::yaml_to_json;

/// A schema that is another with a secret, or without its large members, and the members that it has in addition.
/// Generators drop the parts of `allOf`, so the members are repeated.
const REPEATING: [(&str, &str, &[&str]); 4] = [
    ("ApplicationWithSecret", "Application", &["clientSecret", "secretKey"]),
    ("DeliverySummary", "Delivery", &[]),
    ("PanelLinkWithUrl", "PanelLink", &["url"]),
    ("WebhookWithSecret", "Webhook", &["signingSecret"]),
];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document() -> Value {
    yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML")
}

fn undescribed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("description");
    }
    schema
}

fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_schema_that_repeats_another_has_the_same_members() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (name, base, added) in REPEATING {
        let members = schemas[name]["properties"].as_object().expect(name);
        for (member, schema) in members.iter().filter(|(member, _)| !added.contains(&member.as_str())) {
            assert_eq!(undescribed(schema), undescribed(&schemas[base]["properties"][member]), "{name}.{member}");
        }
        let required = names(&schemas[base]["required"]).into_iter().filter(|member| members.contains_key(*member));
        let lacking: Vec<_> = required.filter(|member| !names(&schemas[name]["required"]).contains(member)).collect();
        assert_eq!(lacking, Vec::<&str>::new(), "{name} requires these as {base} does");
    }
}
