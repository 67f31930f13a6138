//! The order of checks: a table holds each operation under `/api` against each check, and against each pair of them.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Call, Forge, Suite, now, tests};

tests![
    every_operation_under_api_stands_in_the_table,
    a_good_request_passes_every_check,
    a_request_that_breaks_one_rule_is_told_which,
    a_request_that_breaks_two_rules_is_told_the_first,
];

/// A well-formed identifier that no delivery has.
const NO_DELIVERY: &str = "dlv_00000000000000000000000000";
/// The same of webhooks.
const NO_WEBHOOK: &str = "whk_00000000000000000000000000";

/// The same of applications, of their secrets and their keys.
const NO_APPLICATION: &str = "app0000000000000000000000";
const NO_SECRET: &str = "sec_00000000000000000000000000";
const NO_KEY: &str = "no-key";

/// One operation under `/api`, with a request that passes every check that can be passed without anything made before.
struct Row {
    operation: &'static str,
    method: &'static str,
    /// Below the managing entity.
    path: &'static str,
    /// A good body, when the operation takes one.
    body: Option<fn() -> Value>,
    /// What the good request is answered with.
    status: u16,
}

/// A payment provider that the tests' bundles have.
const PROVIDER: &str = "sim-basic";

/// Every operation under `/api` that has a managing entity. A new one goes in here, or the first test fails.
const TABLE: &[Row] = &[
    Row { operation: "createApplication", method: "POST", path: "/application", body: Some(application), status: 201 },
    Row { operation: "listApplications", method: "GET", path: "/application/list", body: None, status: 200 },
    // Check 8: there is no such application.
    Row {
        operation: "showApplication",
        method: "GET",
        path: "/application/app0000000000000000000000",
        body: None,
        status: 404,
    },
    Row {
        operation: "removeApplication",
        method: "DELETE",
        path: "/application/app0000000000000000000000",
        body: None,
        status: 404,
    },
    Row {
        operation: "addApplicationSecret",
        method: "POST",
        path: "/application/app0000000000000000000000/secret",
        body: Some(nothing),
        status: 404,
    },
    Row {
        operation: "removeApplicationSecret",
        method: "DELETE",
        path: "/application/app0000000000000000000000/secret/sec_00000000000000000000000000",
        body: None,
        status: 404,
    },
    Row {
        operation: "addApplicationKey",
        method: "POST",
        path: "/application/app0000000000000000000000/key",
        body: Some(public_key),
        status: 404,
    },
    Row {
        operation: "removeApplicationKey",
        method: "DELETE",
        path: "/application/app0000000000000000000000/key/no-key",
        body: None,
        status: 404,
    },
    Row { operation: "listEvents", method: "GET", path: "/webhook/event/list", body: None, status: 200 },
    Row { operation: "publishEvent", method: "POST", path: "/webhook/event", body: Some(event), status: 202 },
    Row { operation: "createWebhook", method: "POST", path: "/webhook", body: Some(webhook), status: 201 },
    Row { operation: "listWebhooks", method: "GET", path: "/webhook/list", body: None, status: 200 },
    // Check 8: there is no such webhook.
    Row {
        operation: "showWebhook",
        method: "GET",
        path: "/webhook/whk_00000000000000000000000000",
        body: None,
        status: 404,
    },
    Row {
        operation: "changeWebhook",
        method: "PATCH",
        path: "/webhook/whk_00000000000000000000000000",
        body: Some(nothing),
        status: 404,
    },
    Row {
        operation: "removeWebhook",
        method: "DELETE",
        path: "/webhook/whk_00000000000000000000000000",
        body: None,
        status: 404,
    },
    Row {
        operation: "rotateWebhookSecret",
        method: "POST",
        path: "/webhook/whk_00000000000000000000000000/secret",
        body: Some(nothing),
        status: 404,
    },
    Row {
        operation: "testWebhook",
        method: "POST",
        path: "/webhook/whk_00000000000000000000000000/test",
        body: Some(nothing),
        status: 404,
    },
    Row {
        operation: "webhookStats",
        method: "GET",
        path: "/webhook/whk_00000000000000000000000000/stats",
        body: None,
        status: 404,
    },
    // Check 8, the last that can be seen here: there is no such delivery.
    Row {
        operation: "showDelivery",
        method: "GET",
        path: "/webhook/delivery/dlv_00000000000000000000000000",
        body: None,
        status: 404,
    },
    Row { operation: "listDeliveries", method: "GET", path: "/webhook/delivery/list", body: None, status: 200 },
    Row {
        operation: "resendDelivery",
        method: "POST",
        path: "/webhook/delivery/dlv_00000000000000000000000000/resend",
        body: Some(nothing),
        status: 404,
    },
    Row {
        operation: "recoverDeliveries",
        method: "POST",
        path: "/webhook/whk_00000000000000000000000000/recover",
        body: Some(range),
        status: 404,
    },
    Row {
        operation: "connectProvider",
        method: "POST",
        path: "/payment/provider/sim-basic/connection",
        body: Some(nothing),
        status: 201,
    },
    // Check 8: nothing is connected.
    Row {
        operation: "disconnectProvider",
        method: "DELETE",
        path: "/payment/provider/sim-basic/connection",
        body: None,
        status: 404,
    },
    Row { operation: "listConnections", method: "GET", path: "/payment/provider/list", body: None, status: 200 },
];

