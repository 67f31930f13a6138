//! `schemas`: a file for each area with the details of its types, and `common.json` with the parts that schemas share.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    catalogue::Type,
    json_text::without_space,
    list::Entry,
    parts::{self, LOCAL, Parts, SHARED},
    source::{Members, Mistake, Source, elements},
};

/// The members of a type's details.
const MEMBERS: [&str; 6] = ["version", "since", "description", "subject", "schema", "samples"];
/// The maximum total size of a type's schema and samples, in bytes without white space: agents get all of it at once.
const MAX_DETAILS: usize = 60 * 1024;

/// The folder's files.
pub(crate) struct Files {
    pub common: Option<Source>,
    areas: BTreeMap<String, Source>,
}

impl Files {
    /// Reads the files whose names end in `.json`. The folder may contain others, such as a README.
    pub(crate) fn read(folder: &Path, mistakes: &mut Vec<Mistake>) -> Self {
        let mut files = Self { common: None, areas: BTreeMap::new() };
        let folder = folder.join("schemas");
        let found = match fs::read_dir(&folder) {
            Ok(found) => found.flatten().map(|entry| entry.path()),
            Err(error) => {
                mistakes.push(Mistake { path: folder, line: None, message: format!("cannot be read: {error}") });
                return files;
            }
        };
        for path in found.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match Source::read(path) {
                Ok(source) if name == "common" => files.common = Some(source),
                Ok(source) => _ = files.areas.insert(name, source),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        files
    }

    /// The details of all types, by area. An entry that is in the wrong file, repeated, or missing from the list is a
    /// mistake.
    pub(crate) fn details(&self, list: &[Entry<'_>], mistakes: &mut Vec<Mistake>) -> BTreeMap<String, Details<'_>> {
        let mut all = BTreeMap::new();
        for (area, source) in &self.areas {
            let members: Members<'_> = match source.parse("an object with a member for each type") {
                Ok(members) => members,
                Err(mistake) => {
                    mistakes.push(mistake);
                    continue;
                }
            };
            if let Some((kind, at)) = members.repeated() {
                mistakes.push(source.mistake(at, "", format!("`{kind}` is in this file twice")));
            }
            for (kind, at) in members.0 {
                let of = kind.split('.').next().unwrap_or_default();
                if of != area {
                    let message = format!("`{kind}` belongs in schemas/{of}.json");
                    mistakes.push(source.mistake(at, "", message));
                } else if !list.iter().any(|entry| entry.value == kind) {
                    let message = format!("`{kind}` is not in catalogue.json");
                    mistakes.push(source.mistake(at, "", message));
                }
                all.insert(kind, Details { source, at });
            }
        }
        all
    }
}

/// A type's details, as in the file.
#[derive(Clone, Copy)]
pub(crate) struct Details<'a> {
    source: &'a Source,
    at: &'a RawValue,
}

impl Details<'_> {
    /// Checks the details.
    pub(crate) fn read(self, entry: &Entry<'_>, parts: &Parts) -> Result<Type, Mistake> {
        let kind = &entry.value;
        let members = Members::of(self.at).filter(|members| {
            members.0.len() == MEMBERS.len() && MEMBERS.iter().all(|name| members.get(name).is_some())
        });
        let members = members.ok_or_else(|| self.mistake(kind, format!("needs exactly the members {MEMBERS:?}")))?;
        let schema = self.schema(kind, &members, parts)?;
        let subject = self.member::<String>(kind, &members, "subject", "a JSON Pointer such as `/orderIdentifier`")?;
        if !subject.starts_with('/') || subject.contains('~') {
            return Err(self.mistake_at(
                kind,
                "/subject",
                "`subject` is not a JSON Pointer such as `/orderIdentifier`",
            ));
        }
        let samples = self.samples(kind, &members, &schema.whole, &subject)?;
        let size = schema.whole.to_string().len() + samples.iter().map(String::len).sum::<usize>();
        if size > MAX_DETAILS {
            let message = format!(
                "schema, shared parts and samples have {size} bytes; at most {MAX_DETAILS} are \
                allowed"
            );
            return Err(self.mistake(kind, message));
        }
        Ok(Type {
            value: kind.clone(),
            label: entry.label.clone(),
            is_own: false,
            version: self.version(kind, &members)?,
            since: self.since(kind, &members)?,
            description: self.description(kind, &members)?,
            subject,
            schema: schema.text,
            parts: schema.parts,
            samples,
        })
    }

    fn version(&self, kind: &str, members: &Members<'_>) -> Result<u32, Mistake> {
        let version = self.member(kind, members, "version", "a number from 1")?;
        if version == 0 {
            Err(self.mistake_at(kind, "/version", "`version` must be a number from 1"))
        } else {
            Ok(version)
        }
    }

