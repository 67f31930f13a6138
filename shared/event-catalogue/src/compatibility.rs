//! The rule for schemas: members and values may be added, but none may be removed, narrowed or newly required. Two
//! catalogues are compared in a short form:
//!
//! | schema | short form |
//! |---|---|
//! | object | an object of its members; `!` after a required one's name, `*` for any other name |
//! | list | a list with the form of its items |
//! | reference to a shared part | `#name` |
//! | enumeration | `=` and the values with `\|` between them |
//! | other | its type or types |

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::catalogue::Catalogue;

/// A schema's short form.
fn shape(schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return format!("#{}", reference.rsplit('/').next().unwrap_or_default()).into();
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> =
            values.iter().map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect();
        return format!("={}", values.join("|")).into();
    }
    if schema["items"].is_object() {
        return vec![shape(&schema["items"])].into();
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let members = schema["properties"].as_object().into_iter().flatten();
    let mark = |name: &String| if required.contains(&name.as_str().into()) { "!" } else { "" };
    let mut shapes: Map<_, _> =
        members.map(|(name, member)| (format!("{name}{}", mark(name)), shape(member))).collect();
    if schema["additionalProperties"].is_object() {
        shapes.insert("*".to_owned(), shape(&schema["additionalProperties"]));
    }
    match &schema["type"] {
        _ if !shapes.is_empty() => shapes.into(),
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",").into(),
        Value::String(one) => one.as_str().into(),
        _ => "any".into(),
    }
}

/// The short forms of all types, and of the shared parts as `#name`.
fn shapes(catalogue: &Catalogue) -> BTreeMap<String, Value> {
    let types = catalogue.types.iter().map(|kind| (kind.value.clone(), &kind.schema));
    let parts = catalogue.parts.iter().map(|(name, part)| (format!("#{name}"), part));
    types.chain(parts).map(|(name, json)| (name, shape(&serde_json::from_str(json).unwrap_or_default()))).collect()
}

/// How a catalogue that replaces an earlier one violates the rule.
pub fn violations(earlier: &Catalogue, now: &Catalogue) -> Vec<String> {
    compare(&shapes(earlier), &shapes(now))
}

fn compare(earlier: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<String> {
    let compared = |(name, old): (&String, &Value)| match now.get(name) {
        Some(new) => breaks(name, old, new),
        None => vec![format!("{name} is missing")],
    };
    earlier.iter().flat_map(compared).collect()
}

/// How a new short form violates the rule.
fn breaks(path: &str, old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let kept = old.iter().flat_map(|(name, member)| match new.get(name) {
                Some(now) => breaks(&format!("{path}/{name}"), member, now),
                None => vec![format!("{path}/{name} is missing, or changed between required and optional")],
            });
            let is_known = |name: &str| old.contains_key(name) || old.contains_key(name.trim_end_matches('!'));
            let added = new.keys().filter(|name| name.ends_with('!') && !is_known(name));
            kept.chain(added.map(|name| format!("{path}/{name} is new and required"))).collect()
        }
        (Value::Array(old), Value::Array(new)) => breaks(&format!("{path}/*"), &old[0], &new[0]),
        (Value::String(old), Value::String(new)) if old.starts_with('=') && new.starts_with('=') => {
            let now: Vec<_> = new[1..].split('|').collect();
            let gone = old[1..].split('|').filter(|value| !now.contains(value));
            gone.map(|value| format!("{path} lost the value {value}")).collect()
        }
        _ if old == new => Vec::new(),
        _ => vec![format!("{path} was {old} and is now {new}")],
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    const RELEASED: &str = include_str!("../released_schemas.json");
    const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    /// The current short forms, for the next release.
    const CURRENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/released_schemas.json");

    #[test]
    fn no_schema_of_the_last_release_lost_or_narrowed_a_member() {
        let now = shapes(&crate::read(Path::new(crate::TRAVEL)).expect("no mistakes"));
        fs::create_dir_all(TARGET).expect("the folder is writable");
        fs::write(CURRENT, serde_json::to_string(&now).expect("JSON") + "\n").expect("the folder is writable");
        let released: BTreeMap<String, Value> = serde_json::from_str(RELEASED).expect("JSON");
        let broken = compare(&released, &now);
        assert!(broken.is_empty(), "make a new type instead: {broken:#?}");
        let is_complete = released.len() > 100 && RELEASED.len() < 60 * 1024;
        assert!(is_complete, "after a release: cp {CURRENT} shared/event-catalogue");
    }

    #[test]
    fn additions_are_compatible_and_removals_are_not() {
        let old = serde_json::json!({ "a!": "string", "b": ["#id"], "c": { "d": "=x|y" } });
        for (new, is_compatible) in [
            (r##"{"a!":"string","b":["#id"],"c":{"d":"=y|z|x"},"e":"integer"}"##, true),
            (r##"{"a!":"string","b":["#id"],"c":{"d":"=x"}}"##, false),
            (r##"{"a!":"string","b":["#id"],"c":{}}"##, false),
            (r##"{"a":"string","b":["#id"],"c":{"d":"=x|y"}}"##, false),
            (r##"{"a!":"string","b!":["#id"],"c":{"d":"=x|y"}}"##, false),
            (r##"{"a!":"string","b":["#id"],"c":{"d":"=x|y"},"e!":"integer"}"##, false),
            (r##"{"a!":"string,null","b":["#id"],"c":{"d":"=x|y"}}"##, false),
            (r##"{"a!":"string","b":["#ids"],"c":{"d":"=x|y"}}"##, false),
            (r##"{"a!":"string","b":"#id","c":{"d":"=x|y"}}"##, false),
        ] {
            let broken = breaks("", &old, &serde_json::from_str(new).expect("JSON"));
            assert_eq!(broken.is_empty(), is_compatible, "{new}: {broken:?}");
        }
    }
}