/// The operations under `/api` without a managing entity: their callers have no token, and they have tests of their own.
const PUBLIC: [&str; 2] = ["/api/public/{provider}/oauth2/callback", "/api/public/{provider}/oauth2/start"];

fn nothing() -> Value {
    json!({})
}

fn range() -> Value {
    json!({ "since": "2026-01-01T00:00:00Z" })
}

fn event() -> Value {
    json!({ "type": "booking.created", "data": {} })
}

fn webhook() -> Value {
    json!({ "name": "table", "eventUrl": "http://127.0.0.1:9/", "eventList": ["booking.expired"], "enabled": false })
}

fn application() -> Value {
    // What the token of this row has itself: nobody gives more.
    json!({ "name": "table", "scopes": ["account.write"] })
}

fn public_key() -> Value {
    json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" } })
}

/// The ways to break a request, in the order of the contract's checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breach {
    UnknownPath,
    WrongVerb,
    NoToken,
    ExpiredToken,
    MissingScope,
    ForeignEntity,
    UnknownVersion,
    WrongContentType,
    UnknownMember,
}

use Breach::{
    ExpiredToken, ForeignEntity, MissingScope, NoToken, UnknownMember, UnknownPath, UnknownVersion, WrongContentType,
    WrongVerb,
};

impl Breach {
    const ALL: [Self; 9] = [
        UnknownPath,
        WrongVerb,
        NoToken,
        ExpiredToken,
        MissingScope,
        ForeignEntity,
        UnknownVersion,
        WrongContentType,
        UnknownMember,
    ];

    /// Status and kind of the answer.
    fn answer(self) -> (u16, &'static str) {
        match self {
            UnknownPath => (404, "not-found"),
            WrongVerb => (405, "method-not-allowed"),
            NoToken | ExpiredToken => (401, "unauthorized"),
            MissingScope => (403, "insufficient-scope"),
            ForeignEntity => (403, "entity-not-covered"),
            UnknownVersion => (400, "unsupported-version"),
            WrongContentType => (415, "unsupported-media-type"),
            UnknownMember => (400, "invalid-request"),
        }
    }

    /// Whether an operation has what this breaks.
    fn applies_to(self, row: &Row) -> bool {
        row.body.is_some() || !matches!(self, WrongContentType | UnknownMember)
    }
}

/// A request to the row's operation with these faults in it, and no others.
fn request(api: &Api, forge: &Forge, scope: &str, row: &Row, breaches: &[Breach]) -> Call {
    let broken = |breach| breaches.contains(&breach);
    let mut claims = forge.claims();
    claims["managing_entities"] = json!(["covered"]);
    claims["scope"] = if broken(MissingScope) { "booking.read".into() } else { scope.into() };
    if broken(ExpiredToken) {
        claims["exp"] = (now() - 5).into();
    }
    let entity = if broken(ForeignEntity) { "foreign" } else { "covered" };
    let more = if broken(UnknownPath) { "/and/more" } else { "" };
    let method = if broken(WrongVerb) { "PUT" } else { row.method };
    let mut call = api.call(method, format!("/api/managing-entity/{entity}{}{more}", row.path));
    if !broken(NoToken) {
        call = call.bearer(&forge.token(&forge.header(), &claims));
    }
    if broken(UnknownVersion) {
        call = call.header("service-version", "1.0");
    }
    if let Some(body) = row.body {
        let mut body = body();
        if broken(UnknownMember) {
            body["nonsense"] = 1.into();
        }
        call = call.body(if broken(WrongContentType) { "text/plain" } else { "application/json" }, body.to_string());
    }
    call
}

