//! The table of endpoints agrees with template.yaml, openapi.yaml and docs/reference.md.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use gate::{
    endpoint::{Access, Declaration, ErrorStyle},
    endpoints, queries,
};
use serde_json::{Value, json};
use template::{Function, Template, yaml_to_json};

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";
const PAGE: &str = "text/html";

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The functions that HTTP requests invoke.
fn http_functions() -> Vec<Function> {
    let template = Template::parse(&text("template.yaml")).expect("template.yaml is a template");
    let functions = template.functions().iter().cloned();
    functions.filter(|function| function.answers_unmatched || !function.routes.is_empty()).collect()
}

fn declaration(function: &str) -> Declaration {
    endpoints::of_function(function).unwrap_or_else(|| panic!("shared/gate/src/endpoints.rs lacks `{function}`"))
}

/// Every operation in openapi.yaml, with its function's name and declared endpoint. A function with several routes has
/// several operations.
fn operations() -> Vec<(String, Value, Declaration)> {
    let document = yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML");
    let functions = http_functions();
    let routes = functions.iter().flat_map(|function| &function.routes).filter(|route| route.method != "HEAD");
    let operations: Vec<_> = routes
        .map(|route| {
            let mut operation = document["paths"][route.documented_path()][route.method.to_lowercase()].clone();
            for response in operation["responses"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
                while let Some(pointer) = response["$ref"].as_str() {
                    let target = document.pointer(pointer.trim_start_matches('#'));
                    *response = target.expect("the target of a reference exists").clone();
                }
            }
            (route.function.clone(), operation, declaration(&route.function))
        })
        .collect();
    assert!(operations.len() > 30, "{}", operations.len());
    operations
}

#[test]
fn exactly_the_functions_behind_http_declare_one_endpoint() {
    let mut deployed: Vec<_> = http_functions().into_iter().map(|function| function.name).collect();
    let mut declared: Vec<_> = endpoints::ALL.iter().map(|(function, _)| (*function).to_owned()).collect();
    deployed.sort();
    declared.sort();
    assert_eq!(declared, deployed);
}

#[test]
fn every_function_serves_the_endpoint_of_its_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let families = fs::read_dir(root).expect("a folder of the project").flatten();
    let binaries = families.flat_map(|family| fs::read_dir(family.path().join("src/bin")).expect("binaries").flatten());
    for path in binaries.map(|binary| binary.path()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).expect("a file of the project");
        let used: Vec<_> = source
            .split("endpoints::")
            .skip(1)
            .map(|rest| rest.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_').next())
            .collect();
        let own = name.replace('-', "_").to_uppercase();
        let expected = endpoints::of_function(&name).map(|_| own.as_str());
        assert_eq!(used, expected.map(Some).into_iter().collect::<Vec<_>>(), "{}", path.display());
    }
}

#[test]
fn openapi_yaml_names_the_tokens_that_each_endpoint_takes() {
    for (name, operation, declaration) in operations() {
        let security = operation["security"].as_array().expect("a list");
        let tokens: Vec<_> = security.iter().filter_map(|way| way.get("oauth2")).collect();
        let expected = match declaration.access {
            Access::Public => vec![],
            Access::AnyScope => vec![json!([])],
            Access::Scope(scope) | Access::OptionalToken(scope) => vec![json!([scope.as_str()])],
        };
        assert_eq!(tokens, expected.iter().collect::<Vec<_>>(), "{name}");
        let without = security.is_empty() || security.contains(&json!({}));
        assert_eq!(without, !declaration.access.needs_token(), "{name}");
    }
}

#[test]
fn openapi_yaml_gives_each_endpoint_the_body_that_it_takes() {
    for (name, operation, declaration) in operations() {
        let json = operation["requestBody"]["content"].get(JSON).is_some();
        // The gate checks the media type after the token; if no token is needed, the handler checks the body.
        assert_eq!(json && declaration.access.needs_token(), declaration.takes_json, "{name}");
    }
}

#[test]
fn openapi_yaml_gives_each_endpoint_its_style_of_errors() {
    for (name, operation, declaration) in operations() {
        let responses = operation["responses"].as_object().expect("responses");
        for (status, response) in responses.iter().filter(|(status, _)| status.starts_with(['4', '5'])) {
            let expected = match (declaration.errors, status.as_str()) {
                (_, "413") => PROBLEM, // the gateway may also respond with this status
                (ErrorStyle::OAuth, _) | (ErrorStyle::EmptyInternalError, "500") => JSON,
                (ErrorStyle::JsonRpc, "400" | "404") => JSON,
                _ => PROBLEM,
            };
            let mut expected = vec![expected];
            if declaration.errors == ErrorStyle::JsonRpc && status == "400" {
                expected.push(PROBLEM); // the gate responds with this status if the service's version differs
            }
            if declaration.opened_by_people && status != "413" {
                expected.push(PAGE);
            }
            let mut types: Vec<_> = response["content"].as_object().expect("a content").keys().collect();
            types.sort();
            assert_eq!(types, expected, "{name} {status}");
        }
    }
}

#[test]
fn scripts_of_other_origins_may_read_only_public_answers() {
    let open = endpoints::ALL.iter().filter(|(_, declaration)| declaration.any_origin);
    let open: Vec<_> = open.map(|(function, _)| *function).collect();
    assert_eq!(open, ["token-metadata", "resource-metadata", "token-keys", "openapi", "asyncapi"]);
}

