//! The members of a Problem's `properties`: openapi.yaml declares each member that the code sets or an example
//! contains, with the kinds of Problem that have it.

use std::{collections::BTreeSet, fs, path::Path};

use problem::ProblemKind;
use serde_json::Value;
use template::yaml_to_json;

/// The folders whose code creates Problems.
const FOLDERS: [&str; 4] = ["functions", "local/src", "operator", "shared"];

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn contract() -> Value {
    let text = fs::read_to_string(project().join("openapi.yaml")).expect("the project has an openapi.yaml");
    yaml_to_json(&text).expect("openapi.yaml is YAML")
}

fn declared(contract: &Value) -> &serde_json::Map<String, Value> {
    let properties = contract.pointer("/components/schemas/ProblemProperties/properties");
    properties.and_then(Value::as_object).expect("openapi.yaml declares them")
}

fn kinds(member: &Value) -> BTreeSet<&str> {
    member["x-problem-kinds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The contents of all Rust files in a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).expect("a file can be read"));
        }
    }
}

#[test]
fn the_contract_declares_every_property_that_the_code_sets() {
    let mut texts = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&project().join(folder), &mut texts));
    let calls = texts.iter().flat_map(|text| text.split("with_property(").skip(1));
    let names: BTreeSet<&str> = calls
        .filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let contract = contract();
    let declared: BTreeSet<&str> = declared(&contract).keys().map(String::as_str).collect();
    assert_eq!(names, declared);
}

#[test]
fn each_property_has_kinds_that_exist() {
    for (name, member) in declared(&contract()) {
        let kinds = kinds(member);
        assert!(!kinds.is_empty(), "{name} has no x-problem-kinds");
        for kind in kinds {
            assert!(ProblemKind::of_slug(kind).is_some(), "{name}: {kind}");
        }
    }
}

#[test]
fn the_reference_lists_every_limit() {
    let reference = fs::read_to_string(project().join("docs/reference.md")).expect("the project has a reference");
    let (_, section) = reference.split_once("## Limits").expect("it has limits");
    let (section, _) = section.split_once("\n## ").expect("other sections follow");
    let rows = section.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
    let contract = contract();
    let known = declared(&contract)["limitName"]["examples"].as_array().into_iter().flatten();
    assert_eq!(rows.collect::<BTreeSet<_>>(), known.filter_map(Value::as_str).collect());
}

#[test]
fn examples_have_the_properties_of_their_kind() {
    fn check(value: &Value, declared: &serde_json::Map<String, Value>) {
        match value {
            Value::Object(members) => {
                if let (Some(kind), Some(properties)) = (value["kind"].as_str(), value["properties"].as_object())
                    && ProblemKind::of_slug(kind).is_some()
                {
                    for name in properties.keys() {
                        let is_declared = declared.get(name).is_some_and(|member| kinds(member).contains(kind));
                        assert!(is_declared, "ProblemProperties does not declare `{name}` for {kind}");
                    }
                }
                members.values().for_each(|member| check(member, declared));
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, declared)),
            _ => {}
        }
    }
    let contract = contract();
    check(&contract, declared(&contract));
}
