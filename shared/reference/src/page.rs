//! The reference: navigation, introduction, every operation with its responses, and every schema.

use serde_json::Value;

use crate::{
    document::{Operation, by_tag, list, members, resolved, server, text},
    markdown::{block, escaped, inline},
    problems, schema,
};

/// The content of the reference page, as HTML.
pub fn content(document: &Value) -> String {
    let base = escaped(&server(document).unwrap_or_default());
    let info = &document["info"];
    let mut written = navigation(document);
    written += "<div>\n";
    written += &format!(
        "<p>{} Version {}. For machines: <a href=\"{base}/openapi.json\">openapi.json</a>. \
         Errors: <a href=\"{base}/problems\">all kinds of Problems</a>.</p>\n",
        inline(text(info, "summary").unwrap_or_default()),
        escaped(text(info, "version").unwrap_or_default()),
    );
    written += &format!("<h2 id=\"introduction\">Introduction</h2>\n{}", described(info));
    written += &scopes(document);
    for (name, tag, operations) in by_tag(document) {
        written += &format!("<h2 id=\"tag-{0}\">{0}</h2>\n{1}", escaped(name), described(tag));
        for operation in &operations {
            written += &article(document, operation, &base);
        }
    }
    written += "<h2 id=\"schemas\">Schemas</h2>\n";
    for (name, declared) in members(&document["components"], "schemas") {
        written += &format!(
            "<article id=\"schema-{0}\">\n<h3>{0}</h3>\n{1}</article>\n",
            escaped(name),
            schema::html(declared)
        );
    }
    written + "</div>\n"
}

fn navigation(document: &Value) -> String {
    let mut written = "<nav aria-label=\"Contents\">\n<ul>\n<li><a href=\"#introduction\">Introduction</a></li>\n\
         <li><a href=\"#scopes\">Scopes</a></li>\n</ul>\n"
        .to_owned();
    for (name, _, operations) in by_tag(document) {
        written += &format!("<strong><a href=\"#tag-{0}\">{0}</a></strong>\n<ul>\n", escaped(name));
        for operation in operations {
            written +=
                &format!("<li><a href=\"#{}\">{}</a></li>\n", escaped(operation.id), escaped(operation.summary()));
        }
        written += "</ul>\n";
    }
    written + "<strong><a href=\"#schemas\">Schemas</a></strong>\n</nav>\n"
}

/// The rights of each scope.
fn scopes(document: &Value) -> String {
    let scheme = &document["components"]["securitySchemes"]["oauth2"];
    let flow = &scheme["flows"]["clientCredentials"];
    let rows: String = members(flow, "scopes")
        .map(|(name, meaning)| {
            format!(
                "<tr><td><code>{}</code></td><td>{}</td></tr>\n",
                escaped(name),
                inline(meaning.as_str().unwrap_or_default())
            )
        })
        .collect();
    let explained = described(scheme);
    format!(
        "<h2 id=\"scopes\">Scopes</h2>\n<table>\n<tr><th>Scope</th><th>Meaning</th></tr>\n{rows}</table>\n{explained}"
    )
}

/// One operation.
fn article(document: &Value, operation: &Operation<'_>, base: &str) -> String {
    let Operation { id, verb, address, declared, parameters } = operation;
    let mut written = format!("<article id=\"{}\">\n<h3>{}</h3>\n", escaped(id), escaped(operation.summary()));
    let address = address.as_deref().unwrap_or("your endpoint");
    written += &format!("<p><code>{verb} {}</code>{}</p>\n", escaped(address), access(declared));
    written += &described(declared);
    if !parameters.is_empty() {
        let rows: String = parameters.iter().map(|parameter| self::parameter(parameter)).collect();
        written += &format!(
            "<h4>Parameters</h4>\n<table>\n<tr><th>Name</th><th>In</th><th>Meaning</th></tr>\n{rows}</table>\n"
        );
    }
    if let Some(body) = declared.get("requestBody") {
        let body = resolved(document, body);
        let needed = if body["required"] == true { "" } else { " <small>may be absent</small>" };
        written += &format!("<h4>Body{needed}</h4>\n{}{}", described(body), contents(body));
    }
    written += "<h4>Answers</h4>\n";
    for (status, response) in members(declared, "responses") {
        written += &answer(document, status, response, base);
    }
    written + "</article>\n"
}

/// The required access, in a few words.
fn access(declared: &Value) -> String {
    let ways = list(declared, "security");
    let scopes: Vec<&str> = ways.iter().flat_map(|way| list(way, "oauth2")).filter_map(Value::as_str).collect();
    let optional = ways.iter().any(|way| way.as_object().is_some_and(serde_json::Map::is_empty));
    let needs_token = ways.iter().any(|way| way.get("oauth2").is_some());
    match (needs_token, optional, scopes.as_slice()) {
        (true, false, []) => " · an access token with any scope".to_owned(),
        (true, false, scopes) => format!(" · scope <code>{}</code>", escaped(&scopes.join(" "))),
        (true, true, scopes) => {
            format!(
                " · no access token; a token that is sent needs the scope <code>{}</code>",
                escaped(&scopes.join(" "))
            )
        }
        (false, ..) => String::new(),
    }
}