    fn since(&self, kind: &str, members: &Members<'_>) -> Result<String, Mistake> {
        let since: String = self.member(kind, members, "since", "a version such as `1.0.0`")?;
        if since.split('.').count() == 3 && since.split('.').all(|number| number.parse::<u32>().is_ok()) {
            return Ok(since);
        }
        Err(self.mistake_at(kind, "/since", format!("`since` is `{since}`, and must be a version such as `1.0.0`")))
    }

    fn description(&self, kind: &str, members: &Members<'_>) -> Result<String, Mistake> {
        let description: String = self.member(kind, members, "description", "a text")?;
        if (15..300).contains(&description.len()) && !description.contains(char::is_control) {
            return Ok(description);
        }
        Err(self.mistake_at(kind, "/description", "`description` must be a line of 15 to 299 characters"))
    }

    fn schema(&self, kind: &str, members: &Members<'_>, parts: &Parts) -> Result<Schema, Mistake> {
        let raw = members.get("schema").unwrap_or(self.at);
        let schema: Value = self.member(kind, members, "schema", "a JSON Schema with `\"type\": \"object\"`")?;
        if schema["type"] != "object" {
            return Err(self.mistake_at(kind, "/schema", "`schema` needs `\"type\": \"object\"`"));
        }
        if ["$schema", "$id", "$defs"].iter().any(|name| schema.get(name).is_some()) {
            let message = "`schema` has `$schema`, `$id` or `$defs`: put shared parts into schemas/common.json";
            return Err(self.mistake_at(kind, "/schema", message));
        }
        let fault = |pointer: String, message| self.mistake_at(kind, &format!("/schema{pointer}"), message);
        parts::check_form(&schema).map_err(|(pointer, message)| fault(pointer, message))?;
        let needed = parts.needed(&schema, SHARED).map_err(|(pointer, message)| fault(pointer, message))?;
        let text = without_space(raw.get()).replace(&format!("\"{SHARED}"), &format!("\"{LOCAL}"));
        let whole = parts.whole(&text, &needed);
        Ok(Schema { text, parts: needed, whole })
    }

    /// The samples, which must conform to the schema and contain the subject.
    fn samples(
        &self,
        kind: &str,
        members: &Members<'_>,
        schema: &Value,
        subject: &str,
    ) -> Result<Vec<String>, Mistake> {
        let samples = members.get("samples").and_then(elements).filter(|samples| !samples.is_empty());
        let samples = samples
            .ok_or_else(|| self.mistake_at(kind, "/samples", "`samples` must be a list with one sample or more"))?;
        let options = jsonschema::draft202012::options().should_validate_formats(true);
        let validator = options.build(schema);
        let validator = validator
            .map_err(|error| self.mistake_at(kind, "/schema", format!("the schema cannot be used: {error}")))?;
        for (number, sample) in samples.iter().enumerate() {
            let value: Value = serde_json::from_str(sample.get())
                .map_err(|error| self.mistake_at(kind, &format!("/samples/{number}"), error.to_string()))?;
            if let Err(error) = validator.validate(&value) {
                let at = format!("/samples/{number}{}", error.instance_path().as_str());
                return Err(self.mistake_at(kind, &at, format!("the sample does not conform to the schema: {error}")));
            }
            if !value.pointer(subject).is_some_and(|subject| subject.is_string() || subject.is_number()) {
                let message = format!("the sample has no string or number at `{subject}`, the subject of the type");
                return Err(self.mistake_at(kind, &format!("/samples/{number}"), message));
            }
        }
        Ok(samples.into_iter().map(|sample| without_space(sample.get())).collect())
    }

    fn member<'a, T: Deserialize<'a>>(
        &self,
        kind: &str,
        members: &Members<'a>,
        name: &str,
        expected: &str,
    ) -> Result<T, Mistake> {
        let read = members.get(name).and_then(|value| serde_json::from_str(value.get()).ok());
        read.ok_or_else(|| self.mistake_at(kind, &format!("/{name}"), format!("`{name}` must be {expected}")))
    }

    fn mistake(&self, kind: &str, message: impl AsRef<str>) -> Mistake {
        self.mistake_at(kind, "", message)
    }

    fn mistake_at(&self, kind: &str, pointer: &str, message: impl AsRef<str>) -> Mistake {
        self.source.mistake(self.at, pointer, format!("{kind}: {}", message.as_ref()))
    }
}

/// A checked schema.
struct Schema {
    /// The schema's text without white space, with references to `parts`.
    text: String,
    /// The names of the shared parts that the schema needs, sorted.
    parts: Vec<String>,
    /// The schema with these parts.
    whole: Value,
}
