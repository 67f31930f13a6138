//! The contract in machine-readable form is the same as served, as deployed and as documented.

use std::{collections::BTreeSet, fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};
use template::Template;

use crate::harness::{NO_HEAD, SeenMembers, Suite, node, project};

#[contract_test]
async fn the_document_that_is_served_is_openapi_yaml(suite: Arc<Suite>) {
    // The deployment replaces the document's sample URL with its own.
    let base_url = &suite.api.env["BASE_URL"];
    let auth_url = &suite.api.env["AUTH_URL"];
    let expected = suite.contract.document.to_string();
    let expected =
        expected.replace("https://api.waypost.example", base_url).replace("https://auth.waypost.example", auth_url);
    let served = suite.api.get("/openapi.json").expect(200).await.json();
    assert_eq!(served, serde_json::from_str::<Value>(&expected).expect("the document is still JSON"));
}

#[contract_test]
async fn the_document_is_found_where_the_contract_says(suite: Arc<Suite>) {
    let answer = suite.api.get("/openapi.json").expect(200).await;
    assert_eq!(answer.header("content-type").split(';').next(), Some("application/json"));
    assert_eq!(answer.json()["openapi"].as_str().and_then(|version| version.split('.').next()), Some("3"));
}

#[contract_test]
async fn openapi_yaml_has_exactly_the_routes_that_are_deployed(suite: Arc<Suite>) {
    let template = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&template).expect("template.yaml is a template");
    let routes = template.routes().into_iter().filter(|route| route.method != "HEAD");
    let deployed: BTreeSet<(String, String)> = routes.map(|route| (route.documented_path(), route.method)).collect();
    let documented: BTreeSet<(String, String)> =
        suite.contract.operations().into_iter().map(|operation| (operation.path, operation.method)).collect();
    assert_eq!(documented, deployed);
}

/// After a run of all tests, the harness checks this for all responses.
#[contract_test]
async fn a_member_that_every_response_has_is_found_unless_it_is_required(_: Arc<Suite>) {
    let page = json!({ "type": "object", "properties": { "items": { "type": "array", "items": {
        "$ref": "#/components/schemas/Item",
    } } } });
    let item = json!({ "type": "object", "required": ["id"], "properties": { "id": {}, "always": {}, "rarely": {} } });
    let document = json!({ "components": { "schemas": { "Item": item } } });
    let seen = SeenMembers::default();
    let of_ten: Vec<_> = (0..10).map(|id| json!({ "id": id, "always": null })).collect();
    seen.note(&document, &page, "page", &json!({ "items": of_ten }));
    assert_eq!(seen.not_required(), [""; 0], "a few may have it by chance");
    for _ in 0..2 {
        seen.note(&document, &page, "page", &json!({ "items": of_ten }));
    }
    seen.note(&document, &page, "page", &json!({ "items": [{ "id": 30, "always": 1, "rarely": 1, "unknown": 1 }] }));
    assert_eq!(seen.not_required(), ["/components/schemas/Item: `always`, in all of 31 objects"]);
}

/// openapi.yaml describes HEAD once, for all operations.
#[contract_test]
async fn head_is_deployed_beside_each_get_that_does_not_act(_: Arc<Suite>) {
    let template = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&template).expect("template.yaml is a template");
    let of = |verb: &str| -> BTreeSet<(String, String)> {
        let routes = template.routes().into_iter().filter(|route| route.method == verb);
        routes.map(|route| (route.path, route.function)).collect()
    };
    let mut gets = of("GET");
    gets.retain(|(path, _)| !NO_HEAD.contains(&path.as_str()));
    assert_eq!(of("HEAD"), gets);
}

#[contract_test]
async fn every_operation_declares_what_any_operation_can_answer(suite: Arc<Suite>) {
    for operation in suite.contract.operations() {
        let declared = &suite.contract.document["paths"][&operation.path][operation.method.to_lowercase()]["responses"];
        let any_time: &[&str] = if operation.needs_token { &["400", "401", "403", "500", "503"] } else { &["500"] };
        for status in any_time {
            assert!(declared.get(status).is_some(), "{} does not declare {status}", operation.id);
        }
    }
}

