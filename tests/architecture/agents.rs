//! The agents' tools agree with the API: each member of one appears in the other, or is listed with a reason here or in
//! `schemas::LEFT_OUT`.

use std::{collections::BTreeSet, fs, path::Path};

use functions_agents::{
    schemas,
    tools::{self, ALL},
};
use serde_json::{Map, Value, json};

/// The tools that correspond to an API operation, each with the member of its result that contains the response; empty
/// if the result is the response.
const EQUIVALENT: [(&str, &str, &str); 16] = [
    ("list_webhooks", "listWebhooks", "webhooks"),
    ("show_webhook", "showWebhook", ""),
    ("list_deliveries", "listDeliveries", ""),
    ("show_delivery", "showDelivery", ""),
    ("list_events", "listEvents", ""),
    ("show_event", "showEvent", ""),
    ("list_connections", "listConnections", ""),
    ("create_webhook", "createWebhook", ""),
    ("change_webhook", "changeWebhook", ""),
    ("rotate_webhook_secret", "rotateWebhookSecret", ""),
    ("pause_webhook", "pauseWebhook", ""),
    ("resume_webhook", "resumeWebhook", ""),
    ("publish_test_event", "testWebhook", ""),
    ("resend_delivery", "resendDelivery", ""),
    ("replay_events", "replayEvents", ""),
    ("recover_deliveries", "recoverDeliveries", ""),
];

/// The tools whose results have a different format, each with the reason.
const OWN_FORM: [(&str, &str); 4] = [
    ("diagnose_webhook", "no operation: it combines several, and explains failures"),
    ("explain_problem", "the API has pages for people instead"),
    ("list_event_types", "one tool for `listEventTypes` and `showEventType`"),
    ("remove_webhook", "says only that the webhook is removed"),
];

/// Members of a response that the tool's result lacks, with the reason.
const LACKING: [(&str, &str, &str); 4] = [
    ("resend_delivery", "advice", "the next attempt has not begun; `show_delivery` shows it later"),
    ("resend_delivery", "attempts", "the next attempt has not begun; `show_delivery` shows it later"),
    ("resend_delivery", "event", "`show_delivery` shows it"),
    ("resend_delivery", "eventWarnings", "`show_delivery` shows them"),
];

/// Members that only tools' results have.
const OF_TOOLS: [&str; 1] = ["repeated"];

/// The contract, used to resolve references.
struct Contract(Value);

