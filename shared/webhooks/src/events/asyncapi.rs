//! The AsyncAPI document: every event as its subscribers receive it, for programs that generate receivers and
//! catalogues. <https://www.asyncapi.com/docs/reference/specification/v3.0.0>

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json, value::RawValue};

use super::{
    catalogue::{self, EventType},
    type_details::{OWN_SAMPLES, OWN_SCHEMAS, Samples, Schemas},
};

/// The members of every event except `type` and `data`, as a schema of the document.
const ENVELOPE: &str = "eventEnvelope";
/// The headers of every request, as a schema of the document.
const HEADERS: &str = "deliveryHeaders";
const COMPONENTS: &str = "#/components/schemas/";

/// An object with its members in this order, since people read the document, too.
struct Ordered<T>(Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.0.len()))?;
        for (name, member) in &self.0 {
            members.serialize_entry(name, member)?;
        }
        members.end()
    }
}

#[derive(Serialize)]
struct Document {
    asyncapi: &'static str,
    info: Value,
    #[serde(rename = "defaultContentType")]
    default_content_type: &'static str,
    channels: Value,
    operations: Value,
    components: Components,
}

#[derive(Serialize)]
struct Components {
    messages: Ordered<Message>,
    schemas: Ordered<Box<RawValue>>,
}

#[derive(Serialize)]
struct Message {
    name: &'static str,
    title: &'static str,
    summary: &'static str,
    headers: Value,
    payload: Payload,
    examples: Vec<Example>,
    #[serde(rename = "x-since")]
    since: &'static str,
    #[serde(rename = "x-version")]
    version: u32,
    #[serde(rename = "x-subject", skip_serializing_if = "Option::is_none")]
    subject: Option<&'static str>,
}

#[derive(Serialize)]
struct Payload {
    title: String,
    #[serde(rename = "allOf")]
    all_of: (Value, OfType),
}

/// The part of an event that depends on its type.
#[derive(Serialize)]
struct OfType {
    r#type: &'static str,
    properties: Ordered<Box<RawValue>>,
}

#[derive(Serialize)]
struct Example {
    payload: Ordered<Box<RawValue>>,
}

/// The document as JSON, for a deployment at this address.
pub fn document(base_url: &str) -> String {
    document_of(Content { types: catalogue::all(), schemas: OWN_SCHEMAS, samples: OWN_SAMPLES }, base_url)
}

/// A catalogue with everything that the document shows.
#[derive(Clone, Copy)]
pub(super) struct Content {
    pub(super) types: &'static [EventType],
    pub(super) schemas: Schemas,
    pub(super) samples: Samples,
}

pub(super) fn document_of(content: Content, base_url: &str) -> String {
    let messages = content.types.iter().map(|kind| (kind.value, message(content, kind))).collect();
    let parts = content.schemas.parts.iter();
    let parts = parts.map(|(name, part)| (*name, raw(titled(&class_name(name), &with_references(part)))));
    let ours = [(ENVELOPE, raw(envelope().to_string())), (HEADERS, raw(headers().to_string()))];
    let schemas = ours.into_iter().chain(parts).collect();
    let document = Document {
        asyncapi: "3.0.0",
        info: json!({
            "title": "Waypost events",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The events that webhooks receive, each as the JSON body of a signed POST request.",
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0" },
            "externalDocs": {
                "description": "The contract of the API: how to create webhooks and verify requests.",
                "url": format!("{base_url}/"),
            },
        }),
        default_content_type: "application/json",
        channels: channels(content.types),
        operations: operations(),
        components: Components { messages: Ordered(messages), schemas: Ordered(schemas) },
    };
    serde_json::to_string(&document).expect("texts, numbers and raw JSON can always be written")
}

fn channels(types: &[EventType]) -> Value {
    let reference =
        |kind: &EventType| (kind.value.to_owned(), json!({ "$ref": format!("#/components/messages/{}", kind.value) }));
    json!({
        "webhook": {
            // The webhook's owner chooses it.
            "address": null,
            "title": "A webhook's endpoint",
            "description": "Receives events of the types in its `eventList`, each at least once; in order only if its \
                `order` is `subject`.",
            "messages": types.iter().map(reference).collect::<Value>(),
        },
    })
}

fn operations() -> Value {
    json!({
        "deliver": {
            "action": "send",
            "channel": { "$ref": "#/channels/webhook" },
            "title": "Deliver an event",
            "description": "Respond with a 2xx status within 15 seconds, or the webhook's `timeoutSeconds`; otherwise \
                            the event is sent again. Accept members that you do not know: every object may get new \
                            ones at any time.",
        },
    })
}