/// openapi.yaml lists these headers once, and the build adds them.
#[contract_test]
async fn every_response_declares_the_headers_that_all_responses_have(suite: Arc<Suite>) {
    for operation in suite.contract.operations() {
        for (status, response) in declared(&suite, &operation.id)["responses"].as_object().into_iter().flatten() {
            let headers = &suite.contract.resolved(response)["headers"];
            let of_errors = status.starts_with(['4', '5']).then_some("Cache-Control");
            for name in ["Service-Version", "X-Request-Id"].into_iter().chain(of_errors) {
                assert!(headers.get(name).is_some(), "{}: {status} lacks {name}", operation.id);
            }
        }
    }
}

#[contract_test]
async fn the_parser_of_asyncapi_reads_all_events(suite: Arc<Suite>) {
    let document = suite.api.get("/asyncapi.json").expect(200).await.text();
    let read = node("asyncapi.js", &json!({ "document": document })).await;
    assert_eq!(read["faults"], json!([]));
    let list = suite.entity().await.get("/webhook/event/list").expect(200).await.json();
    let named = |value: &Value| value.as_str().expect("a text").to_owned();
    let listed: BTreeSet<_> = list.as_array().expect("a list").iter().map(|kind| named(&kind["value"])).collect();
    let messages: BTreeSet<_> = read["messages"].as_array().expect("a list").iter().map(named).collect();
    assert_eq!(messages, listed);
}

#[contract_test]
async fn swagger_parser_resolves_and_validates_the_served_document(suite: Arc<Suite>) {
    let document = suite.api.get("/openapi.json").expect(200).await.json();
    let read = node("swagger_parser.js", &json!({ "document": document })).await;
    let paths = document["paths"].as_object().expect("the document has paths");
    assert_eq!(read["paths"], paths.len());
}

/// Client generators read the same document, but each has different code for references, unions and examples.
#[contract_test]
async fn hey_api_orval_zod_and_modelina_generate_from_the_served_documents(suite: Arc<Suite>) {
    let openapi = suite.api.get("/openapi.json").expect(200).await.json();
    let asyncapi = suite.api.get("/asyncapi.json").expect(200).await.json();
    let input = json!({ "openapi": openapi, "asyncapi": asyncapi, "types": "booking." });
    let generated = node("generators.js", &input).await;
    assert_eq!(generated["complaints"], "", "the generated clients do not compile");
    let names: BTreeSet<_> =
        generated["names"].as_array().expect("a list").iter().filter_map(|name| name.as_str()).collect();
    // Modelina cannot name an inline object within a schema.
    let unnamed: Vec<_> = names.iter().filter(|name| name.starts_with("AnonymousSchema")).collect();
    assert!(10 * unnamed.len() < names.len(), "{unnamed:?} of {} models", names.len());
    for name in ["BookingCreated", "BookingCreatedData", "Booking", "Money"] {
        assert!(names.contains(name), "no model is named {name}");
    }
}

#[contract_test]
async fn ajv_in_strict_mode_compiles_every_schema_of_an_event_and_accepts_its_samples(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let list = entity.get("/webhook/event/list").expect(200).await.json();
    let mut types = Vec::new();
    for kind in list.as_array().expect("a list") {
        let value = kind["value"].as_str().expect("a text");
        let details = entity.get(&format!("/webhook/event/type/{value}")).expect(200).await.json();
        types.push(json!({ "value": value, "schema": details["schema"], "samples": details["samples"] }));
    }
    assert!(types.len() > 100 && types.iter().all(|kind| kind["schema"].is_object() && kind["samples"][0].is_object()));
    let checked = node("ajv.js", &json!(types)).await;
    assert_eq!(checked["complaints"], json!([]));
}

/// The declaration of an operation.
fn declared<'a>(suite: &'a Suite, id: &str) -> &'a Value {
    let operation = suite.contract.operations().into_iter().find(|operation| operation.id == id);
    let operation = operation.unwrap_or_else(|| panic!("there is no operation {id}"));
    &suite.contract.document["paths"][&operation.path][operation.method.to_lowercase()]
}

