//! Turns the catalogue of event types, their schemas and their samples into code. A malformed catalogue does not compile,
//! and neither does a type without a schema, so that none is ever deployed.

#[path = "src/events/json_text.rs"]
mod json_text;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    env,
    fmt::Write,
    fs,
    path::Path,
};

use serde_json::{Map, Value, value::RawValue};

use json_text::without_space;

const CATALOGUE: &str = "src/events/catalogue.json";
/// A file for each area of the catalogue, and `common.json` with the parts that schemas share.
const SCHEMAS: &str = "src/events/schemas";
const JSON_TEXT: &str = "src/events/json_text.rs";
/// The beginning of a reference to a shared part, and of the reference that replaces it in a self-contained schema.
const SHARED: &str = "common.json#/$defs/";
const LOCAL: &str = "#/$defs/";

type Members = BTreeMap<String, Box<RawValue>>;

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={CATALOGUE}");
    let text = fs::read_to_string(CATALOGUE).expect("the catalogue is in src/events");
    let entries: Vec<Map<String, Value>> = serde_json::from_str(&text).expect("the catalogue is an array of objects");
    assert!(!entries.is_empty(), "the catalogue is empty");
    println!("cargo::rerun-if-changed={SCHEMAS}");
    println!("cargo::rerun-if-changed={JSON_TEXT}");
    let mut schemas = Schemas::read();
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
        // Events that the service itself publishes have no subject.
        let subject = Some(schemas.add(value)).filter(|_| source == "Platform");
        writeln!(
            code,
            "    EventType {{ label: {label:?}, value: {value:?}, source: Source::{source}, subject: {subject:?} }},"
        )
        .expect(ANY_TEXT);
    }
    code.push_str("];\n");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name, code| fs::write(Path::new(&out).join(name), code).expect("OUT_DIR is writable");
    write("catalogue.rs", code);
    write("type_details.rs", schemas.code());
}

const ANY_TEXT: &str = "a String accepts any text";

/// The entries of all schema files, and the code for those of the catalogue.
struct Schemas {
    parts: BTreeMap<String, String>,
    entries: Members,
    details: String,
    samples: String,
}

impl Schemas {
    fn read() -> Self {
        let mut parts = BTreeMap::new();
        let mut entries = Members::new();
        for file in fs::read_dir(SCHEMAS).expect("the schemas are in src/events") {
            let path = file.expect("a folder can be read").path();
            let text = fs::read_to_string(&path).expect("a schema file is text");
            let mut members = members(&text);
            if path.ends_with("common.json") {
                let defined = self::members(members["$defs"].get());
                parts = defined.into_iter().map(|(name, part)| (name, without_space(part.get()))).collect();
                continue;
            }
            let area = path.file_stem().and_then(|name| name.to_str()).expect("a file of ours has a plain name");
            let is_of_area = |kind: &String| kind.split('.').next() == Some(area);
            assert!(members.keys().all(is_of_area), "{}: an entry belongs to another area", path.display());
            entries.append(&mut members);
        }
        Self { parts, entries, details: String::new(), samples: String::new() }
    }

    /// Adds the code of a type; returns the JSON Pointer of its subject.
    fn add(&mut self, kind: &str) -> String {
        let entry = self.entries.remove(kind).unwrap_or_else(|| panic!("{kind} has no schema in {SCHEMAS}"));
        let entry = members(entry.get());
        let known = ["description", "samples", "schema", "since", "subject", "version"];
        assert!(entry.keys().eq(known), "{kind}: an entry has exactly {known:?}");
        let text = |name: &str| -> String {
            serde_json::from_str(entry[name].get()).unwrap_or_else(|_| panic!("{kind}: `{name}` is not a text"))
        };
        let version: u32 = serde_json::from_str(entry["version"].get()).expect("a version is a number");
        let [since, description, subject] = ["since", "description", "subject"].map(text);
        assert!(subject.starts_with('/') && !subject.contains('~'), "{kind}: `subject` is not a plain JSON Pointer");
        let schema = without_space(entry["schema"].get());
        let mut parts = BTreeSet::new();
        self.collect_parts(kind, &schema, SHARED, &mut parts);
        let parts = format!("{parts:?}").replace(['{', '}'], "");
        let schema = schema.replace(SHARED, LOCAL);
        let samples: Vec<Box<RawValue>> = serde_json::from_str(entry["samples"].get()).expect("samples are a list");
        assert!(!samples.is_empty(), "{kind} has no sample");
        let samples: Vec<_> = samples.iter().map(|sample| without_space(sample.get())).collect();
        writeln!(
            self.details,
            "    Description {{ value: {kind:?}, version: {version}, since: {since:?}, description: {description:?}, \
             schema: {schema:?}, parts: &[{parts}] }},"
        )
        .expect(ANY_TEXT);
        writeln!(self.samples, "    ({kind:?}, &{samples:?}),").expect(ANY_TEXT);
        subject
    }

    /// Collects the shared parts that a schema refers to, directly or through other parts.
    fn collect_parts<'a>(&'a self, kind: &str, schema: &str, prefix: &str, found: &mut BTreeSet<&'a str>) {
        for referred in schema.split(&format!("\"$ref\":\"{prefix}")).skip(1) {
            let name = referred.split('"').next().unwrap_or_default();
            let part = self.parts.get_key_value(name);
            let (name, part) = part.unwrap_or_else(|| panic!("{kind} refers to {name}, which common.json lacks"));
            if found.insert(name) {
                self.collect_parts(kind, part, LOCAL, found);
            }
        }
    }

    fn code(self) -> String {
        assert!(self.entries.is_empty(), "the catalogue lacks {:?}", self.entries.keys().collect::<Vec<_>>());
        let parts: Vec<_> = self.parts.into_iter().collect();
        format!(
            "static DESCRIPTIONS: &[Description] = &[\n{}];\n\nstatic SAMPLES: &[(&str, &[&str])] = &[\n{}];\n\n\
             static PARTS: &[(&str, &str)] = &{parts:?};\n",
            self.details, self.samples
        )
    }
}

/// The members of a JSON object, with their exact texts.
fn members(json: &str) -> Members {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("not a JSON object: {error}: {json:.60}"))
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