fn parameter(parameter: &Value) -> String {
    let needed = if parameter["required"] == true { "" } else { "<br><small>may be absent</small>" };
    let example = parameter.get("example").map(|example| {
        format!(
            "<p>For example <code>{}</code></p>",
            escaped(&example.as_str().map_or_else(|| example.to_string(), str::to_owned))
        )
    });
    format!(
        "<tr><td><code>{}</code>{needed}</td><td>{}</td><td>{}{}{}</td></tr>\n",
        escaped(text(parameter, "name").unwrap_or_default()),
        escaped(text(parameter, "in").unwrap_or_default()),
        described(parameter),
        parameter.get("schema").map(schema::html).unwrap_or_default(),
        example.unwrap_or_default(),
    )
}

/// One status with its headers, forms, examples and kinds of Problems.
fn answer(document: &Value, status: &str, declared: &Value, base: &str) -> String {
    let response = resolved(document, declared);
    // Keywords beside a reference have precedence.
    let description = text(declared, "description").or(text(response, "description")).unwrap_or_default();
    let mut written =
        format!("<details>\n<summary><code>{}</code> {}</summary>\n", escaped(status), inline(description));
    let kinds: Vec<String> = problems::kinds(response)
        .into_iter()
        .map(|kind| format!("<a href=\"{base}/problems/{kind}\">{kind}</a>"))
        .collect();
    if !kinds.is_empty() {
        written += &format!("<p>Problems: {}</p>\n", kinds.join(", "));
    }
    let headers: String = members(response, "headers")
        .map(|(name, header)| {
            let header = resolved(document, header);
            format!("<tr><td><code>{}</code></td><td>{}</td></tr>\n", escaped(name), described(header))
        })
        .collect();
    if !headers.is_empty() {
        written += &format!("<table>\n<tr><th>Header</th><th>Meaning</th></tr>\n{headers}</table>\n");
    }
    written + &contents(response) + "</details>\n"
}

/// The media types of a body, each with its schema and examples.
fn contents(body: &Value) -> String {
    let mut written = String::new();
    for (media_type, content) in members(body, "content") {
        written += &format!("<p><code>{}</code></p>\n", escaped(media_type));
        written += &content.get("schema").map(schema::html).unwrap_or_default();
        for (name, example) in members(content, "examples") {
            let title = text(example, "summary").unwrap_or(name);
            // Writing a value as JSON cannot fail.
            let value = serde_json::to_string_pretty(&example["value"]).unwrap_or_default();
            written += &format!("<p>Example: {}</p>\n<pre><code>{}</code></pre>\n", escaped(title), escaped(&value));
        }
    }
    written
}

fn described(value: &Value) -> String {
    text(value, "description").map(block).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::operations;
    use std::{collections::BTreeSet, fs};

    fn document() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.yaml");
        template::contract(&fs::read_to_string(path).expect("the project has an openapi.yaml")).expect("it is YAML")
    }

    #[test]
    fn every_operation_and_schema_has_an_anchor_and_every_link_a_target() {
        let document = document();
        let html = content(&document);
        let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let places: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), places.len(), "no anchor is there twice");
        for operation in operations(&document) {
            assert!(places.contains(operation.id), "{}", operation.id);
        }
        for (name, _) in members(&document["components"], "schemas") {
            assert!(places.contains(format!("schema-{name}").as_str()), "{name}");
        }
        let links = html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
        let broken: BTreeSet<&str> = links.filter(|link| !places.contains(link)).collect();
        assert!(broken.is_empty(), "{broken:?}");
    }

    #[test]
    fn every_operation_has_a_tag_that_the_document_lists() {
        let document = document();
        let listed: usize = by_tag(&document).iter().map(|(.., operations)| operations.len()).sum();
        assert_eq!(listed, operations(&document).len());
    }

    #[test]
    fn the_reference_has_no_script_and_no_style_and_fits_into_a_response() {
        let html = content(&document());
        for forbidden in ["<script", "style=", "javascript:", "<img", "<iframe"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        // Lambda's responses are below 6 MB; a reader should not wait for that much.
        assert!(html.len() < 1_500_000, "{}", html.len());
    }

    #[test]
    fn every_scope_is_on_the_page_with_its_rights() {
        let html = content(&document());
        let (_, table) = html.split_once("<h2 id=\"scopes\">").expect("it has an anchor");
        let (table, _) = table.split_once("</table>").expect("a table");
        assert_eq!(table.matches("<td><code>").count(), 30);
        assert!(table.contains(
            "<td><code>integrations.remove</code></td><td>Delete resources of integrations: channel managers"
        ));
    }

    #[test]
    fn kinds_of_problems_link_to_their_pages() {
        let html = content(&document());
        assert!(html.contains("<a href=\"https://api.waypost.example/problems/invalid-request\">invalid-request</a>"));
    }
}
