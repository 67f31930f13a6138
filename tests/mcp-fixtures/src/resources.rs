//! The resources: a text resource, a binary one, and a template that has a resource for each identifier.

use serde_json::{Value, json};

use crate::content::PNG;

const TEXT: &str = "test://static-text";
const BYTES: &str = "test://static-binary";

pub fn listed() -> Vec<Value> {
    vec![json!({ "uri": TEXT, "name": "text" }), json!({ "uri": BYTES, "name": "bytes" })]
}

pub fn templates() -> Vec<Value> {
    vec![json!({ "uriTemplate": "test://template/{id}/data", "name": "data" })]
}

pub fn read(uri: &str) -> Option<Value> {
    match uri {
        TEXT => Some(json!({ "uri": uri, "mimeType": "text/plain", "text": "A text." })),
        BYTES => Some(json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            Some(json!({ "uri": uri, "mimeType": "application/json", "text": json!({ "id": id }).to_string() }))
        }
    }
}
