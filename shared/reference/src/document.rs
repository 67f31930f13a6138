//! Access to the document's parts.

use serde_json::{Map, Value};

/// A path's methods, in the reference's order.
const VERBS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];

/// One operation: a request to the service, or the service's request to an endpoint.
pub struct Operation<'a> {
    /// The operation's name, and its anchor in the reference.
    pub id: &'a str,
    /// The method, in capitals.
    pub verb: String,
    /// The address, with parameters in braces: a path on the document's server, or a whole address on another server;
    /// `None` for the client's endpoint.
    pub address: Option<String>,
    /// The operation's declaration.
    pub declared: &'a Value,
    /// The parameters of the path and of the operation, which may be references.
    pub parameters: Vec<&'a Value>,
}

impl<'a> Operation<'a> {
    /// The summary.
    pub fn summary(&self) -> &'a str {
        text(self.declared, "summary").unwrap_or(self.id)
    }

    fn has_tag(&self, name: &str) -> bool {
        list(self.declared, "tags").first().is_some_and(|tag| tag == name)
    }
}

/// A member's text.
pub fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

/// A list member's elements.
pub fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// An object member's members.
pub fn members<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value
        .get(member)
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, value)| (name.as_str(), value))
}

/// The target of a `$ref`, or the value itself.
///
/// # Panics
/// If the reference has no target, which stops the build. Tests read the same document.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match text(value, "$ref") {
        Some(reference) => {
            let target = document.pointer(reference.trim_start_matches('#'));
            resolved(document, target.unwrap_or_else(|| panic!("openapi.yaml has no {reference}")))
        }
        None => value,
    }
}

/// The first server's address.
pub fn server(value: &Value) -> Option<&str> {
    text(list(value, "servers").first()?, "url")
}

/// The name of the component that a `$ref` leads to.
pub fn component(value: &Value) -> Option<&str> {
    text(value, "$ref")?.rsplit('/').next()
}

/// Every operation, including those of clients' endpoints.
pub fn operations(document: &Value) -> Vec<Operation<'_>> {
    let ours = members(document, "paths")
        .map(|(path, item)| (Some(format!("{}{path}", server(item).unwrap_or_default())), item));
    let theirs = members(document, "webhooks").map(|(_, item)| (None, resolved(document, item)));
    ours.chain(theirs)
        .flat_map(|(address, item)| {
            VERBS.iter().filter_map(move |verb| {
                let declared = item.get(verb)?;
                let parameters = list(item, "parameters").iter().chain(list(declared, "parameters"));
                Some(Operation {
                    id: text(declared, "operationId")?,
                    verb: verb.to_uppercase(),
                    address: address.clone(),
                    declared,
                    parameters: parameters.collect(),
                })
            })
        })
        .collect()
}

/// The tags with their operations, in the order of the document's tags. Within a tag, operations are ordered by path,
/// then by method.
pub fn by_tag(document: &Value) -> Vec<(&str, &Value, Vec<Operation<'_>>)> {
    let tags = list(document, "tags").iter().filter_map(|tag| Some((text(tag, "name")?, tag)));
    tags.map(|(name, tag)| {
        let of_tag = operations(document).into_iter().filter(|operation| operation.has_tag(name)).collect();
        (name, tag, of_tag)
    })
    .collect()
}
