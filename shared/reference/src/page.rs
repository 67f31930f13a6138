//! The reference: navigation, first requests, introduction, every operation, and the parts that operations share.
//! Bundles that render a reference in the browser need one to four megabytes of script, and styles that the content
//! security policy forbids.

use serde_json::Value;

use crate::{
    components,
    document::{by_tag, members, server, text},
    markdown::{block, escaped, inline},
    operation::{self, Exemplified, described},
};

/// A reader's first requests, with the example hosts of openapi.yaml.
const START: &str = include_str!("../start.md");

/// The sections after the operations: anchor and heading.
const SHARED: [(&str, &str); 4] = [
    ("errors", "Errors that operations share"),
    ("parameters", "Parameters that operations share"),
    ("headers", "Headers of responses"),
    ("schemas", "Schemas"),
];

/// The reference page's content, as HTML.
pub fn content(document: &Value) -> String {
    let info = &document["info"];
    let mut written = navigation(document);
    written += &format!(
        "<div>\n<p>{} Release {}. For machines: <a href=\"/openapi.json\">openapi.json</a>. For your endpoint: \
         <a href=\"/receiving\">Receiving webhooks</a>. Errors: <a href=\"/problems\">all kinds of Problems</a>.</p>\n",
        inline(text(info, "summary").unwrap_or_default()),
        escaped(text(info, "version").unwrap_or_default()),
    );
    written += &format!("<h2 id=\"start\">First requests</h2>\n{}", block(START));
    written += &format!(
        "<h2 id=\"introduction\">Introduction</h2>\n<p>Paths below belong to <code>{}</code>; the token issuer has a \
         separate address.</p>\n{}",
        escaped(server(document).unwrap_or_default()),
        introduction(info)
    );
    written += &scopes(document);
    let mut shown = Exemplified::new();
    for (name, tag, operations) in by_tag(document) {
        written += &format!("<h2 id=\"tag-{0}\">{0}</h2>\n{1}", escaped(name), described(tag));
        for operation in &operations {
            written += &operation::article(document, operation, &mut shown);
        }
    }
    for (anchor, heading) in SHARED {
        written += &format!("<h2 id=\"{anchor}\">{heading}</h2>\n");
        written += &match anchor {
            "errors" => components::errors(document),
            "parameters" => components::parameters(document),
            "headers" => components::headers(document),
            _ => components::schemas(document),
        };
    }
    written + "</div>\n"
}

/// The introduction without its table of all kinds of Problem, since each has its own page.
fn introduction(info: &Value) -> String {
    let lines = text(info, "description").unwrap_or_default().lines().filter(|line| !line.starts_with('|'));
    block(&lines.fold(String::new(), |text, line| text + line + "\n"))
}

/// The navigation. The operations of a tag are folded, so that a phone shows all parts of the page on one screen.
fn navigation(document: &Value) -> String {
    let link =
        |anchor: &str, words: &str| format!("<li><a href=\"#{}\">{}</a></li>\n", escaped(anchor), escaped(words));
    let mut written = "<nav aria-label=\"Contents\">\n<ul>\n".to_owned();
    for (anchor, words) in [("start", "First requests"), ("introduction", "Introduction"), ("scopes", "Scopes")] {
        written += &link(anchor, words);
    }
    for (name, _, operations) in by_tag(document) {
        written += &format!("<li><details><summary>{}</summary>\n<ul>\n", escaped(name));
        written += &link(&format!("tag-{name}"), "Overview");
        for operation in operations {
            written += &link(operation.id, operation.summary());
        }
        written += "</ul></details></li>\n";
    }
    for (anchor, heading) in SHARED {
        written += &link(anchor, heading);
    }
    written + "</ul>\n</nav>\n"
}

/// The scopes' meaning, and their names.
fn scopes(document: &Value) -> String {
    let scheme = &document["components"]["securitySchemes"]["oauth2"];
    let flow = &scheme["flows"]["clientCredentials"];
    let names: Vec<String> =
        members(flow, "scopes").map(|(name, _)| format!("<code>{}</code>", escaped(name))).collect();
    format!("<h2 id=\"scopes\">Scopes</h2>\n{}<p>All scopes: {}.</p>\n", described(scheme), names.join(", "))
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
    fn every_operation_and_component_has_an_anchor_and_every_link_a_target() {
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
    fn the_reference_has_no_script_and_no_style_and_loads_fast() {
        let html = content(&document());

        for forbidden in ["<script", "style=", "javascript:", "<img", "<iframe"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        // With the page's frame, the total stays below 350 000 bytes.
        assert!(html.len() < 344_000, "{}", html.len());
    }

    #[test]
    fn the_first_request_is_the_token_call() {
        let html = content(&document());
        let first = html.find("curl").expect("there is a command");
        assert!(html[first..].starts_with("curl -sS https://auth.waypost.example/oauth2/token"));
        assert!(first < html.find("<h2 id=\"introduction\">").expect("there is an introduction"));
    }

    #[test]
    fn every_scope_is_on_the_page() {
        let html = content(&document());
        let (_, scopes) = html.split_once("<p>All scopes: ").expect("it lists the scopes");
        let (scopes, _) = scopes.split_once("</p>").expect("it ends");
        assert_eq!(scopes.matches("<code>").count(), 30);
    }

    #[test]
    fn errors_are_explained_once_and_lead_to_their_pages() {
        let html = content(&document());
        assert_eq!(html.matches("The access token is missing, malformed, expired, or not meant").count(), 1);
        assert!(html.contains("<a href=\"/problems/invalid-request\">invalid-request</a>"));
        assert!(html.contains("<a href=\"#response-DeliveryNotFound\">404 delivery-not-found</a>"));
        assert!(html.matches("<a href=\"#errors\">common errors</a>").count() > 40);
    }
}
