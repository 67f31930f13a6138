//! The members of all responses in a run: a member that every response has must be `required` in openapi.yaml.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

/// The number of objects after which a member counts as always sent: a few objects may have it by chance.
const ENOUGH: usize = 25;

/// The members seen in responses so far, by their schema's location in the document.
#[derive(Default)]
pub struct SeenMembers(Mutex<BTreeMap<String, Seen>>);

/// The objects that one schema describes.
#[derive(Default)]
struct Seen {
    objects: usize,
    /// The members that are not `required`, each with the number of objects that have it.
    optional: BTreeMap<String, usize>,
}

impl SeenMembers {
    /// Records a value's members under its schema in the document. `place` names a schema that has no name in the
    /// document. Alternatives (`oneOf`, `anyOf`) are skipped, since their members need not be required.
    pub fn note(&self, document: &Value, schema: &Value, place: &str, value: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            let Some(schema) = document.pointer(pointer) else { return };
            return self.note(document, schema, pointer, value);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.note(document, part, place, value);
        }
        match value {
            Value::Object(members) => {
                let Some(properties) = schema["properties"].as_object() else { return };
                self.count(schema, place, value);
                for (name, member) in members {
                    if let Some(property) = properties.get(name) {
                        self.note(document, property, &format!("{place}/{name}"), member);
                    }
                }
            }
            Value::Array(items) if schema["items"].is_object() => {
                items.iter().for_each(|item| self.note(document, &schema["items"], &format!("{place}/*"), item));
            }
            _ => {}
        }
    }

    fn count(&self, schema: &Value, place: &str, value: &Value) {
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = places.entry(place.to_owned()).or_default();
        seen.objects += 1;
        for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if !is_required(name) && value.get(name).is_some() {
                *seen.optional.entry(name.clone()).or_default() += 1;
            }
        }
    }

    /// The members that every response had but that are not `required`.
    pub fn not_required(&self) -> Vec<String> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let always = |(place, seen): (&String, &Seen)| {
            let all = seen.optional.iter().filter(|(_, count)| seen.objects >= ENOUGH && **count == seen.objects);
            all.map(|(name, count)| format!("{place}: `{name}`, in all of {count} objects")).collect::<Vec<_>>()
        };
        places.iter().flat_map(always).collect()
    }
}