#[contract_test]
async fn the_operations_of_the_specification_declare_every_status_that_it_lists(suite: Arc<Suite>) {
    for id in ["listEventTypes", "showDelivery"] {
        let responses = declared(&suite, id)["responses"].as_object().expect("an operation has responses");
        let statuses: BTreeSet<&str> = responses.keys().map(String::as_str).collect();
        let listed = ["200", "400", "401", "403", "404", "405", "409", "415", "500", "503"];
        assert_eq!(statuses, listed.into(), "{id}");
    }
}

/// Collects every example in the document, with its location and schema.
fn each_with_examples<'a>(value: &'a Value, place: &str, found: &mut Vec<(String, &'a Value, &'a Value)>) {
    if let Some(members) = value.as_object() {
        if let Some(schema) = members.get("schema") {
            for (name, example) in members.get("examples").and_then(Value::as_object).into_iter().flatten() {
                found.push((format!("{place}/{name}"), schema, &example["value"]));
            }
            found.extend(members.get("example").map(|example| (place.to_owned(), schema, example)));
        }
        for (name, member) in members {
            each_with_examples(member, &format!("{place}/{name}"), found);
        }
    }
    for (position, element) in value.as_array().into_iter().flatten().enumerate() {
        each_with_examples(element, &format!("{place}/{position}"), found);
    }
}

#[contract_test]
async fn every_example_is_as_its_schema_says(suite: Arc<Suite>) {
    let mut found = Vec::new();
    each_with_examples(&suite.contract.document, "", &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let faults: Vec<_> = found
        .into_iter()
        .flat_map(|(place, schema, example)| suite.contract.schema_faults(schema, example, &place))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[contract_test]
async fn every_response_of_an_error_has_an_example(suite: Arc<Suite>) {
    for operation in suite.contract.operations() {
        let responses = declared(&suite, &operation.id)["responses"].as_object().into_iter().flatten();
        for (status, response) in responses.filter(|(status, _)| status.starts_with(['4', '5'])) {
            let content = suite.contract.resolved(response)["content"].as_object().into_iter().flatten();
            for (media_type, content) in content {
                let examples = content["examples"].as_object().into_iter().flatten().count();
                assert!(examples > 0 || content.get("example").is_some(), "{}: {status} {media_type}", operation.id);
            }
        }
    }
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

#[contract_test]
async fn no_component_is_declared_and_not_used(suite: Arc<Suite>) {
    // The response to OPTIONS, which no operation lists.
    let mut used = BTreeSet::from(["#/components/responses/Preflight"]);
    references(&suite.contract.document, &mut used);
    let components = suite.contract.document["components"].as_object().expect("there are components");
    for (kind, components) in components.iter().filter(|(kind, _)| *kind != "securitySchemes") {
        for name in components.as_object().expect("components have names").keys() {
            assert!(used.contains(format!("#/components/{kind}/{name}").as_str()), "{kind}/{name} is never used");
        }
    }
}

#[contract_test]
async fn every_problem_is_declared_with_its_kinds(suite: Arc<Suite>) {
    let responses = suite.contract.document["components"]["responses"].as_object().expect("there are responses");
    for (name, response) in responses {
        for (_, content) in response["content"].as_object().into_iter().flatten() {
            let is_problem = content["schema"]["$ref"]
                .as_str()
                .is_some_and(|schema| schema.ends_with("/Problem") || schema.ends_with("/TokenError"));
            let kinds = content["x-problem-kinds"].as_array().map(Vec::len);
            assert_eq!(kinds.is_some_and(|kinds| kinds > 0), is_problem, "{name}");
        }
    }
}

/// Collects every schema in the document with its path: components, parameters, bodies and responses, and the schemas
/// within them.
fn each_schema<'a>(value: &'a Value, place: &str, is_schema: bool, found: &mut Vec<(String, &'a Value)>) {
    if is_schema {
        found.push((place.to_owned(), value));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !["example", "examples"].contains(&name.as_str())) {
                let place = format!("{place}/{name}");
                match name.as_str() {
                    "properties" | "schemas" => {
                        for (name, schema) in member.as_object().into_iter().flatten() {
                            each_schema(schema, &format!("{place}/{name}"), true, found);
                        }
                    }
                    _ => {
                        let is_schema = ["schema", "items", "additionalProperties"].contains(&name.as_str());
                        each_schema(member, &place, is_schema, found);
                    }
                }
            }
        }
        Value::Array(elements) => {
            for (position, element) in elements.iter().enumerate() {
                each_schema(element, &format!("{place}/{position}"), false, found);
            }
        }
        _ => {}
    }
}

fn schemas(suite: &Suite) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    each_schema(&suite.contract.document, "", false, &mut found);
    assert!(found.len() > 300, "{}", found.len());
    found
}

