//! One operation: access, description, parameters, body and responses. Parts that operations share are links.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    document::{Operation, component, list, members, resolved, text},
    markdown::{block, escaped, escaped_content, inline},
    problems, schema,
};

/// The names of the schemas whose examples are already on the page.
pub type Exemplified<'a> = BTreeSet<&'a str>;

/// The operation, as HTML.
pub fn article<'a>(document: &'a Value, operation: &Operation<'a>, shown: &mut Exemplified<'a>) -> String {
    let Operation { id, verb, address, declared, .. } = operation;
    let mut written = format!("<article id=\"{}\">\n<h3>{}</h3>\n", escaped(id), escaped(operation.summary()));
    let address = address.as_deref().unwrap_or("your endpoint");
    written += &format!("<p><code>{verb} {}</code>{}</p>\n", escaped(address), access(declared));
    written += &described(declared);
    written += &parameters(document, operation);
    if let Some(body) = declared.get("requestBody") {
        let needed = if body["required"] == true { "" } else { " <small>optional</small>" };
        written += &format!("<h4>Body{needed}</h4>\n{}{}", described(body), contents(body, shown));
    }
    written += "<h4>Responses</h4>\n";
    for (status, response) in members(declared, "responses") {
        if !(is_error(status) && component(response).is_some()) {
            written += &answer(document, status, response, shown);
        }
    }
    written += &errors(document, declared);
    written + "</article>\n"
}

/// An operation's required access, in a few words.
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
                " · no access token required; if you send one, it needs the scope <code>{}</code>",
                escaped(&scopes.join(" "))
            )
        }
        (false, ..) => String::new(),
    }
}

/// The description of a part of the document.
pub fn described(value: &Value) -> String {
    text(value, "description").map(block).unwrap_or_default()
}

/// The parameters. For those that operations share, only the names are listed.
fn parameters(document: &Value, operation: &Operation<'_>) -> String {
    let (shared, own): (Vec<&Value>, Vec<&Value>) =
        operation.parameters.iter().copied().partition(|parameter| component(parameter).is_some());
    let names: Vec<&str> =
        shared.into_iter().filter_map(|parameter| text(resolved(document, parameter), "name")).collect();
    let entries: String = own.into_iter().map(|parameter| self::parameter(parameter, "")).collect();
    let mut written = String::new();
    if !names.is_empty() {
        let names = escaped(&names.join(", "));
        written += &format!("<p><a href=\"#parameters\">Shared parameters</a>: {names}</p>\n");
    }
    if !entries.is_empty() {
        written += &format!("<h4>Parameters</h4>\n<dl>\n{entries}</dl>\n");
    }
    written
}

/// A parameter's entry in a list, with these attributes.
pub fn parameter(parameter: &Value, attributes: &str) -> String {
    let needed = if parameter["required"] == true { "" } else { "optional, " };
    let example = parameter.get("example").map(|example| {
        let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        format!(" For example <code>{}</code>.", escaped(&example))
    });
    format!(
        "<dt{attributes}><code>{}</code> <small>{needed}{}</small></dt><dd>{}{}{}</dd>\n",
        escaped(text(parameter, "name").unwrap_or_default()),
        escaped(text(parameter, "in").unwrap_or_default()),
        inline(text(parameter, "description").unwrap_or_default()),
        example.unwrap_or_default(),
        parameter.get("schema").map(schema::html).unwrap_or_default(),
    )
}

/// Links to the shared errors, with their kinds. For common errors, only the statuses are listed.
fn errors(document: &Value, declared: &Value) -> String {
    let most = problems::common_errors(document);
    let shared = members(declared, "responses").filter_map(|(status, response)| {
        let name = component(response).filter(|_| is_error(status))?;
        Some((status, name, resolved(document, response)))
    });
    let (common, special): (Vec<_>, Vec<_>) = shared.partition(|(_, name, _)| most.contains(name));
    let mut parts: Vec<String> = special
        .into_iter()
        .map(|(status, name, response)| {
            let kinds: Vec<String> = problems::kinds(response).into_iter().collect();
            let words = if kinds.is_empty() { name.to_owned() } else { kinds.join(", ") };
            format!("<a href=\"#response-{}\">{status} {}</a>", escaped(name), escaped(&words))
        })
        .collect();
    if !common.is_empty() {
        let statuses: Vec<&str> = common.into_iter().map(|(status, ..)| status).collect();
        parts.push(format!("<a href=\"#errors\">common errors</a> {}", statuses.join(", ")));
    }
    if parts.is_empty() { String::new() } else { format!("<p>Errors: {}</p>\n", parts.join(" · ")) }
}

fn is_error(status: &str) -> bool {
    status.starts_with(['4', '5'])
}

/// A successful response, or an error that is not shared.
fn answer<'a>(document: &'a Value, status: &str, declared: &'a Value, shown: &mut Exemplified<'a>) -> String {
    let response = resolved(document, declared);
    // Keywords beside a reference take precedence.
    let description = text(declared, "description").or(text(response, "description")).unwrap_or_default();
    let mut written = format!("<div><code>{}</code> {}", escaped(status), inline(description));
    let headers: Vec<String> = members(response, "headers")
        .filter(|(name, _)| !NOT_SHOWN.contains(name))
        .map(|(name, header)| match component(header) {
            Some(shared) => format!("<a href=\"#header-{}\">{}</a>", escaped(shared), escaped(name)),
            None => {
                format!("<code>{}</code> ({})", escaped(name), inline(text(header, "description").unwrap_or_default()))
            }
        })
        .collect();
    if !headers.is_empty() {
        written += &format!("<p>Headers: {}</p>\n", headers.join(", "));
    }
    written + &contents(response, shown) + "</div>\n"
}

/// Headers that the introduction describes, or that concern only browsers and caches.
pub const NOT_SHOWN: [&str; 12] = [
    "Service-Version",
    "X-Request-Id",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "Cache-Control",
    "Pragma",
    "Content-Security-Policy",
    "Vary",
    "ETag",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Access-Control-Allow-Origin",
];

/// The media types of a body, each with its schema and examples. A named schema has examples only at its first use.
fn contents<'a>(body: &'a Value, shown: &mut Exemplified<'a>) -> String {
    let mut written = String::new();
    for (media_type, content) in members(body, "content") {
        if media_type != "application/json" {
            written += &format!("<p><code>{}</code></p>\n", escaped(media_type));
        }
        // All HTML pages have the same schema.
        if media_type != "text/html" {
            written += &content.get("schema").map(schema::html).unwrap_or_default();
        }
        let schema = &content["schema"];
        let name = component(schema).or_else(|| component(schema.get("items")?));
        if name.is_none_or(|name| shown.insert(name)) {
            written += &members(content, "examples").map(|(_, example)| self::example(example)).collect::<String>();
        }
    }
    written
}

fn example(example: &Value) -> String {
    let summary = text(example, "summary").map(|words| format!("Example: {}", inline(words)));
    format!(
        "<details>\n<summary>{}</summary>\n<pre><code>{}</code></pre>\n</details>\n",
        summary.as_deref().unwrap_or("Example"),
        // Writing a value as JSON cannot fail.
        escaped_content(&serde_json::to_string_pretty(&example["value"]).unwrap_or_default()),
    )
}
