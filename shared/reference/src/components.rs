//! The parts that operations share: errors, parameters, headers and schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    document::{component, list, members, operations, resolved, text},
    markdown::{escaped, inline},
    operation::{self, NOT_SHOWN},
    problems, schema,
};

/// The errors that operations refer to, with their statuses and kinds. Common errors come first.
pub fn errors(document: &Value) -> String {
    let references = problems::references(document);
    let entry = |name: &str, response: &Value| {
        let statuses: BTreeSet<&str> =
            references.iter().filter(|(_, used)| *used == name).map(|(status, _)| *status).collect();
        let statuses: Vec<&str> = statuses.into_iter().collect();
        format!(
            "<dt id=\"response-{}\"><code>{}</code></dt><dd>{}{}</dd>\n",
            escaped(name),
            statuses.join(", "),
            with_links(&inline(text(response, "description").unwrap_or_default()), response),
            details(response)
        )
    };
    let most = problems::common_errors(document);
    let used = members(&document["components"], "responses")
        .filter(|(name, _)| references.iter().any(|(_, used)| used == name));
    let (common, others): (Vec<_>, Vec<_>) = used.partition(|(name, _)| most.contains(name));
    let entries = |responses: Vec<(&str, &Value)>| -> String {
        responses.into_iter().map(|(name, response)| entry(name, response)).collect()
    };
    format!(
        "<p>The body is a <a href=\"#schema-Problem\">Problem</a> as <code>application/problem+json</code>, unless another \
         one is named. The page of each kind explains it and has an example.</p>\n\
         <h3>Common errors</h3>\n<dl>\n{}</dl>\n<h3>Errors of some operations</h3>\n<dl>\n{}</dl>\n",
        entries(common),
        entries(others)
    )
}

/// A response's description with links from its kinds of Problem to their pages. Kinds that the description does not
/// mention are appended.
fn with_links(description: &str, response: &Value) -> String {
    let mut written = description.to_owned();
    for kind in problems::kinds(response) {
        let link = format!("<a href=\"/problems/{kind}\">{kind}</a>");
        let named = format!("<code>{kind}</code>");
        written = if written.contains(&named) { written.replace(&named, &link) } else { written + " " + &link };
    }
    written
}

/// An error's media types and headers.
fn details(response: &Value) -> String {
    let mut parts = Vec::new();
    for (media_type, content) in members(response, "content") {
        if media_type == "text/html" {
            parts.push("a page for browsers".to_owned());
        } else if let Some(name) = content.get("schema").and_then(component).filter(|name| *name != "Problem") {
            parts.push(format!("body: <a href=\"#schema-{0}\">{0}</a>", escaped(name)));
        }
    }
    for name in ["Retry-After", "Allow", "WWW-Authenticate"] {
        if let Some(header) = response["headers"].get(name).and_then(component) {
            parts.push(format!("header <a href=\"#header-{}\">{name}</a>", escaped(header)));
        }
    }
    if parts.is_empty() { String::new() } else { format!("<p>{}</p>", parts.join(" · ")) }
}

/// The parameters that operations refer to.
pub fn parameters(document: &Value) -> String {
    let rows: String = members(&document["components"], "parameters")
        .map(|(name, declared)| {
            operation::parameter(resolved(document, declared), &format!(" id=\"parameter-{}\"", escaped(name)))
        })
        .collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// The headers that the page's responses refer to.
pub fn headers(document: &Value) -> String {
    let mut used = BTreeSet::new();
    let responses = operations(document).into_iter().flat_map(|operation| members(operation.declared, "responses"));
    for (_, response) in responses {
        let of_response = members(resolved(document, response), "headers");
        used.extend(
            of_response.filter(|(name, _)| !NOT_SHOWN.contains(name)).filter_map(|(_, header)| component(header)),
        );
    }
    let mut written = "<dl>\n".to_owned();
    for (name, header) in members(&document["components"], "headers").filter(|(name, _)| used.contains(name)) {
        written += &format!(
            "<dt id=\"header-{0}\">{0}</dt><dd>{1}</dd>\n",
            escaped(name),
            inline(text(header, "description").unwrap_or_default())
        );
    }
    written + "</dl>\n"
}

/// The minimum number of equal members that makes a schema refer to another one.
const MANY: usize = 5;

/// Every schema. If it has many members in common with an earlier schema, these members are named, but not described
/// again.
pub fn schemas(document: &Value) -> String {
    let mut written = String::new();
    let mut described = Vec::<(&str, &Value)>::new();
    for (name, declared) in members(&document["components"], "schemas") {
        let equal = described.iter().map(|(other, schema)| (*other, equal_members(declared, schema)));
        let base = equal.filter(|(_, equal)| equal.len() >= MANY).max_by_key(|(_, equal)| equal.len());
        written += &format!("<article id=\"schema-{0}\">\n<h3>{0}</h3>\n", escaped(name));
        written += &match base {
            Some((other, equal)) => {
                let names: Vec<String> = equal.iter().map(|name| format!("<code>{}</code>", escaped(name))).collect();
                format!(
                    "{}<p>As in <a href=\"#schema-{other}\">{other}</a>: {}.</p>\n",
                    schema::html_without(declared, &equal),
                    names.join(", ")
                )
            }
            None => {
                described.push((name, declared));
                schema::html(declared)
            }
        };
        written += "</article>\n";
    }
    written
}

/// The members that both schemas declare in the same way.
fn equal_members<'a>(one: &'a Value, other: &Value) -> Vec<&'a str> {
    let is_required = |schema: &Value, name: &str| list(schema, "required").iter().any(|given| given == name);
    members(one, "properties")
        .filter(|(name, member)| {
            other["properties"].get(name) == Some(member) && is_required(one, name) == is_required(other, name)
        })
        .map(|(name, _)| name)
        .collect()
}
