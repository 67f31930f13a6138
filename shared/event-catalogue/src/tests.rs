//! Each mistake is reported with its file and line. The tests change one string in the example.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/example");
const FILES: [&str; 4] = ["catalogue.json", "schemas/common.json", "schemas/order.json", "schemas/parcel.json"];

/// A copy of the example in which one string in a file is replaced.
fn changed(file: &str, old: &str, new: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("schemas")).expect("a folder");
    for name in FILES {
        let text = fs::read_to_string(Path::new(EXAMPLE).join(name)).expect("a text");
        let text = if name == file {
            assert!(text.contains(old), "{file} has no {old}");
            text.replacen(old, new, 1)
        } else {
            text
        };
        fs::write(folder.path().join(name), text).expect("the folder is writable");
    }
    folder
}

/// The mistakes of a catalogue, with paths within its folder.
fn mistakes(folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.display());
    let mistakes = read(folder).expect_err("a mistake");
    mistakes.iter().map(|mistake| mistake.to_string().replace(&prefix, "")).collect()
}

/// Panics unless the change causes only this mistake, which begins with this file and line and contains this text.
fn assert_mistake(file: &str, old: &str, new: &str, place: &str, text: &str) {
    let found = mistakes(changed(file, old, new).path());
    assert!(found.len() == 1 && found[0].starts_with(&format!("{place}: ")), "{new}: {found:#?}");
    assert!(found[0].contains(text), "{new}: {found:#?}");
}

