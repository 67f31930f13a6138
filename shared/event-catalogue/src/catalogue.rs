//! A catalogue, complete and without mistakes.

use std::collections::BTreeMap;

/// The folder with the types that only the service publishes. They are part of every catalogue.
pub const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/service");
/// The default catalogue's folder.
pub const TRAVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/travel");
/// The key prefixes of the types that only the service publishes.
pub const RESERVED: [&str; 2] = ["webhook.", "payment.connection."];
/// A deployment's event types: those in its folder, in order, and those of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// All types.
    pub types: Vec<Type>,
    /// The parts that schemas share, by name, as JSON without white space.
    pub parts: BTreeMap<String, String>,
}

/// An event type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The key for programs.
    pub value: String,
    /// The label for people.
    pub label: String,
    /// Whether only the service publishes events of this type.
    pub is_own: bool,
    /// The schema's version.
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

impl Catalogue {
    /// The size of the content that the AsyncAPI document takes from this catalogue.
    pub(crate) fn size(&self) -> usize {
        let of_type = |kind: &Type| {
            kind.schema.len() + kind.description.len() + kind.samples.iter().map(String::len).sum::<usize>()
        };
        self.types.iter().map(of_type).sum::<usize>() + self.parts.values().map(String::len).sum::<usize>()
    }
}