fn scope_of(suite: &Suite, row: &Row) -> String {
    let operation = suite.contract.operations().into_iter().find(|operation| operation.id == row.operation);
    operation.and_then(|operation| operation.scope).expect("openapi.yaml names the scope of every operation under /api")
}

async fn every_operation_under_api_stands_in_the_table(suite: Arc<Suite>) {
    let documented_as = |path: &str| {
        path.replace(NO_DELIVERY, "{deliveryIdentifier}")
            .replace(NO_WEBHOOK, "{webhookIdentifier}")
            .replace(NO_APPLICATION, "{clientId}")
            .replace(NO_SECRET, "{secretId}")
            .replace(NO_KEY, "{kid}")
            .replace(PROVIDER, "{provider}")
    };
    let table: BTreeSet<(&str, String)> = TABLE.iter().map(|row| (row.operation, documented_as(row.path))).collect();
    let operations = suite.contract.operations();
    let documented: BTreeSet<(&str, String)> = operations
        .iter()
        .filter_map(|operation| {
            let below = operation.path.strip_prefix("/api/managing-entity/{managingEntityIdentifier}")?;
            Some((operation.id.as_str(), below.to_owned()))
        })
        .collect();
    assert_eq!(table, documented, "a new operation needs a row in TABLE");
    let under_api = operations
        .iter()
        .filter(|operation| operation.path.starts_with("/api/") && !PUBLIC.contains(&operation.path.as_str()));
    assert_eq!(
        under_api.count(),
        TABLE.len(),
        "an operation under /api has no managing entity: think about its checks"
    );
}

async fn a_good_request_passes_every_check(suite: Arc<Suite>) {
    let forge = suite.forge();
    for row in TABLE {
        request(&suite.api, &forge, &scope_of(&suite, row), row, &[]).expect(row.status).await;
    }
}

async fn a_request_that_breaks_one_rule_is_told_which(suite: Arc<Suite>) {
    let forge = suite.forge();
    for row in TABLE {
        let scope = scope_of(&suite, row);
        for breach in Breach::ALL.into_iter().filter(|breach| breach.applies_to(row)) {
            let answer = request(&suite.api, &forge, &scope, row, &[breach]).send().await;
            answered_as(&answer, breach, row, &[breach]);
            told_how_to_authenticate(&answer, breach, &scope);
        }
    }
}

async fn a_request_that_breaks_two_rules_is_told_the_first(suite: Arc<Suite>) {
    let forge = suite.forge();
    for row in TABLE {
        let scope = scope_of(&suite, row);
        let applying: Vec<Breach> = Breach::ALL.into_iter().filter(|breach| breach.applies_to(row)).collect();
        for (position, first) in applying.iter().enumerate() {
            for second in &applying[position + 1..] {
                let pair = [*first, *second];
                let answer = request(&suite.api, &forge, &scope, row, &pair).send().await;
                answered_as(&answer, *first, row, &pair);
            }
        }
    }
}

fn answered_as(answer: &ApiResponse, breach: Breach, row: &Row, breaches: &[Breach]) {
    let (status, kind) = breach.answer();
    let problem = if answer.status == status { answer.json() } else { Value::Null };
    let of_kind = problem["type"].as_str().is_some_and(|url| url.ends_with(&format!("/problems/{kind}")));
    assert!(of_kind, "{} with {breaches:?}: expected {status} {kind}: {}", row.operation, answer.exchange);
}

/// RFC 6750 §3: no error where no token came, the scope where it is missing.
fn told_how_to_authenticate(answer: &ApiResponse, breach: Breach, scope: &str) {
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