fn message(content: Content, kind: &'static EventType) -> Message {
    let (summary, since, version) = content.schemas.texts(kind);
    let name = class_name(kind.value);
    let data = titled(&format!("{name}Data"), &with_references(content.schemas.with_references(kind)));
    let constant = json!({ "const": kind.value }).to_string();
    let of_type = OfType { r#type: "object", properties: Ordered(vec![("type", raw(constant)), ("data", raw(data))]) };
    let examples = content.samples.of(kind).map(|sample| Example {
        payload: Ordered(vec![
            ("id", raw(json!("evt_01m7w5gmev7xwvpyt3bc2k45jh").to_string())),
            ("type", raw(json!(kind.value).to_string())),
            ("timestamp", raw(json!("2026-11-20T09:45:00.123Z").to_string())),
            ("managingEntityIdentifier", raw(json!("demo-hotel").to_string())),
            ("data", sample.to_owned()),
        ]),
    });
    Message {
        name: kind.value,
        title: kind.label,
        summary,
        headers: json!({ "$ref": format!("{COMPONENTS}{HEADERS}") }),
        payload: Payload { title: name, all_of: (json!({ "$ref": format!("{COMPONENTS}{ENVELOPE}") }), of_type) },
        examples: examples.collect(),
        since,
        version,
        subject: kind.subject,
    }
}

fn envelope() -> Value {
    json!({
        "type": "object",
        "required": ["id", "type", "timestamp", "managingEntityIdentifier"],
        "properties": {
            "id": { "type": "string", "description": "The event's identifier, the same on every attempt." },
            "type": { "type": "string", "description": "The event type's key." },
            "test": { "type": "boolean", "description": "True if the event is a test with sample data: do not act on it." },
            "subject": { "type": "string", "description": "The subject from the publisher, or else from the data. \
                Absent for events without a subject." },
            "timestamp": { "type": "string", "format": "date-time", "description": "When it was published." },
            "managingEntityIdentifier": { "type": "string", "description": "The event's managing entity." },
            "data": { "type": "object", "description": "The event's data. Absent if the webhook's `payload` is \
                `thin`." },
        },
    })
}

fn headers() -> Value {
    json!({
        "type": "object",
        "required": ["webhook-id", "webhook-timestamp", "webhook-signature", "Service-Delivery-Id"],
        "properties": {
            "webhook-id": { "type": "string", "description": "The event's identifier. Use it to recognize duplicates." },
            "webhook-timestamp": { "type": "string", "description": "The time of the signature, in Unix seconds." },
            "webhook-signature": { "type": "string", "description": "The signatures, as specified by Standard Webhooks." },
            "Service-Delivery-Id": { "type": "string", "description": "The delivery's identifier." },
        },
    })
}

/// The name that programs give the schema of an event or part: `BookingCreated` for `booking.created`.
fn class_name(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    name.split(['.', '-', '_']).filter_map(capitalised).collect()
}

/// A schema with a title, from which generators name its class.
fn titled(title: &str, schema: &str) -> String {
    let members = schema.trim_start().strip_prefix('{').expect("a schema of the catalogue is an object with members");
    format!("{{{}:{},{members}", json!("title"), json!(title))
}

/// A schema from the catalogue with references into this document.
fn with_references(schema: &str) -> String {
    schema.replace("\"#/$defs/", &format!("\"{COMPONENTS}"))
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("it is composed of JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unresolved(value: &Value, document: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap_or_default();
                    if pointer.is_empty() || document.pointer(pointer).is_none() {
                        found.push(reference.to_owned());
                    }
                }
                members.values().for_each(|member| unresolved(member, document, found));
            }
            Value::Array(items) => items.iter().for_each(|item| unresolved(item, document, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_has_a_message_for_every_type_and_no_open_reference() {
        let document: Value = serde_json::from_str(&document("https://api.example.com")).expect("JSON");
        let mut open = Vec::new();
        unresolved(&document, &document, &mut open);
        assert!(open.is_empty(), "{open:?}");
        let count = |pointer: &str| document.pointer(pointer).and_then(Value::as_object).map(serde_json::Map::len);
        assert_eq!(count("/components/messages"), Some(catalogue::all().len()));
        assert_eq!(count("/channels/webhook/messages"), Some(catalogue::all().len()));
        assert_eq!(count("/components/schemas"), Some(OWN_SCHEMAS.parts.len() + 2), "a name comes twice");
    }

    #[test]
    fn the_document_fits_into_one_answer() {
        let length = document("https://api.example.com").len();
        assert!(length < 1024 * 1024, "{length}");
    }
}
