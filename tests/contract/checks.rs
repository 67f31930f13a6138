//! The order of checks: each operation under `/api` is tested against each check and each pair of checks.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Call, Forge, Suite, now};

/// The values of path parameters: well-formed identifiers of no existing resource, and a payment provider that the
/// tests' bundles have.
const PARAMETERS: [(&str, &str); 10] = [
    ("{value}", "nothing.happened"),
    ("{eventIdentifier}", "evt_00000000000000000000000000"),
    ("{deliveryIdentifier}", "dlv_00000000000000000000000000"),
    ("{webhookIdentifier}", "whk_00000000000000000000000000"),
    ("{clientId}", "app0000000000000000000000"),
    ("{secretId}", "sec_00000000000000000000000000"),
    ("{kid}", "no-key"),
    ("{linkIdentifier}", "plk_00000000000000000000000000"),
    ("{provider}", "sim-basic"),
    ("{connectionIdentifier}", "con_00000000000000000000000000"),
];

/// An operation under `/api`, a valid body if it takes one, and the status that a valid request gets. The status is 404
/// if check 8 finds no such resource.
type Row = (&'static str, Option<fn() -> Value>, u16);

/// Every operation under `/api` for a managing entity. The first test fails if an operation is missing from this table.
const TABLE: &[Row] = &[
    ("createApplication", Some(application), 201),
    ("listApplications", None, 200),
    ("showApplication", None, 404),
    ("changeApplication", Some(nothing), 404),
    ("removeApplication", None, 404),
    ("addApplicationSecret", Some(nothing), 404),
    ("removeApplicationSecret", None, 404),
    ("addApplicationKey", Some(public_key), 404),
    ("removeApplicationKey", None, 404),
    ("listEventTypes", None, 200),
    ("listEvents", None, 200),
    ("showEventType", None, 404),
    ("checkEventFilter", Some(filter), 200),
    ("publishEvent", Some(event), 202),
    ("createWebhook", Some(webhook), 201),
    ("listWebhooks", None, 200),
    ("showWebhook", None, 404),
    ("changeWebhook", Some(nothing), 404),
    ("removeWebhook", None, 404),
    ("rotateWebhookSecret", Some(nothing), 404),
    ("endPreviousSecret", None, 404),
    ("testWebhook", Some(nothing), 404),
    ("pauseWebhook", Some(nothing), 404),
    ("resumeWebhook", Some(nothing), 404),
    ("webhookStats", None, 404),
    ("readFeed", Some(nothing), 404),
    ("acknowledgeFeed", Some(answers), 404),
    ("extendFeed", Some(extension), 404),
    ("showEvent", None, 404),
    ("eraseEvent", None, 404),
    ("showDelivery", None, 404),
    ("listDeliveries", None, 200),
    ("resendDelivery", Some(nothing), 404),
    ("cancelDelivery", Some(nothing), 404),
    ("recoverDeliveries", Some(range), 404),
    ("replayEvents", Some(range), 404),
    ("createPanelLink", Some(nothing), 201),
    ("listPanelLinks", None, 200),
    ("showPanelLink", None, 404),
    ("renewPanelLink", Some(nothing), 404),
    ("removePanelLink", None, 404),
    ("connectProvider", Some(nothing), 201),
    ("disconnectProvider", None, 404),
    ("listConnections", None, 200),
    ("showConnection", None, 404),
    ("listProviders", None, 200),
];

/// A row of the table, with its operation from openapi.yaml.
struct Case {
    operation: String,
    method: String,
    /// The operation's path, which contains `{managingEntityIdentifier}`.
    path: String,
    scope: String,
    body: Option<fn() -> Value>,
    status: u16,
}

fn cases(suite: &Suite) -> Vec<Case> {
    let operations = suite.contract.operations();
    let case = |(operation, body, status): &Row| {
        let found =
            operations.iter().find(|found| found.id == *operation).expect("the first test checks that it exists");
        Case {
            operation: found.id.clone(),
            method: found.method.clone(),
            path: PARAMETERS.iter().fold(found.path.clone(), |path, (name, value)| path.replace(name, value)),
            scope: found.scope.clone().expect("openapi.yaml names the scope of every operation under /api"),
            body: *body,
            status: *status,
        }
    };
    TABLE.iter().map(case).collect()
}

/// The operations under `/api` without a managing entity, which need no token and have separate tests.
const PUBLIC: [&str; 2] = ["/api/public/{provider}/oauth2/callback", "/api/public/{provider}/oauth2/start"];

fn nothing() -> Value {
    json!({})
}

fn answers() -> Value {
    json!({ "confirmed": ["dlv_00000000000000000000000000.1.00000000-0000-4000-8000-000000000000"] })
}

fn extension() -> Value {
    json!({ "receipts": ["dlv_00000000000000000000000000.1.00000000-0000-4000-8000-000000000000"], "visibility": 60 })
}

fn range() -> Value {
    json!({ "createdFrom": "2026-01-01T00:00:00Z" })
}

fn event() -> Value {
    json!({ "type": "booking.created", "data": {} })
}

fn filter() -> Value {
    json!({ "eventFilter": { "currency": ["EUR"] } })
}

fn webhook() -> Value {
    json!({ "name": "table", "eventUrl": "http://127.0.0.1:9/", "eventList": ["booking.expired"], "enabled": false })
}

fn application() -> Value {
    // The token itself has this scope, since a caller can grant only scopes that it has.
    json!({ "name": "table", "scopes": ["account.write"] })
}

fn public_key() -> Value {
    json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" } })
}

/// The ways to violate a check, in the contract's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breach {
    UnknownPath,
    WrongVerb,
    NoToken,
    ExpiredToken,
    MissingScope,
    ForeignEntity,
    MayNotPublish,
    UnknownVersion,
    WrongContentType,
    UnknownParameter,
    UnknownMember,
}