#[test]
fn every_deadline_is_below_the_limits_of_its_function_and_of_the_api() {
    for function in http_functions() {
        let deadline = declaration(&function.name).deadline;
        let limit = function.timeout.min(Duration::from_secs(30));
        assert!(deadline < limit, "{}: {deadline:?} of {limit:?}", function.name);
    }
    assert!(payments::callback::LIMIT < endpoints::PROVIDER_CALLBACK.declaration().deadline);
}

#[test]
fn every_function_that_verifies_tokens_may_read_keys_and_revocations() {
    let template = yaml_to_json(&text("template.yaml")).expect("template.yaml is YAML");
    for function in http_functions() {
        let policies = template["Resources"][&function.logical_id]["Properties"]["Policies"].to_string();
        let reads = declaration(&function.name).access.reads_tokens();
        assert!(!reads || policies.contains("TokenVerification"), "{}", function.name);
    }
}

#[test]
fn exactly_the_operations_with_query_parameters_read_the_query() {
    let document = yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML");
    let is_query = |parameter: &Value| {
        let target = parameter["$ref"].as_str().and_then(|pointer| document.pointer(pointer.trim_start_matches('#')));
        target.unwrap_or(parameter)["in"] == "query"
    };
    let functions = http_functions();
    let routes = functions.iter().flat_map(|function| &function.routes).filter(|route| route.method != "HEAD");
    let of_entities = routes.filter(|route| route.path.starts_with("/api/managing-entity/"));
    let documented = of_entities.filter(|route| {
        let item = &document["paths"][route.documented_path()];
        let operation = &item[route.method.to_lowercase()];
        let all = [item, operation].map(|parameters| parameters["parameters"].as_array());
        all.into_iter().flatten().flatten().any(is_query)
    });
    let documented: BTreeSet<_> = documented.map(|route| (route.method.as_str(), route.path.as_str())).collect();
    assert_eq!(queries::WITH_QUERY.iter().copied().collect::<BTreeSet<_>>(), documented);
}

#[test]
fn every_change_and_removal_of_an_entity_takes_an_idempotency_key() {
    let document = yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML");
    for function in http_functions() {
        for route in function.routes.iter().filter(|route| route.path.starts_with("/api/managing-entity/")) {
            let operation = &document["paths"][route.documented_path()][route.method.to_lowercase()];
            let takes = operation["parameters"].to_string().contains("/idempotencyKey");
            assert!(takes || !["PATCH", "PUT", "DELETE"].contains(&route.method.as_str()), "{route:?}");
        }
    }
}

#[test]
fn operations_with_an_idempotency_key_store_records_and_mark_repetitions() {
    const PARAMETER: &str = "#/components/parameters/idempotencyKey";
    let template = yaml_to_json(&text("template.yaml")).expect("template.yaml is YAML");
    let functions = http_functions();
    let policies_of = |name: &str| {
        let function = functions.iter().find(|function| function.name == name).expect("an operation has a function");
        template["Resources"][&function.logical_id]["Properties"]["Policies"].to_string()
    };
    let operations = operations();
    let takes = |operation: &Value| operation["parameters"].to_string().contains(PARAMETER);
    for (name, _, _) in &operations {
        let policies = policies_of(name);
        // publish-event writes the idempotency record without reading it first.
        let may_keep = policies.contains("IdempotencyKeys") || policies.contains("IDEMPOTENCY#*");
        let any_takes = operations.iter().any(|(function, operation, _)| function == name && takes(operation));
        // Tools take the key as an argument instead.
        assert_eq!(may_keep, any_takes || name == "mcp", "{name}");
    }
    let mut taking = 0;
    for (name, operation, _) in &operations {
        let takes = takes(operation);
        taking += usize::from(takes);
        let says = |response: &Value| response["headers"].get("Idempotency-Replayed").is_some();
        let (done, refused): (Vec<_>, Vec<_>) =
            operation["responses"].as_object().into_iter().flatten().partition(|(status, _)| status.starts_with('2'));
        assert!(done.iter().all(|(_, response)| says(response) == takes), "{name}");
        assert!(!refused.iter().any(|(_, response)| says(response)), "{name}: errors are not stored");
        // Requests without a body cannot differ from each other.
        let may_differ = takes && operation.get("requestBody").is_some();
        assert!(!may_differ || refused.iter().any(|(status, _)| *status == "409"), "{name}");
    }
    assert_eq!(taking, 23, "update the number of operations with a key here");
}

#[test]
fn changes_of_tokens_and_applications_are_audited_as_documented() {
    let documents = text("docs/reference.md");
    for function in http_functions() {
        let audited = declaration(&function.name).audited;
        for route in &function.routes {
            let sensitive =
                ["/application", "/panel/link", "/panel/session"].iter().any(|part| route.path.contains(part))
                    || route.path.starts_with("/oauth2/");
            let reads = ["GET", "HEAD"].contains(&route.method.as_str());
            assert_eq!(audited.is_some(), sensitive && !reads, "{}", function.name);
        }
        if let Some(name) = audited.map(|action| action.name()) {
            let short = name.strip_prefix("application").unwrap_or(name);
            let documented = [name, short].iter().any(|name| documents.contains(&format!("`{name}`")));
            assert!(documented, "docs/reference.md does not name {name}");
        }
    }
}
