//! A deployment's catalogue: the list, the schemas, the samples and the AsyncAPI document come from the folder.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    asyncapi::{self, Content},
    catalogue::{EventType, Source},
    type_details::{Description, EventTypeDetails, Samples, Schemas},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../event-catalogue/example");

/// The content that the build compiles in for a folder.
fn content(folder: &str) -> Content {
    let catalogue = event_catalogue::read(Path::new(folder)).expect("no mistakes");
    let catalogue: &'static event_catalogue::Catalogue = Box::leak(Box::new(catalogue));
    let mut types = Vec::new();
    let mut descriptions = Vec::new();
    let mut samples = Vec::new();
    for kind in &catalogue.types {
        let source = if kind.is_own { Source::Service } else { Source::Platform };
        let subject = Some(kind.subject.as_str()).filter(|_| !kind.is_own);
        types.push(EventType { label: &kind.label, value: &kind.value, source, subject });
        descriptions.push(Description {
            value: &kind.value,
            version: kind.version,
            since: &kind.since,
            description: &kind.description,
            schema: &kind.schema,
            parts: texts(&kind.parts),
        });
        samples.push((kind.value.as_str(), texts(&kind.samples)));
    }
    let parts: Vec<_> = catalogue.parts.iter().map(|(name, part)| (name.as_str(), part.as_str())).collect();
    Content {
        types: types.leak(),
        schemas: Schemas { descriptions: descriptions.leak(), parts: parts.leak() },
        samples: Samples(samples.leak()),
    }
}

fn texts(texts: &'static [String]) -> &'static [&'static str] {
    texts.iter().map(String::as_str).collect::<Vec<_>>().leak()
}

#[test]
fn the_list_has_the_deployments_types_and_those_of_the_service() {
    let shown = serde_json::to_value(content(EXAMPLE).types).expect("JSON");
    let keys: Vec<_> = shown.as_array().into_iter().flatten().map(|kind| &kind["value"]).collect();
    assert_eq!(keys[..4], ["order.placed", "order.item.added", "parcel.delivered", "webhook.test"]);
    assert!(keys.iter().any(|key| *key == "webhook.failing") && !keys.iter().any(|key| *key == "booking.created"));
    assert_eq!(shown[0], json!({ "label": "Order placed", "value": "order.placed" }));
}

#[test]
fn a_type_of_the_deployment_has_its_schema_and_samples() {
    let Content { types, schemas, samples } = content(EXAMPLE);
    let details = serde_json::to_value(EventTypeDetails::within(schemas, samples, &types[0])).expect("JSON");
    assert_eq!((&details["subject"], &details["version"]), (&json!("/orderIdentifier"), &json!(1)));
    assert_eq!(details["samples"][0]["items"][0]["itemIdentifier"], "SKU-12");
    assert_eq!(details["schema"]["$defs"].as_object().map(serde_json::Map::len), Some(2));
    let validator = jsonschema::draft202012::new(&details["schema"]).expect("a schema");
    assert!(validator.is_valid(&details["samples"][0]) && !validator.is_valid(&json!({})));
    let own = types.iter().find(|kind| kind.value == "webhook.failing").expect("a type of the service");
    let details = serde_json::to_value(EventTypeDetails::within(schemas, samples, own)).expect("JSON");
    assert_eq!((details.get("subject"), details["schema"].get("$defs")), (None, None));
}

#[test]
fn the_asyncapi_document_describes_the_deployments_types() {
    let content = content(EXAMPLE);
    let document = asyncapi::document_of(content, "https://api.example.com");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let messages = &document["components"]["messages"];
    assert_eq!(messages.as_object().map(serde_json::Map::len), Some(content.types.len()));
    let placed = &messages["order.placed"];
    assert_eq!(placed["payload"]["title"], "OrderPlaced");
    assert_eq!(placed["examples"][0]["payload"]["data"]["orderIdentifier"], "O-7041");
    let data = "/payload/allOf/1/properties/data/properties/orderIdentifier/$ref";
    assert_eq!(placed.pointer(data), Some(&json!("#/components/schemas/id")));
    assert_eq!(document["components"]["schemas"]["id"]["title"], "Id");
    assert!(messages.get("booking.created").is_none() && messages.get("webhook.test").is_some());
}
