//! Member names that the JSON parser of this service, `serde_json`, uses for itself. In an object with such a member
//! alone, the parser reads JSON from the member's string. Other programs would see another value, so these names are
//! refused.

use crate::{Pointer, strings};

/// The violation of a member with such a name.
pub(crate) const MESSAGE: &str = "must be omitted: some JSON parsers misread a member with this name";

const NAMES: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

/// Pointers to the first members with such a name in well-formed JSON, at any depth.
pub(crate) fn find(json: &str) -> Vec<Pointer> {
    // The dollar sign has only one escape.
    if json.contains('$') || json.contains("\\u0024") {
        strings::find(json, |text, is_name| is_name && is_private(text))
    } else {
        Vec::new()
    }
}

/// Whether a name, as written in JSON, is one of the parser's.
fn is_private(name: &str) -> bool {
    if name.contains('\\') {
        let read = serde_json::from_str::<String>(&format!("\"{name}\""));
        return read.is_ok_and(|name| NAMES.contains(&&*name));
    }
    NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pointers(json: &str) -> Vec<String> {
        find(json).iter().map(|pointer| pointer.as_str().to_owned()).collect()
    }

    #[test]
    fn the_parser_reads_a_member_with_such_a_name_in_another_way() {
        let wrapped = json!({ (NAMES[0]): "{\"a\":1}" }).to_string();
        assert_eq!(serde_json::from_str::<Value>(&wrapped).expect("JSON"), json!({ "a": 1 }));
    }

    #[test]
    fn such_a_member_is_found_at_every_depth_and_in_every_notation() {
        for name in [NAMES[0], NAMES[1], "\\u0024serde_json::private::RawValue", "$serde_json\\u003a:private::Number"] {
            let found = pointers(&format!(r#"{{"data":[1,{{"{name}":"{{}}"}}],"{name}":1}}"#));
            assert_eq!(found.len(), 2, "{name}: {found:?}");
            assert!(found[0].starts_with("/data/1/$serde_json::private::"), "{found:?}");
        }
    }

    #[test]
    fn other_names_and_values_are_left_alone() {
        for json in [
            r#"{"a":"$serde_json::private::RawValue"}"#,
            r#"["$serde_json::private::RawValue"]"#,
            r#"{"$serde_json::private::rawvalue":1,"$ref":2,"\\u0024serde_json::private::Number":3}"#,
        ] {
            assert_eq!(pointers(json), [""; 0], "{json}");
        }
    }
}
