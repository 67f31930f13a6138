//! A schema as HTML: a line for its type, and a table for its members.

use serde_json::Value;

use crate::{
    document::{list, members, text},
    markdown::{block, escaped},
};

/// The keywords that `kind` and `html` write in words. All others are shown literally.
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

/// A schema: its type, its description, and the table of its members.
pub fn html(schema: &Value) -> String {
    let mut written = format!("<p>{}{}</p>\n", kind(schema), limits(schema));
    written += &text(schema, "description").map(block).unwrap_or_default();
    written + &table(schema)
}

/// The type of a value, in a few words.
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

/// All keywords that are shown literally.
fn limits(schema: &Value) -> String {
    let keywords = schema.as_object().into_iter().flatten().filter(|(name, _)| !IN_WORDS.contains(&name.as_str()));
    keywords.map(|(name, value)| format!(" <small>{} {}</small>", escaped(name), code(value))).collect()
}

/// The members of an object, each followed by its own members, including the parts of `allOf`, `anyOf` and `oneOf`.
fn table(schema: &Value) -> String {
    let required = list(schema, "required");
    let rows: String = members(schema, "properties")
        .map(|(name, member)| {
            row(&format!("<code>{}</code>", escaped(name)), required.iter().any(|given| given == name), member)
        })
        .chain(
            members(schema, "patternProperties")
                .map(|(name, member)| row(&format!("like <code>{}</code>", escaped(name)), false, member)),
        )
        .chain(
            schema
                .get("additionalProperties")
                .filter(|others| others.is_object())
                .map(|others| row("others", false, others)),
        )
        .collect();
    let mut written = String::new();
    if !rows.is_empty() {
        written += &format!("<table>\n<tr><th>Member</th><th>Type</th><th>Meaning</th></tr>\n{rows}</table>\n");
    }
    for part in ["allOf", "anyOf", "oneOf"].iter().flat_map(|member| list(schema, member)) {
        written += &table(part);
    }
    written + &schema.get("items").map(table).unwrap_or_default()
}

fn row(name: &str, required: bool, member: &Value) -> String {
    let needed = if required { "" } else { "<br><small>may be absent</small>" };
    let description = text(member, "description").map(block).unwrap_or_default();
    format!(
        "<tr><td>{name}{needed}</td><td>{}{}</td><td>{description}{}</td></tr>\n",
        kind(member),
        limits(member),
        table(member)
    )
}

/// A value as code.
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
                "inner": { "type": ["object", "null"], "properties": { "deep": { "const": "<x>" } } },
            },
            "additionalProperties": { "type": "string" },
        }));
        for part in [
            "object <small>minProperties <code>1</code></small>",
            "A <em>thing</em>.",
            "<tr><td><code>id</code></td><td><a href=\"#schema-Name\">Name</a></td>",
            "array of integer (int32) <small>maxItems <code>3</code></small>",
            "<code>open</code>, <code>shut</code>",
            "<code>state</code><br><small>may be absent</small>",
            "object or null",
            "<code>&lt;x&gt;</code>",
            "<td>others<br>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn the_parts_of_a_composition_are_all_written() {
        let html = html(&json!({ "allOf": [{ "$ref": "#/a/B" }, { "properties": { "c": { "type": "string" } } }] }));
        assert!(html.contains("<a href=\"#schema-B\">B</a> and object") && html.contains("<code>c</code>"), "{html}");
    }
}
