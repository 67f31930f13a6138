//! `common.json`: the parts that schemas share, and the references to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, value::RawValue};

use crate::{
    json_text::without_space,
    source::{Members, Mistake, Source},
};

/// The beginning of a reference to a shared part, in a type's schema.
pub(crate) const SHARED: &str = "common.json#/$defs/";
/// The beginning of a reference to a shared part, in another part and in a self-contained schema.
pub(crate) const LOCAL: &str = "#/$defs/";
/// The names of the AsyncAPI document's schemas other than the parts.
const TAKEN: [&str; 2] = ["eventEnvelope", "deliveryHeaders"];

/// A mistake in a schema: the JSON Pointer of the value, and a sentence.
pub(crate) type Fault = (String, String);

/// The shared parts by name, as JSON without white space.
#[derive(Default)]
pub(crate) struct Parts(pub BTreeMap<String, String>);

impl Parts {
    /// Reads and checks the parts.
    pub(crate) fn read(source: &Source, mistakes: &mut Vec<Mistake>) -> Self {
        let root: Result<&RawValue, _> = source.parse("an object with the member `$defs`");
        let root = match root {
            Ok(root) => root,
            Err(mistake) => {
                mistakes.push(mistake);
                return Self::default();
            }
        };
        let defined = Members::of(root).and_then(|members| members.get("$defs")).and_then(Members::of);
        let Some(defined) = defined else {
            mistakes.push(source.mistake(root, "", "must be an object whose member `$defs` has the shared parts"));
            return Self::default();
        };
        if let Some((name, at)) = defined.repeated() {
            mistakes.push(source.mistake(at, "", format!("the part `{name}` is in this file twice")));
        }
        let texts = defined.0.iter().map(|(name, part)| (name.clone(), without_space(part.get())));
        let parts = Self(texts.collect());
        for (name, raw) in &defined.0 {
            if let Err((pointer, message)) = parts.check(name, raw) {
                mistakes.push(source.mistake(raw, &pointer, format!("{name}: {message}")));
            }
        }
        parts
    }

    fn check(&self, name: &str, raw: &RawValue) -> Result<(), Fault> {
        let here = |message: &str| Err((String::new(), message.to_owned()));
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) || !name.chars().all(is_letter) {
            return here("the name of a part begins with a-z, and has letters, digits and _");
        }
        if TAKEN.contains(&name) {
            return here("the AsyncAPI document has a schema with this name; use another");
        }
        let Ok(part) = serde_json::from_str::<Value>(raw.get()) else { return here("is not a schema") };
        if part.as_object().is_none_or(|members| members.is_empty()) {
            return here("a part must be an object with members");
        }
        check_form(&part)?;
        self.needed(&part, LOCAL).map(|_| ())
    }

    /// The parts that a schema refers to, directly or through other parts, sorted.
    pub(crate) fn needed(&self, schema: &Value, prefix: &str) -> Result<Vec<String>, Fault> {
        let mut found = BTreeSet::new();
        self.collect(schema, prefix, &mut found)?;
        Ok(found.into_iter().collect())
    }

    fn collect(&self, schema: &Value, prefix: &str, found: &mut BTreeSet<String>) -> Result<(), Fault> {
        for (pointer, reference) in references(schema) {
            let Some(name) = reference.strip_prefix(prefix) else {
                return Err((pointer, format!("`$ref` is `{reference}`, and must begin with `{prefix}`")));
            };
            let Some(part) = self.0.get(name) else {
                return Err((pointer, format!("`$ref` names the part `{name}`, which schemas/common.json lacks")));
            };
            if found.insert(name.to_owned()) {
                // A mistake in the part is reported at the part.
                let part = serde_json::from_str(part).unwrap_or_default();
                _ = self.collect(&part, LOCAL, found);
            }
        }
        Ok(())
    }

    /// A schema that contains these parts.
    pub(crate) fn whole(&self, schema: &str, needed: &[String]) -> Value {
        let mut whole: Value = serde_json::from_str(schema).unwrap_or_default();
        let part = |name: &String| (name.clone(), serde_json::from_str(&self.0[name]).unwrap_or_default());
        if !needed.is_empty() {
            whole["$defs"] = Value::Object(needed.iter().map(part).collect());
        }
        whole
    }
}

/// Checks that a value is a JSON Schema, without its references.
pub(crate) fn check_form(schema: &Value) -> Result<(), Fault> {
    let checked = jsonschema::draft202012::meta::validate(schema);
    checked.map_err(|error| (error.instance_path().as_str().to_owned(), format!("is not a JSON Schema: {error}")))
}

/// The values of `$ref` within a schema, with their JSON Pointers.
fn references(schema: &Value) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut ahead = vec![(String::new(), schema)];
    while let Some((pointer, value)) = ahead.pop() {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    match member.as_str() {
                        Some(reference) if name == "$ref" => found.push((pointer, reference)),
                        _ => ahead.push((pointer, member)),
                    }
                }
            }
            Value::Array(items) => {
                ahead.extend(items.iter().enumerate().map(|(at, item)| (format!("{pointer}/{at}"), item)));
            }
            _ => {}
        }
    }
    found
}