impl Contract {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi.yaml");
        let text = fs::read_to_string(path).expect("the project has an openapi.yaml");
        Self(template::yaml_to_json(&text).expect("openapi.yaml is YAML"))
    }

    /// The part of the document that a reference points to, merged with the members next to the reference.
    fn resolved(&self, part: &Value) -> Value {
        let Some(reference) = part["$ref"].as_str() else { return part.clone() };
        let referred = self.0.pointer(reference.trim_start_matches('#')).expect("a reference refers to something");
        let mut whole: Map<String, Value> = self.resolved(referred).as_object().cloned().expect("an object");
        whole.extend(part.as_object().cloned().unwrap_or_default());
        whole.remove("$ref");
        whole.into()
    }

    fn operation(&self, id: &str) -> (Vec<Value>, &Value) {
        let paths = self.0["paths"].as_object().expect("paths").values();
        let mut all = paths.flat_map(|path| path.as_object().expect("operations").values().map(move |one| (path, one)));
        let (path, operation) = all.find(|(_, operation)| operation["operationId"] == id).expect(id);
        let parameters = [&path["parameters"], &operation["parameters"]].into_iter().filter_map(Value::as_array);
        (parameters.flatten().map(|parameter| self.resolved(parameter)).collect(), operation)
    }

    /// The names of an operation's inputs, as a tool would name its arguments.
    fn input(&self, id: &str) -> BTreeSet<String> {
        let (parameters, operation) = self.operation(id);
        let name = |parameter: &Value| match (parameter["in"].as_str(), parameter["name"].as_str()?) {
            (Some("header"), "Idempotency-Key") => Some("idempotencyKey".to_owned()),
            (Some("header"), _) | (_, "managingEntityIdentifier") => None,
            (_, name) => Some(name.to_owned()),
        };
        let body = self.resolved(&operation["requestBody"]);
        let body = self.resolved(&body["content"]["application/json"]["schema"]);
        let members = body["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let named: Vec<_> = parameters.iter().filter_map(name).chain(members).collect();
        named.into_iter().filter(|name| !schemas::is_left_out(name)).collect()
    }

    /// The members of an operation's response.
    fn output(&self, id: &str) -> BTreeSet<String> {
        let (_, operation) = self.operation(id);
        let responses = operation["responses"].as_object().expect("responses");
        let (_, success) = responses.iter().find(|(status, _)| status.starts_with('2')).expect(id);
        let schema = self.resolved(success)["content"]["application/json"]["schema"].clone();
        let mut found = BTreeSet::new();
        self.members(&schema, "", &mut found);
        found
    }

    /// The members of a schema at any depth, except those in third-party text, which tools show as one string.
    fn members(&self, schema: &Value, place: &str, found: &mut BTreeSet<String>) {
        let schema = self.resolved(schema);
        if schema["x-untrusted"] == true {
            return;
        }
        self.each(&schema, place, found);
    }

    fn each(&self, schema: &Value, place: &str, found: &mut BTreeSet<String>) {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if !schemas::is_left_out(name) && !OF_TOOLS.contains(&&**name) {
                let place = format!("{place}/{name}");
                self.members(member, &place, found);
                found.insert(place);
            }
        }
        for part in ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten() {
            self.members(part, place, found);
        }
        if let Some(items) = schema.get("items") {
            self.members(items, place, found);
        }
    }
}

#[test]
fn each_tool_has_an_operation_or_its_own_form() {
    let named = EQUIVALENT.iter().map(|(tool, ..)| *tool).chain(OWN_FORM.iter().map(|(tool, _)| *tool));
    assert_eq!(named.collect::<BTreeSet<_>>(), ALL.iter().map(|tool| tool.name).collect());
}

#[test]
fn a_tool_takes_the_input_of_its_operation() {
    let contract = Contract::read();
    for (name, operation, _) in EQUIVALENT {
        let input = (tools::find(name).expect(name).input)();
        let arguments: BTreeSet<_> = input["properties"].as_object().expect(name).keys().cloned().collect();
        assert_eq!(arguments, contract.input(operation), "{name}");
    }
}

#[test]
fn a_tool_shows_the_members_of_its_operation() {
    let contract = Contract::read();
    for (name, operation, member) in EQUIVALENT {
        let output = (tools::find(name).expect(name).output)();
        let response = if member.is_empty() { &output } else { &output["properties"][member] };
        let mut shown = BTreeSet::new();
        contract.members(response, "", &mut shown);
        let mut expected = contract.output(operation);
        for (_, lacking, _) in LACKING.iter().filter(|(tool, ..)| *tool == name) {
            assert!(expected.contains(&format!("/{lacking}")), "{name}: {lacking}");
            expected.retain(|place| place.split('/').nth(1) != Some(*lacking));
        }
        assert_eq!(shown, expected, "{name}");
    }
}

#[test]
fn a_member_that_tools_leave_out_is_in_the_contract() {
    let contract = Contract::read();
    let all = contract.0["components"]["schemas"].as_object().expect("schemas").values();
    let names: BTreeSet<_> =
        all.flat_map(|schema| schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name)).collect();
    for (name, reason) in schemas::LEFT_OUT {
        assert!(names.contains(&name.to_owned()) && !reason.is_empty(), "{name}");
    }
    let marked = json!({ "properties": { "a": { "x-untrusted": true, "properties": { "b": {} } }, "health": {} } });
    let mut found = BTreeSet::new();
    contract.members(&marked, "", &mut found);
    assert_eq!(found, BTreeSet::from(["/a".to_owned()]), "a third-party text is one member");
}
