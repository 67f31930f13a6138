//! Turns the catalogue of event types into code. A malformed catalogue does not compile, so that none is ever deployed.

use std::{collections::HashSet, env, fmt::Write, fs, path::Path};

use serde_json::{Map, Value};

const CATALOGUE: &str = "src/events/catalogue.json";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={CATALOGUE}");
    let text = fs::read_to_string(CATALOGUE).expect("the catalogue is in src/events");
    let entries: Vec<Map<String, Value>> = serde_json::from_str(&text).expect("the catalogue is an array of objects");
    assert!(!entries.is_empty(), "the catalogue is empty");
    let mut code = String::from("pub(super) const TYPES: &[EventType] = &[\n");
    let mut values = HashSet::new();
    let mut labels = HashSet::new();
    for entry in &entries {
        let [label, value] =
            ["label", "value"].map(|member| entry.get(member).and_then(Value::as_str).unwrap_or_default());
        let source =
            source(entry.get("source")).unwrap_or_else(|| panic!("{value}: `source` must be `service` or absent"));
        let members = entry.keys().filter(|name| !["label", "value", "source"].contains(&name.as_str()));
        assert!(members.count() == 0, "{value}: an entry has `label`, `value` and optionally `source`");
        assert!(is_label(label), "{value}: the label `{label}` is not a phrase of 3 to 80 characters");
        assert!(is_value(value), "`{value}` is not of the form area.thing.happened");
        assert!(values.insert(value), "`{value}` comes twice");
        assert!(labels.insert(label), "the label `{label}` comes twice");
        writeln!(code, "    EventType {{ label: {label:?}, value: {value:?}, source: Source::{source} }},")
            .expect("a String accepts any text");
    }
    code.push_str("];\n");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("catalogue.rs"), code).expect("OUT_DIR is writable");
}

/// The variant of `Source` of an entry; `Platform` without a `source`, `None` for an unknown one.
fn source(given: Option<&Value>) -> Option<&'static str> {
    match given {
        None => Some("Platform"),
        Some(given) => (given == "service").then_some("Service"),
    }
}

fn is_label(label: &str) -> bool {
    (3..=80).contains(&label.len()) && label.starts_with(char::is_uppercase) && label.trim() == label
}

/// Two or three words of lower-case letters, digits and `_`, with dots between.
fn is_value(value: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    (2..=3).contains(&value.split('.').count()) && value.split('.').all(word)
}
