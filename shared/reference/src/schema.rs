//! A schema as HTML: a line for its type, and a list of its members.

use serde_json::Value;

use crate::{
    document::{list, members, text},
    markdown::{block, escaped, inline},
};

/// The keywords that `kind` and `html` describe in words. All others are shown literally.
const IN_WORDS: [&str; 17] = [
    "$ref",
    "type",
    "format",
    "items",
    "enum",
    "const",
    "properties",
    "patternProperties",
    "required",
    "description",
    "additionalProperties",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "example",
    "examples",
];

/// A schema: its type, its description, and the list of its members.
pub fn html(schema: &Value) -> String {
    html_without(schema, &[])
}

/// A schema without these members.
pub fn html_without(schema: &Value, left_out: &[&str]) -> String {
    let mut written = String::new();
    let type_and_limits = format!("{}{}", kind(schema), limits(schema));
    // For a plain object, the list of members is enough.
    if type_and_limits != "object" {
        written += &format!("<p>{type_and_limits}</p>\n");
    }
    written += &text(schema, "description").map(block).unwrap_or_default();
    let mut shown = schema.clone();
    if let Some(members) = shown.get_mut("properties").and_then(Value::as_object_mut) {
        members.retain(|name, _| !left_out.contains(&name.as_str()));
    }
    written + &list_of_members(&shown)
}

/// A value's type, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = text(schema, "$ref") {
        let name = escaped(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    for (member, between) in [("allOf", " and "), ("anyOf", " or "), ("oneOf", " or ")] {
        let parts: Vec<String> = list(schema, member).iter().map(kind).collect();
        if !parts.is_empty() {
            return parts.join(between);
        }
    }
    if let Some(value) = schema.get("const") {
        return code(value);
    }
    let values: Vec<String> = list(schema, "enum").iter().map(code).collect();
    if !values.is_empty() {
        return values.join(", ");
    }
    // Later releases may add values to a response.
    let known: Vec<String> = list(schema, "examples").iter().map(code).collect();
    if !known.is_empty() {
        return format!("{} or a later value", known.join(", "));
    }
    let named = match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "any value".to_owned(),
    };
    match (named.as_str(), schema.get("items")) {
        ("array", Some(items)) => format!("array of {}", kind(items)),
        _ => format!(
            "{}{}",
            escaped(&named),
            text(schema, "format").map(|format| format!(" ({})", escaped(format))).unwrap_or_default()
        ),
    }
}

/// All keywords that are shown literally, after a comma. The pattern of known values adds nothing.
fn limits(schema: &Value) -> String {
    let has_known_values = schema["examples"].is_array();
    let is_shown = |name: &str| !(IN_WORDS.contains(&name) || name == "pattern" && has_known_values);
    let keywords = schema.as_object().into_iter().flatten().filter(|(name, _)| is_shown(name));
    keywords
        .map(|(name, value)| match (name.as_str(), value) {
            ("x-untrusted", Value::Bool(true)) => ", untrusted".to_owned(),
            ("x-problem-kinds", Value::Array(kinds)) => {
                format!(", with {}", kinds.iter().map(code).collect::<Vec<_>>().join(", "))
            }
            (_, Value::Number(number)) => format!(", {} {number}", escaped(name)),
            _ => format!(", {} {}", escaped(name), code(value)),
        })
        .collect()
}

/// An object's members, each followed by its own members. The parts of `allOf`, `anyOf` and `oneOf` are included.
fn list_of_members(schema: &Value) -> String {
    let required = list(schema, "required");
    let entries: String = members(schema, "properties")
        .map(|(name, member)| entry(&escaped(name), required.iter().any(|given| given == name), member))
        .chain(
            members(schema, "patternProperties")
                .map(|(name, member)| entry(&format!("like {}", escaped(name)), false, member)),
        )
        .chain(
            schema
                .get("additionalProperties")
                .filter(|others| others.is_object())
                .map(|others| entry("others", false, others)),
        )
        .collect();
    let mut written = String::new();
    if !entries.is_empty() {
        written += &format!("<dl>\n{entries}</dl>\n");
    }
    for part in ["allOf", "anyOf", "oneOf"].iter().flat_map(|member| list(schema, member)) {
        written += &list_of_members(part);
    }
    written + &schema.get("items").map(list_of_members).unwrap_or_default()
}

fn entry(name: &str, required: bool, member: &Value) -> String {
    let needed = if required { "" } else { "optional " };
    let description = text(member, "description").map(inline).unwrap_or_default();
    format!(
        "<dt>{name} <small>{needed}{}{}</small></dt><dd>{description}{}</dd>\n",
        kind(member),
        limits(member),
        list_of_members(member)
    )
}

fn code(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("<code>{}</code>", escaped(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_types_limits_and_references_are_written() {
        let html = html(&json!({
            "type": "object", "description": "A *thing*.", "required": ["id"], "minProperties": 1,
            "properties": {
                "id": { "$ref": "#/components/schemas/Name" },
                "sizes": { "type": "array", "items": { "type": "integer", "format": "int32" }, "maxItems": 3 },
                "state": { "enum": ["open", "shut"] },
                "status": { "type": "string", "pattern": "^[a-z]+$", "examples": ["new", "done"] },
                "inner": { "type": ["object", "null"], "properties": { "deep": { "const": "<x>" } } },
            },
            "additionalProperties": { "type": "string" },
        }));
        for part in [
            "object, minProperties 1",
            "A <em>thing</em>.",
            "<dt>id <small><a href=\"#schema-Name\">Name</a></small></dt>",
            "array of integer (int32), maxItems 3",
            "<code>open</code>, <code>shut</code>",
            "<dt>state <small>optional <code>open</code>",
            "<code>new</code>, <code>done</code> or a later value</small>",
            "object or null",
            "<code>&lt;x&gt;</code>",
            "<dt>others <small>optional string</small></dt>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn the_parts_of_a_composition_are_all_written() {
        let html = html(&json!({ "allOf": [{ "$ref": "#/a/B" }, { "properties": { "c": { "type": "string" } } }] }));
        assert!(html.contains("<a href=\"#schema-B\">B</a> and object") && html.contains("<dt>c <small>"), "{html}");
    }
}
