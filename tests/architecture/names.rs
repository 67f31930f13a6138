//! openapi.yaml uses the names in docs/style.md's table, and none of their synonyms.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use template::yaml_to_json;

const HEADING: &str = "## Names of the contract";

/// Members with a refused name, each with the different meaning that it has.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("EventTypeDetails", "since", "the release that introduced a schema, not a time"),
    ("PauseRequest", "until", "the end of a pause, not of a range"),
];

/// A row of the table: a thing's names, and the refused names.
struct Row {
    names: Vec<String>,
    refused: Vec<String>,
}

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rows() -> Vec<Row> {
    let style = text("docs/style.md");
    let (_, section) = style.split_once(HEADING).expect("docs/style.md lists the names of the contract");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').collect();
            let [_, name, refused] = cells[..] else { panic!("three cells: {row}") };
            Row { names: names(name), refused: names(refused) }
        })
        .collect()
}

/// Adds the names of all properties, path parameters and query parameters, each with its location.
fn collect(part: &Value, place: &str, found: &mut BTreeSet<(String, String)>) {
    match part {
        Value::Object(members) => {
            if let (Some("query" | "path"), Some(name)) =
                (members.get("in").and_then(Value::as_str), members.get("name"))
            {
                found.insert((place.to_owned(), name.as_str().expect("a parameter has a name").to_owned()));
            }
            for (name, member) in members {
                match name.as_str() {
                    "example" | "examples" => {}
                    "properties" => {
                        for (property, schema) in member.as_object().into_iter().flatten() {
                            found.insert((place.to_owned(), property.clone()));
                            collect(schema, place, found);
                        }
                    }
                    _ => collect(member, place, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, place, found)),
        _ => {}
    }
}

/// All names in the contract, each with its schema, parameter or path.
fn names() -> BTreeSet<(String, String)> {
    let document = yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML");
    let mut found = BTreeSet::new();
    for part in ["/components/schemas", "/components/parameters", "/components/responses", "/paths"] {
        for (place, value) in document.pointer(part).and_then(Value::as_object).expect("openapi.yaml has it") {
            collect(value, place, &mut found);
        }
    }
    assert!(found.len() > 300, "{}", found.len());
    found
}

#[test]
fn the_contract_has_one_name_for_each_thing() {
    let refused: BTreeSet<_> = rows().into_iter().flat_map(|row| row.refused).collect();
    assert!(refused.len() > 30, "{refused:?}");
    let is_exception =
        |place: &str, name: &str| EXCEPTIONS.iter().any(|(other, member, _)| (*other, *member) == (place, name));
    let synonyms: Vec<_> =
        names().into_iter().filter(|(place, name)| refused.contains(name) && !is_exception(place, name)).collect();
    assert_eq!(synonyms, Vec::new(), "see {HEADING} in docs/style.md");
}

#[test]
fn the_table_has_only_names_of_the_contract() {
    let names = names();
    let is_used = |name: &String| names.iter().any(|(_, used)| used == name);
    let unused: Vec<_> = rows().into_iter().flat_map(|row| row.names).filter(|name| !is_used(name)).collect();
    assert_eq!(unused, Vec::<String>::new());
    for (place, member, reason) in EXCEPTIONS {
        assert!(names.contains(&(place.to_owned(), member.to_owned())) && !reason.is_empty(), "{place}: {member}");
    }
}