#[test]
fn the_default_catalogue_and_the_example_have_no_mistakes() {
    let travel = read(Path::new(TRAVEL)).expect("no mistakes");
    assert!(travel.types.len() > 150, "{}", travel.types.len());
    let example = read(Path::new(EXAMPLE)).expect("no mistakes");
    let keys: Vec<_> = example.types.iter().map(|kind| kind.value.as_str()).collect();
    assert_eq!(keys[..3], ["order.placed", "order.item.added", "parcel.delivered"]);
    assert_eq!(example.types[0].parts, ["id", "item"]);
    assert!(example.types[0].schema.contains(r##"{"$ref":"#/$defs/id","description":"The order."}"##));
    assert_eq!(example.types[2].samples, [r#"{"parcelIdentifier":"P-3307"}"#]);
}

#[test]
fn every_catalogue_has_the_types_of_the_service_last() {
    let own = |folder: &str| -> Vec<Type> {
        let types = read(Path::new(folder)).expect("no mistakes").types;
        let first = types.iter().position(|kind| kind.is_own).expect("types of the service");
        assert!(types[first..].iter().all(|kind| kind.is_own));
        types[first..].to_vec()
    };
    assert_eq!(own(EXAMPLE), own(TRAVEL));
    for kind in own(EXAMPLE) {
        assert!(RESERVED.iter().any(|prefix| kind.value.starts_with(prefix)), "{}", kind.value);
        assert!(kind.parts.is_empty(), "{} refers to a part that a deployment may lack", kind.value);
    }
}

#[test]
fn a_mistake_in_the_list_has_its_line() {
    let second = r#"{"label": "Order item added", "value": "order.item.added"}"#;
    for (new, line, text) in [
        (r#"{"label": "Order item added", "value": "order.item.added"},,"#, 3, "is not JSON"),
        (r#""order.item.added""#, 3, "exactly `label` and `value`"),
        (r#"{"label": "Order item added"}"#, 3, "exactly `label` and `value`"),
        (r#"{"label": "Order item added", "value": "order.item.added", "source": "service"}"#, 3, "exactly"),
        (r#"{"label": "Order item added", "value": 1}"#, 3, "both strings"),
        (r#"{"label": "Order item added", "value": "order"}"#, 3, "`order` is not a key"),
        (r#"{"label": "Order item added", "value": "Order.item.added"}"#, 3, "is not a key"),
        (r#"{"label": "Order item added", "value": "order.item.added.twice"}"#, 3, "is not a key"),
        (r#"{"label": "Order item added", "value": "order.2nd"}"#, 3, "is not a key"),
        (r#"{"label": "order item added", "value": "order.item.added"}"#, 3, "begin with a capital"),
        (r#"{"label": "Another", "value": "order.placed"}"#, 3, "`order.placed` is already in the list"),
        (r#"{"label": "Order placed", "value": "order.item.added"}"#, 3, "is already used by order.placed"),
        (r#"{"label": "Test event", "value": "order.item.added"}"#, 3, "is already used by webhook.test"),
        (r#"{"label": "Order item added", "value": "webhook.order"}"#, 3, "begin with `webhook.`"),
        (r#"{"label": "Lost", "value": "payment.connection.lost"}"#, 3, "begin with `payment.connection.`"),
        (r#"{"label": "Order returned", "value": "order.returned"}"#, 3, "order.returned has no schema"),
    ] {
        let folder = changed("catalogue.json", second, new);
        let found = mistakes(folder.path());
        let expected = format!("catalogue.json:{line}: ");
        assert!(found.iter().any(|one| one.starts_with(&expected) && one.contains(text)), "{new}: {found:#?}");
    }
}

#[test]
fn a_schema_without_an_entry_in_the_list_is_a_mistake() {
    assert_mistake(
        "catalogue.json",
        ",\n  {\"label\": \"Parcel delivered\", \"value\": \"parcel.delivered\"}",
        "",
        "schemas/parcel.json:2",
        "`parcel.delivered` is not in catalogue.json",
    );
}

#[test]
fn a_mistake_in_the_details_of_a_type_has_its_line() {
    for (old, new, line, text) in [
        ("\"order.placed\": {", "\"order.placed\": ,{", 2, "is not JSON"),
        ("\"version\": 1, ", "", 2, "needs exactly the members"),
        ("\"version\": 1", "\"version\": 0", 3, "`version` must be a number from 1"),
        ("\"version\": 1", "\"version\": \"1\"", 3, "`version` must be a number from 1"),
        ("\"1.0.0\"", "\"today\"", 3, "`since` is `today`"),
        ("A customer placed an order. Reserve its items.", "Placed.", 3, "`description` must be a line"),
        ("\"/orderIdentifier\"", "\"orderIdentifier\"", 4, "`subject` is not a JSON Pointer"),
        ("\"/orderIdentifier\"", "\"/order\"", 13, "no string or number at `/order`"),
        ("\"type\": \"object\", ", "", 5, "needs `\"type\": \"object\"`"),
        ("\"type\": \"object\", ", "\"type\": \"object\", \"$id\": \"x:y\", ", 5, "put shared parts into"),
        ("\"type\": \"string\", \"format\"", "\"type\": \"text\", \"format\"", 9, "is not a JSON Schema"),
        ("common.json#/$defs/id", "common.json#/$defs/number", 8, "the part `number`, which schemas/common.json lacks"),
        ("common.json#/$defs/id", "#/$defs/id", 8, "must begin with `common.json#/$defs/`"),
        ("\"2027-01-11T20:14:03Z\"", "\"yesterday\"", 14, "does not conform to the schema"),
        ("\"quantity\": 2", "\"quantity\": 0", 15, "does not conform to the schema"),
        ("\"order.item.added\": {", "\"order.placed\": {", 18, "`order.placed` is in this file twice"),
        ("\"order.item.added\": {", "\"parcel.added\": {", 18, "belongs in schemas/parcel.json"),
        (
            "[{\"orderIdentifier\": \"O-7041\", \"item\": {\"itemIdentifier\": \"SKU-90\", \"quantity\": 1}}]",
            "[]",
            28,
            "one sample",
        ),
    ] {
        let found = mistakes(changed("schemas/order.json", old, new).path());
        let expected = format!("schemas/order.json:{line}: ");
        assert!(found.iter().any(|one| one.starts_with(&expected) && one.contains(text)), "{new}: {found:#?}");
    }
}

#[test]
fn a_mistake_in_a_shared_part_has_its_line() {
    for (old, new, line, text) in [
        ("\"$defs\": {", "\"$defs\": [", 3, "is not JSON"),
        ("\"$defs\"", "\"parts\"", 1, "member `$defs`"),
        ("\"id\": {\"type\": \"string\"", "\"id\": {\"type\": \"text\"", 3, "is not a JSON Schema"),
        ("\"id\": {", "\"Id\": {", 3, "begins with a-z"),
        ("\"id\": {", "\"deliveryHeaders\": {", 3, "use another"),
        ("\"item\": {", "\"id\": {", 4, "the part `id` is in this file twice"),
        ("#/$defs/id", "#/$defs/number", 7, "the part `number`"),
        ("#/$defs/id", "common.json#/$defs/id", 7, "must begin with `#/$defs/`"),
    ] {
        let found = mistakes(changed("schemas/common.json", old, new).path());
        let expected = format!("schemas/common.json:{line}: ");
        assert!(found.iter().any(|one| one.starts_with(&expected) && one.contains(text)), "{new}: {found:#?}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let folder = changed("schemas/order.json", "\"quantity\": 2", "\"quantity\": 0");
    let parcel = folder.path().join("schemas/parcel.json");
    let text = fs::read_to_string(&parcel).expect("a text").replace("\"/parcelIdentifier\"", "\"/parcel\"");
    fs::write(parcel, text).expect("the folder is writable");
    let found = mistakes(folder.path());
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn a_missing_file_or_folder_is_a_mistake() {
    let folder = changed("catalogue.json", "", "");
    fs::remove_file(folder.path().join("schemas/parcel.json")).expect("removed");
    assert_eq!(
        mistakes(folder.path()),
        ["catalogue.json:4: parcel.delivered has no schema: add it to schemas/parcel.json"]
    );
    fs::remove_dir_all(folder.path().join("schemas")).expect("removed");
    assert!(mistakes(folder.path())[0].starts_with("schemas: cannot be read"));
    fs::remove_file(folder.path().join("catalogue.json")).expect("removed");
    assert!(mistakes(folder.path())[0].starts_with("catalogue.json: cannot be read"));
}

#[test]
fn a_catalogue_may_lack_shared_parts_and_have_other_files() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("schemas")).expect("a folder");
    let list = r#"[{"label": "Parcel delivered", "value": "parcel.delivered"}]"#;
    fs::write(folder.path().join("catalogue.json"), list).expect("the folder is writable");
    let parcel = Path::new(EXAMPLE).join("schemas/parcel.json");
    fs::copy(parcel, folder.path().join("schemas/parcel.json")).expect("copied");
    fs::write(folder.path().join("schemas/README.md"), "Ours.").expect("the folder is writable");
    assert!(read(folder.path()).expect("no mistakes").parts.is_empty());
}

#[test]
fn an_earlier_version_of_a_catalogue_must_be_compatible() {
    let earlier = read(Path::new(EXAMPLE)).expect("no mistakes");
    let violations = |file, old, new| {
        compatibility::violations(&earlier, &read(changed(file, old, new).path()).expect("no mistakes"))
    };
    let more = "\"note\": {\"type\": \"string\"}, \"placedAt\":";
    assert!(violations("schemas/order.json", "\"placedAt\":", more).is_empty());
    let found = violations("schemas/parcel.json", "\"required\": [\"parcelIdentifier\"],", "");
    assert!(found.len() == 1 && found[0].contains("parcel.delivered/parcelIdentifier!"), "{found:?}");
}

#[test]
fn the_documentation_shows_the_files_of_the_example() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/event-catalogue.md");
    let page = fs::read_to_string(page).expect("a page");
    for name in FILES {
        let text = fs::read_to_string(Path::new(EXAMPLE).join(name)).expect("a text");
        let shown = format!("`{name}`:\n\n```json\n{text}```\n");
        assert!(page.contains(&shown), "docs/event-catalogue.md does not show {name}");
    }
}
