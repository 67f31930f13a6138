//! The contract in machine-readable form: what is served, what is deployed and what is documented are one.

use std::{collections::BTreeSet, fs, sync::Arc};

use deployment::Template;
use serde_json::Value;

use crate::harness::{Suite, project, tests};

tests![
    the_document_that_is_served_is_openapi_yaml,
    the_document_is_found_where_the_contract_says,
    openapi_yaml_has_exactly_the_routes_that_are_deployed,
    every_operation_declares_what_any_operation_can_answer,
    every_function_that_checks_tokens_may_read_what_they_are_checked_by,
];

async fn the_document_that_is_served_is_openapi_yaml(suite: Arc<Suite>) {
    // Where the document gives an example of an address, the deployment gives its own.
    let (base_url, auth_url) = (&suite.api.env["BASE_URL"], &suite.api.env["AUTH_URL"]);
    let expected = suite.contract.document.to_string();
    let expected =
        expected.replace("https://api.waypost.example", base_url).replace("https://auth.waypost.example", auth_url);
    let served = suite.api.get("/openapi.json").expect(200).await.json();
    assert_eq!(served, serde_json::from_str::<Value>(&expected).expect("it was JSON before"));
}

async fn the_document_is_found_where_the_contract_says(suite: Arc<Suite>) {
    let answer = suite.api.get("/openapi.json").expect(200).await;
    assert_eq!(answer.header("content-type").split(';').next(), Some("application/json"));
    assert_eq!(answer.json()["openapi"].as_str().and_then(|version| version.split('.').next()), Some("3"));
}

async fn openapi_yaml_has_exactly_the_routes_that_are_deployed(suite: Arc<Suite>) {
    let template = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&template).expect("template.yaml is a template");
    let deployed: BTreeSet<(String, String)> =
        template.routes().into_iter().map(|route| (route.path, route.method)).collect();
    let documented: BTreeSet<(String, String)> =
        suite.contract.operations().into_iter().map(|operation| (operation.path, operation.method)).collect();
    assert_eq!(documented, deployed);
}

async fn every_operation_declares_what_any_operation_can_answer(suite: Arc<Suite>) {
    for operation in suite.contract.operations() {
        let declared = &suite.contract.document["paths"][&operation.path][operation.method.to_lowercase()]["responses"];
        let any_time: &[&str] = if operation.needs_token { &["400", "401", "403", "500", "503"] } else { &["500"] };
        for status in any_time {
            assert!(declared.get(status).is_some(), "{} does not declare {status}", operation.id);
        }
    }
}

async fn every_function_that_checks_tokens_may_read_what_they_are_checked_by(suite: Arc<Suite>) {
    let text = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let routes = Template::parse(&text).expect("template.yaml is a template").routes();
    let document = deployment::yaml_to_json(&text).expect("template.yaml is YAML");
    let policies = |function: &str| {
        let code = format!("target/lambda/{function}");
        let resources = document["Resources"].as_object().into_iter().flatten();
        let mut found = resources.filter(|(_, resource)| resource["Properties"]["CodeUri"] == code.as_str());
        found.next().map(|(_, resource)| resource["Properties"]["Policies"].to_string()).unwrap_or_default()
    };
    let operations = suite.contract.operations();
    assert!(operations.iter().any(|operation| operation.needs_token));
    for operation in operations.iter().filter(|operation| operation.needs_token) {
        let mut of_operation =
            routes.iter().filter(|route| (&route.path, &route.method) == (&operation.path, &operation.method));
        let function = &of_operation.next().expect("every operation is deployed").function;
        assert!(policies(function).contains("TokenVerification"), "{function}");
    }
}
