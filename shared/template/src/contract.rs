//! The served contract: openapi.yaml with the headers that many responses share.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{YamlError, yaml_to_json};

/// The member of openapi.yaml that lists the shared headers, in groups. It is not part of the served document.
const COMMON_HEADERS: &str = "x-common-headers";

/// Reads openapi.yaml and adds the shared headers to its responses.
///
/// # Errors
/// If the text is not exactly one YAML document.
pub fn contract(text: &str) -> Result<Value, YamlError> {
    let mut document = yaml_to_json(text)?;
    let common = document.as_object_mut().and_then(|members| members.remove(COMMON_HEADERS)).unwrap_or_default();
    let mut components_of_errors = BTreeSet::new();
    for operation in values_mut(document.get_mut("paths")).flat_map(|path| values_mut(Some(path))) {
        for (status, response) in members_mut(operation.get_mut("responses")) {
            let is_error = status.starts_with(['4', '5']);
            match response.get("$ref").and_then(Value::as_str) {
                Some(reference) => {
                    components_of_errors.extend(is_error.then(|| reference.to_owned()));
                }
                None => add_headers(response, &common, is_error),
            }
        }
    }
    for (name, response) in members_mut(document.pointer_mut("/components/responses")) {
        let is_error = components_of_errors.contains(&format!("#/components/responses/{name}"));
        add_headers(response, &common, is_error);
    }
    Ok(document)
}

/// Adds the groups that apply to a response. A header that the response itself declares is kept.
fn add_headers(response: &mut Value, common: &Value, is_error: bool) {
    let is_page = response.pointer("/content/text~1html").is_some();
    let groups = [("all", true), ("errors", is_error), ("pages", is_page), ("errorPages", is_error && is_page)];
    for (group, _) in groups.into_iter().filter(|(_, applies)| *applies) {
        for (name, header) in common[group].as_object().into_iter().flatten() {
            let declared = &mut response["headers"][name];
            if declared.is_null() {
                *declared = header.clone();
            }
        }
    }
}

fn members_mut(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value.and_then(Value::as_object_mut).into_iter().flat_map(Map::iter_mut)
}

fn values_mut(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    members_mut(value).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_response_gets_the_headers_of_its_groups_and_keeps_its_own() {
        let document = contract(
            "
            x-common-headers: {all: {Id: 1}, errors: {Cache: 2}, pages: {Sniff: 3}, errorPages: {Vary: 4}}
            paths:
              /a:
                parameters: []
                get:
                  responses:
                    '200': {content: {text/html: {}}, headers: {Sniff: own}}
                    '202': {description: Taken}
                    '302': {$ref: '#/components/responses/Moved'}
                    '404': {$ref: '#/components/responses/Missing'}
            components:
              responses: {Moved: {}, Missing: {content: {text/html: {}}}}
            webhooks: {event: {post: {responses: {'410': {}}}}}
            ",
        )
        .expect("valid YAML");
        assert!(document.get(COMMON_HEADERS).is_none());
        let of = |pointer: &str| document.pointer(pointer).map(|response| &response["headers"]);
        assert_eq!(of("/paths/~1a/get/responses/200"), Some(&json!({ "Id": 1, "Sniff": "own" })));
        assert_eq!(of("/paths/~1a/get/responses/202"), Some(&json!({ "Id": 1 })));
        assert_eq!(of("/components/responses/Moved"), Some(&json!({ "Id": 1 })));
        assert_eq!(of("/components/responses/Missing"), Some(&json!({ "Id": 1, "Cache": 2, "Sniff": 3, "Vary": 4 })));
        assert_eq!(of("/webhooks/event/post/responses/410"), Some(&Value::Null));
    }
}