/// The schemas that part of the document refers to, either for requests or for responses.
fn reached<'a>(suite: &'a Suite, part: &str) -> BTreeSet<&'a str> {
    let operations = suite.contract.operations();
    let mut reached = BTreeSet::new();
    for operation in &operations {
        references(&declared(suite, &operation.id)[part], &mut reached);
    }
    loop {
        let mut further = reached.clone();
        for reference in &reached {
            // Other references are within an example that is itself a schema.
            if reference.starts_with("#/components/") {
                let component = suite.contract.document.pointer(reference.trim_start_matches('#'));
                references(component.expect("the target of a reference exists"), &mut further);
            }
        }
        if further.len() == reached.len() {
            return reached;
        }
        reached = further;
    }
}

fn schemas_of<'a>(suite: &'a Suite, components: &BTreeSet<&str>) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for reference in components.iter().filter(|reference| reference.starts_with("#/components/schemas/")) {
        let schema = suite
            .contract
            .document
            .pointer(reference.trim_start_matches('#'))
            .expect("the reference was resolved before");
        each_schema(schema, reference, true, &mut found);
    }
    found
}

#[contract_test]
async fn no_schema_is_composed_in_a_way_that_generators_drop(suite: Arc<Suite>) {
    for (place, schema) in schemas(&suite) {
        for composition in ["allOf", "oneOf"] {
            assert!(schema.get(composition).is_none(), "{place} uses {composition}: list the members instead");
        }
    }
}

/// openapi-generator mistakes a variable's name for a URL, and Python's clients match a pattern only from the start.
#[contract_test]
async fn servers_and_patterns_are_as_generated_clients_need_them(suite: Arc<Suite>) {
    let text = suite.contract.document.to_string();
    assert!(!text.contains("\"variables\":"), "a server has variables");
    for (place, schema) in schemas(&suite) {
        if let Some(pattern) = schema["pattern"].as_str() {
            assert!(pattern.starts_with('^'), "{place}: {pattern}");
            // A generated C# client would compare the pattern with a time instead of a string, and would not compile.
            assert_ne!(schema["format"], "date-time", "{place}");
        }
    }
}

/// A generator may create a client class for each tag, and the requests to clients' endpoints must not replace such a
/// class.
#[contract_test]
async fn requests_to_clients_have_a_separate_tag(suite: Arc<Suite>) {
    let document = &suite.contract.document;
    let event = suite.contract.resolved(&document["webhooks"]["event"]);
    assert_eq!(event["post"]["tags"], serde_json::json!(["Receiving"]));
    for operation in suite.contract.operations() {
        assert_ne!(declared(&suite, &operation.id)["tags"], event["post"]["tags"], "{}", operation.id);
    }
}

#[contract_test]
async fn answers_take_members_of_later_releases(suite: Arc<Suite>) {
    let of_answers = reached(&suite, "responses");
    assert!(of_answers.len() > 50, "{}", of_answers.len());
    for (place, schema) in schemas_of(&suite, &of_answers) {
        let is_closed = ["additionalProperties", "unevaluatedProperties"].iter().any(|name| schema[name] == false);
        assert!(!is_closed, "{place} is closed: a generated client would refuse the members of later releases");
    }
}

#[contract_test]
async fn no_member_of_a_request_has_a_default_that_generators_ask_for(suite: Arc<Suite>) {
    for (place, schema) in schemas_of(&suite, &reached(&suite, "requestBody")) {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            assert!(member.get("default").is_none(), "{place}/{name} has a default: write it into the description");
        }
    }
}

#[contract_test]
async fn objects_whose_members_are_free_say_so(suite: Arc<Suite>) {
    for (place, schema) in schemas(&suite).iter().filter(|(_, schema)| schema["type"] == "object") {
        let says =
            ["properties", "additionalProperties", "maxProperties"].iter().any(|name| schema.get(name).is_some());
        assert!(says, "{place} declares no members, so that generators generate none");
    }
}