use Breach::{
    ExpiredToken, ForeignEntity, MayNotPublish, MissingScope, NoToken, UnknownMember, UnknownParameter, UnknownPath,
    UnknownVersion, WrongContentType, WrongVerb,
};

impl Breach {
    const ALL: [Self; 11] = [
        UnknownPath,
        WrongVerb,
        NoToken,
        ExpiredToken,
        MissingScope,
        ForeignEntity,
        MayNotPublish,
        UnknownVersion,
        WrongContentType,
        UnknownParameter,
        UnknownMember,
    ];

    /// The status and kind of the response.
    fn answer(self) -> (u16, &'static str) {
        match self {
            UnknownPath => (404, "not-found"),
            WrongVerb => (405, "method-not-allowed"),
            NoToken | ExpiredToken => (401, "unauthorized"),
            MissingScope => (403, "insufficient-scope"),
            ForeignEntity => (403, "entity-not-covered"),
            MayNotPublish => (403, "may-not-publish"),
            UnknownVersion => (400, "unsupported-version"),
            WrongContentType => (415, "unsupported-media-type"),
            UnknownParameter | UnknownMember => (400, "invalid-request"),
        }
    }

    /// Whether the check applies to an operation.
    fn applies_to(self, case: &Case) -> bool {
        match self {
            WrongContentType | UnknownMember => case.body.is_some(),
            MayNotPublish => case.operation == "publishEvent",
            _ => true,
        }
    }
}

/// A request to an operation, with exactly these violations.
fn request(api: &Api, forge: &Forge, case: &Case, breaches: &[Breach]) -> Call {
    let broken = |breach| breaches.contains(&breach);
    let mut claims = forge.claims();
    claims["managing_entities"] = json!(["covered"]);
    claims["scope"] = if broken(MissingScope) { "booking.read".into() } else { case.scope.as_str().into() };
    claims["may_publish"] = (!broken(MayNotPublish)).into();
    if broken(ExpiredToken) {
        claims["exp"] = (now() - 5).into();
    }
    let entity = if broken(ForeignEntity) { "foreign" } else { "covered" };
    let more = if broken(UnknownPath) { "/and/more" } else { "" };
    let method = if broken(WrongVerb) { "PUT" } else { &case.method };
    let path = case.path.replace("{managingEntityIdentifier}", entity);
    let query = if broken(UnknownParameter) { "?nonsense=1" } else { "" };
    let mut call = api.call(method, format!("{path}{more}{query}"));
    if !broken(NoToken) {
        call = call.bearer(&forge.token(&forge.header(), &claims));
    }
    if broken(UnknownVersion) {
        call = call.header("service-version", "1.0");
    }
    if let Some(body) = case.body {
        let mut body = body();
        if broken(UnknownMember) {
            body["nonsense"] = 1.into();
        }
        call = call.body(if broken(WrongContentType) { "text/plain" } else { "application/json" }, body.to_string());
    }
    call
}

fn query_parameters(suite: &Suite, case: &Case) -> Vec<String> {
    let found = suite.contract.operations().into_iter().find(|found| found.id == case.operation);
    let found = found.expect("every case is an operation of openapi.yaml");
    let operation = &suite.contract.document["paths"][&found.path][found.method.to_lowercase()];
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| suite.contract.resolved(parameter));
    let names = parameters.filter(|parameter| parameter["in"] == "query").map(|parameter| &parameter["name"]);
    names.map(|name| name.as_str().expect("a parameter has a name").to_owned()).collect()
}

