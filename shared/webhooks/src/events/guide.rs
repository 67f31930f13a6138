//! Generates docs/events.md from the catalogue and the schemas. The test fails if the document is out of date.

use std::{fmt::Write, fs};

use super::{
    catalogue::{self, EventType},
    json_text::letters,
    type_details,
};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
const MAX_BYTES: usize = 60 * 1024;

const BEGINNING: &str = "\
# Event types

A test generates this page from the default catalogue, that of a travel platform
(`shared/event-catalogue/travel`). [A deployment can have its own types](event-catalogue.md). `GET
{me}/webhook/event/type/{value}` shows a type's `data` schema and all its samples; `/asyncapi.json`
shows those of all types.

- An event's *subject* is the member of `data` by which people find the event, unless its publisher
  or the deployment names another.
- New versions of a schema may add members and values, and never remove or narrow any. Accept those
  that you do not know.
- Amounts and percentages are decimal strings, so that no digit is lost. Names ending in `At` are
  times (RFC 3339), in `Date` days (ISO 8601), and in `Identifier` opaque identifiers.
";

fn page() -> String {
    let mut page = BEGINNING.to_owned();
    let mut areas: Vec<(&str, Vec<&'static EventType>)> = Vec::new();
    for kind in catalogue::all() {
        let area = kind.value.split('.').next().unwrap_or_default();
        match areas.iter_mut().find(|(known, _)| *known == area) {
            Some((_, kinds)) => kinds.push(kind),
            None => areas.push((area, vec![kind])),
        }
    }
    for (area, kinds) in areas {
        writeln!(page, "\n## {}\n\n| type | meaning | subject |\n|---|---|---|", title(area)).expect("a String");
        for kind in &kinds {
            let (description, _, _) = type_details::OWN_SCHEMAS.texts(kind);
            let subject = kind.subject.map_or("–".to_owned(), |subject| format!("`{}`", &subject[1..]));
            writeln!(page, "| `{}` | {description} | {subject} |", kind.value).expect("a String");
        }
        let kind = typical(area, &kinds);
        let sample = type_details::samples(kind).next().expect("every type has samples").get();
        writeln!(page, "\nThe `data` of `{}`:\n\n```json\n{}\n```", kind.value, indented(sample)).expect("a String");
    }
    page
}

/// The type whose sample the page shows: the creation of the area's main object, or else the first type.
fn typical(area: &str, kinds: &[&'static EventType]) -> &'static EventType {
    let creation = format!("{area}.created");
    let found = kinds.iter().find(|kind| kind.value == creation);
    found.or(kinds.first()).copied().expect("an area has types")
}

fn title(area: &str) -> String {
    match area {
        "mcp" => "MCP".to_owned(),
        _ => area[..1].to_uppercase() + &area[1..].replace('_', " "),
    }
}

/// Indents JSON that has no white space. The order of the members does not change.
fn indented(json: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    for (letter, in_text) in letters(json) {
        match letter {
            _ if in_text => text.push(letter),
            '{' | '[' => {
                depth += 1;
                text.push(letter);
                text += &line(depth);
            }
            '}' | ']' => {
                depth -= 1;
                text += &line(depth);
                text.push(letter);
            }
            ',' => {
                text.push(letter);
                text += &line(depth);
            }
            ':' => text += ": ",
            _ => text.push(letter),
        }
    }
    text
}

fn line(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}

#[test]
fn the_page_of_event_types_is_current() {
    let page = page();
    assert!(page.len() < MAX_BYTES, "{} bytes", page.len());
    if fs::read_to_string(DOCUMENT).is_ok_and(|document| document == page) {
        return;
    }
    let new = concat!(env!("OUT_DIR"), "/events.md");
    fs::write(new, page).expect("cargo's own folder can be written");
    panic!("docs/events.md is not current: cp {new} docs/events.md");
}

#[test]
fn the_page_shows_json_by_line_and_leaves_texts_as_they_are() {
    let json = r#"{"a":[1,"x, {y}: \""],"b":{"c":null}}"#;
    let expected = "{\n  \"a\": [\n    1,\n    \"x, {y}: \\\"\"\n  ],\n  \"b\": {\n    \"c\": null\n  }\n}";
    assert_eq!(indented(json), expected);
}
