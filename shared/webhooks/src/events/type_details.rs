//! The details of event types: meaning, the schema of the data, and samples. The build embeds them as JSON without
//! white space. Schemas and samples are separate tables, so that a program contains only those that it uses.

use std::fmt::Write;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    catalogue::{self, EventType},
    unknown,
};
use auth::EntityId;
use problem::{Problem, ProblemKind};

/// The dialect of all schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A type as its schema file describes it, in addition to its entry in the catalogue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Description {
    pub(super) value: &'static str,
    pub(super) version: u32,
    pub(super) since: &'static str,
    pub(super) description: &'static str,
    /// The schema, with references to `parts`.
    pub(super) schema: &'static str,
    /// The names of the shared parts that the schema needs, sorted.
    pub(super) parts: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/type_details.rs"));

/// The descriptions and schemas of a catalogue, with the shared parts by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schemas {
    pub(super) descriptions: &'static [Description],
    pub(super) parts: &'static [(&'static str, &'static str)],
}

/// A catalogue's samples, as JSON, by type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samples(pub(super) &'static [(&'static str, &'static [&'static str])]);

/// This deployment's schemas.
pub(super) const OWN_SCHEMAS: Schemas = Schemas { descriptions: DESCRIPTIONS, parts: PARTS };
/// This deployment's samples.
pub(super) const OWN_SAMPLES: Samples = Samples(SAMPLES);

/// An event type with the schema of its data, and samples.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeDetails {
    label: &'static str,
    value: &'static str,
    description: &'static str,
    /// The release with the first version of the schema.
    since: &'static str,
    /// The schema's version; a later one only adds members and values.
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'static str>,
    schema: Box<RawValue>,
    samples: Vec<&'static RawValue>,
}

impl EventTypeDetails {
    /// A type's details.
    pub fn of(kind: &'static EventType) -> Self {
        Self::within(OWN_SCHEMAS, OWN_SAMPLES, kind)
    }

    /// The details of a type in the catalogue with these schemas and samples.
    pub(super) fn within(schemas: Schemas, samples: Samples, kind: &'static EventType) -> Self {
        let described = schemas.description(kind);
        let schema = RawValue::from_string(schemas.whole(kind)).expect("the build composes it of JSON");
        Self {
            label: kind.label,
            value: kind.value,
            description: described.description,
            since: described.since,
            version: described.version,
            subject: kind.subject,
            schema,
            samples: samples.of(kind).collect(),
        }
    }

    /// The details of the type with this key, for a client of this entity.
    ///
    /// # Errors
    /// 404 if the string is not a type of the catalogue.
    pub fn find(value: &str, entity: &EntityId) -> Result<Self, Problem> {
        let kind = catalogue::find(value);
        let kind =
            kind.ok_or_else(|| Problem::new(ProblemKind::EventTypeNotFound, unknown::not_found(value, entity)))?;
        Ok(Self::of(kind))
    }
}

/// The type with this key, or the message about an unknown key for a client of this entity.
pub fn named(value: &str, entity: &str) -> Result<&'static EventType, String> {
    catalogue::find(value).ok_or_else(|| unknown::no_type(value, entity))
}

/// The schema of a type's data, as self-contained JSON, with the shared parts that it needs in `$defs`.
pub fn schema(kind: &EventType) -> String {
    OWN_SCHEMAS.whole(kind)
}

/// The samples of a type's data, as JSON.
pub fn samples(kind: &EventType) -> impl Iterator<Item = &'static RawValue> + use<> {
    OWN_SAMPLES.of(kind)
}

impl Schemas {
    fn description(self, kind: &EventType) -> &'static Description {
        let found = self.descriptions.iter().find(|described| described.value == kind.value);
        found.expect("the build refuses a catalogue with a type that has no schema")
    }

    fn whole(self, kind: &EventType) -> String {
        let Description { schema, parts, .. } = self.description(kind);
        let members = schema.strip_prefix('{').and_then(|schema| schema.strip_suffix('}')).unwrap_or_default();
        let mut whole = format!("{{\"$schema\":\"{DIALECT}\",{members}");
        for (position, name) in parts.iter().enumerate() {
            let before = if position == 0 { ",\"$defs\":{" } else { "," };
            write!(whole, "{before}\"{name}\":{}", self.part(name)).expect("a String accepts any text");
        }
        whole.push_str(if parts.is_empty() { "}" } else { "}}" });
        whole
    }

    /// A type's meaning, the release that introduced its schema, and the schema's version.
    pub(super) fn texts(self, kind: &EventType) -> (&'static str, &'static str, u32) {
        let Description { description, since, version, .. } = self.description(kind);
        (description, since, *version)
    }

    /// The schema of a type, with references to `parts` in `$defs`, which it does not contain.
    pub(super) fn with_references(self, kind: &EventType) -> &'static str {
        self.description(kind).schema
    }

    fn part(self, name: &str) -> &'static str {
        let found = self.parts.iter().find(|(known, _)| *known == name);
        found.expect("the build refuses a reference to a missing part").1
    }
}

impl Samples {
    pub(super) fn of(self, kind: &EventType) -> impl Iterator<Item = &'static RawValue> + use<> {
        let found = self.0.iter().find(|(value, _)| *value == kind.value);
        let (_, samples) = found.expect("the build refuses a type without samples");
        samples.iter().map(|sample| serde_json::from_str(sample).expect("the build takes it from JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_schema_is_complete_in_itself() {
        for kind in catalogue::all() {
            let schema: Value = serde_json::from_str(&schema(kind)).expect("JSON");
            assert!(jsonschema::draft202012::meta::is_valid(&schema), "{}", kind.value);
            assert_eq!((&schema["$schema"], &schema["type"]), (&DIALECT.into(), &"object".into()), "{}", kind.value);
            assert!(!schema.to_string().contains("common.json"), "{}", kind.value);
            assert!(jsonschema::draft202012::new(&schema).is_ok(), "{}", kind.value);
        }
    }

    #[test]
    fn the_samples_name_the_subject_that_the_type_declares() {
        for kind in catalogue::all() {
            for sample in samples(kind) {
                let sample: Value = serde_json::from_str(sample.get()).expect("JSON");
                let Some(pointer) = kind.subject else { continue };
                assert!(sample.pointer(pointer).is_some_and(|subject| subject.is_string()), "{}", kind.value);
            }
        }
    }

    #[test]
    fn the_details_of_a_type_are_readable_and_bounded() {
        for kind in catalogue::all() {
            let details = EventTypeDetails::of(kind);
            assert!((15..300).contains(&details.description.len()), "{}: {}", kind.value, details.description.len());
            assert!(details.version >= 1 && details.since.split('.').count() == 3, "{}", kind.value);
            let shown = serde_json::to_string(&details).expect("JSON");
            assert!(shown.len() < 64 * 1024, "{}: {}", kind.value, shown.len());
        }
    }

    #[test]
    fn an_unknown_type_is_not_found_and_the_answer_names_the_list() {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let problem = EventTypeDetails::find("booking.create", &entity).expect_err("unknown");
        assert_eq!(problem.kind, ProblemKind::EventTypeNotFound);
        assert!(problem.detail.contains("booking.created") && problem.detail.ends_with("/webhook/event/list."));
    }
}