/// If a filter were ignored, it would seem to match everything.
#[contract_test]
async fn an_operation_accepts_exactly_the_query_parameters_of_openapi_yaml(suite: Arc<Suite>) {
    let forge = suite.forge();
    for case in cases(&suite) {
        let problem = request(&suite.api, &forge, &case, &[UnknownParameter]).refused(400, "invalid-request").await;
        let violations = problem["properties"]["violations"].as_array().expect("openapi.yaml says so");
        let message = violations[0].to_string();
        let mut accepted: Vec<_> = match message.split_once("; it accepts ") {
            Some((_, names)) => names.split(['"', '.']).next().unwrap_or_default().split(", ").collect(),
            None => Vec::new(),
        };
        let mut documented = query_parameters(&suite, &case);
        accepted.sort_unstable();
        documented.sort();
        assert_eq!((violations.len(), accepted), (1, documented.iter().map(String::as_str).collect()), "{problem:#}");
    }
}

#[contract_test]
async fn every_operation_under_api_is_in_the_table(suite: Arc<Suite>) {
    let table: BTreeSet<&str> = TABLE.iter().map(|(operation, ..)| *operation).collect();
    let operations = suite.contract.operations();
    let under_api = operations
        .iter()
        .filter(|operation| operation.path.starts_with("/api/") && !PUBLIC.contains(&operation.path.as_str()));
    let documented: BTreeSet<&str> = under_api
        .map(|operation| {
            let has_entity = operation.path.starts_with("/api/managing-entity/{managingEntityIdentifier}/");
            assert!(has_entity, "{} has no managing entity: decide which checks apply", operation.id);
            operation.id.as_str()
        })
        .collect();
    assert_eq!(table, documented, "a new operation needs a row in TABLE");
}

#[contract_test]
async fn a_good_request_passes_every_check(suite: Arc<Suite>) {
    let forge = suite.forge();
    for case in cases(&suite) {
        request(&suite.api, &forge, &case, &[]).expect(case.status).await;
    }
}

#[contract_test]
async fn a_request_that_breaks_one_rule_is_refused_for_that_rule(suite: Arc<Suite>) {
    let forge = suite.forge();
    for case in cases(&suite) {
        for breach in Breach::ALL.into_iter().filter(|breach| breach.applies_to(&case)) {
            let answer = request(&suite.api, &forge, &case, &[breach]).answered().await;
            assert_answers(&answer, breach, &case, &[breach]);
            assert_challenges(&answer, breach, &case.scope);
        }
    }
}

#[contract_test]
async fn a_request_that_breaks_two_rules_is_refused_for_the_first(suite: Arc<Suite>) {
    let forge = suite.forge();
    for case in cases(&suite) {
        let applying: Vec<Breach> = Breach::ALL.into_iter().filter(|breach| breach.applies_to(&case)).collect();
        for (position, first) in applying.iter().enumerate() {
            for second in &applying[position + 1..] {
                let pair = [*first, *second];
                let answer = request(&suite.api, &forge, &case, &pair).answered().await;
                assert_answers(&answer, *first, &case, &pair);
            }
        }
    }
}

fn assert_answers(answer: &ApiResponse, breach: Breach, case: &Case, breaches: &[Breach]) {
    let (status, kind) = breach.answer();
    let problem = if answer.status == status { answer.json() } else { Value::Null };
    let of_kind = problem["type"].as_str().is_some_and(|url| url.ends_with(&format!("/problems/{kind}")));
    assert!(of_kind, "{} with {breaches:?}: expected {status} {kind}: {}", case.operation, answer.exchange);
}

/// RFC 6750 §3: the challenge names no error if the request has no token, and names the scope if it is missing.
fn assert_challenges(answer: &ApiResponse, breach: Breach, scope: &str) {
    let challenge = answer.header("www-authenticate");
    let as_it_should_be = match breach {
        NoToken => challenge.starts_with("Bearer") && !challenge.contains("error"),
        ExpiredToken => challenge.starts_with("Bearer") && challenge.contains(r#"error="invalid_token""#),
        MissingScope => {
            challenge.starts_with("Bearer")
                && challenge.contains(r#"error="insufficient_scope""#)
                && challenge.contains(&format!(r#"scope="{scope}""#))
        }
        _ => true,
    };
    assert!(as_it_should_be, "WWW-Authenticate is wrong for {breach:?}: {}", answer.exchange);
}
