#![doc = include_str!("../README.md")]

pub mod code;
pub mod compatibility;
// The dispatcher and the filters use it as well, and no deployed program contains this crate.
#[path = "../../webhooks/src/events/json_text.rs"]
mod json_text;
mod list;
mod parts;
mod schemas;
mod source;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::Path};

use parts::Parts;
use schemas::Files;
pub use source::Mistake;

/// The folder with the types that only the service publishes. They are part of every catalogue.
pub const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/service");
/// The folder of the default catalogue.
pub const TRAVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/travel");
/// The beginnings of the keys of the types that only the service publishes.
pub const RESERVED: [&str; 2] = ["webhook.", "payment.connection."];
/// The largest catalogue, in bytes. The AsyncAPI document has all of it, and an answer of Lambda at most 6 MB.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The types of events of a deployment: those of its folder in their order, and those of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// All types.
    pub types: Vec<Type>,
    /// The parts that schemas share, by name, as JSON without white space.
    pub parts: BTreeMap<String, String>,
}

/// A type of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The key for programs.
    pub value: String,
    /// The label for people.
    pub label: String,
    /// Whether only the service publishes it.
    pub is_own: bool,
    /// The version of the schema.
    pub version: u32,
    /// The release with the first version of the schema.
    pub since: String,
    /// The meaning.
    pub description: String,
    /// The JSON Pointer of the subject in the data.
    pub subject: String,
    /// The schema as JSON without white space, with references to `parts` in `$defs`.
    pub schema: String,
    /// The names of the shared parts that the schema needs, sorted.
    pub parts: Vec<String>,
    /// The samples as JSON without white space.
    pub samples: Vec<String>,
}

/// Reads the catalogue of a folder, and adds the types of the service.
///
/// # Errors
/// Every mistake that was found, in the order of the files.
pub fn read(folder: &Path) -> Result<Catalogue, Vec<Mistake>> {
    let mut own = read_folder(Path::new(SERVICE), None)?;
    own.types.iter_mut().for_each(|kind| kind.is_own = true);
    let mut catalogue = read_folder(folder, Some(&own.types))?;
    catalogue.types.append(&mut own.types);
    let size = catalogue.size();
    if size > MAX_BYTES {
        let message = format!("schemas, samples and texts have {size} bytes without white space; at most {MAX_BYTES}");
        return Err(vec![Mistake { path: folder.to_owned(), line: None, message }]);
    }
    Ok(catalogue)
}

/// Reads a folder. A mistake in the list or in a shared part would cause more of them in the details, so these are
/// read afterwards.
fn read_folder(folder: &Path, own: Option<&[Type]>) -> Result<Catalogue, Vec<Mistake>> {
    let source = list::source(folder).map_err(|mistake| vec![mistake])?;
    let mut mistakes = Vec::new();
    let list = list::read(&source, own, &mut mistakes);
    let files = Files::read(folder, &mut mistakes);
    let parts = files.common.as_ref().map(|common| Parts::read(common, &mut mistakes)).unwrap_or_default();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let details = files.details(&list, &mut mistakes);
    let mut types = Vec::new();
    for entry in &list {
        let Some(details) = details.get(&entry.value) else {
            let area = entry.value.split('.').next().unwrap_or_default();
            let message = format!("{} has no schema: add it to schemas/{area}.json", entry.value);
            mistakes.push(source.mistake(entry.at, "", message));
            continue;
        };
        match details.read(entry, &parts) {
            Ok(kind) => types.push(kind),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(Catalogue { types, parts: parts.0 }) } else { Err(mistakes) }
}

impl Catalogue {
    /// The size of the texts that the AsyncAPI document contains.
    fn size(&self) -> usize {
        let of_type = |kind: &Type| {
            kind.schema.len() + kind.description.len() + kind.samples.iter().map(String::len).sum::<usize>()
        };
        self.types.iter().map(of_type).sum::<usize>() + self.parts.values().map(String::len).sum::<usize>()
    }
}
