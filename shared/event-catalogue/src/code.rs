//! The catalogue as Rust code, which the build script of `webhooks` writes. Types, schemas and samples are separate
//! tables, so that a program contains only the tables that it uses.

use std::fmt::Write;

use crate::catalogue::Catalogue;

const ANY_TEXT: &str = "a String accepts any text";

/// The table of types.
pub fn types(catalogue: &Catalogue) -> String {
    let mut code = String::from("pub(super) const TYPES: &[EventType] = &[\n");
    for kind in &catalogue.types {
        let source = if kind.is_own { "Service" } else { "Platform" };
        // Events that the service itself publishes have no subject.
        let subject = Some(&kind.subject).filter(|_| !kind.is_own);
        writeln!(
            code,
            "    EventType {{ label: {:?}, value: {:?}, source: Source::{source}, subject: {subject:?} }},",
            kind.label, kind.value
        )
        .expect(ANY_TEXT);
    }
    code + "];\n"
}

/// The tables of schemas, shared parts and samples.
pub fn details(catalogue: &Catalogue) -> String {
    let mut descriptions = String::new();
    let mut samples = String::new();
    for kind in &catalogue.types {
        let parts = format!("&{:?}", kind.parts);
        writeln!(
            descriptions,
            "    Description {{ value: {:?}, version: {}, since: {:?}, description: {:?}, schema: {:?}, parts: {parts} }},",
            kind.value, kind.version, kind.since, kind.description, kind.schema
        )
        .expect(ANY_TEXT);
        writeln!(samples, "    ({:?}, &{:?}),", kind.value, kind.samples).expect(ANY_TEXT);
    }
    let parts: Vec<_> = catalogue.parts.iter().collect();
    format!(
        "static DESCRIPTIONS: &[Description] = &[\n{descriptions}];\n\nstatic SAMPLES: &[(&str, &[&str])] = \
         &[\n{samples}];\n\nstatic PARTS: &[(&str, &str)] = &{parts:?};\n"
    )
}
