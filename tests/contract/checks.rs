//! The order of checks: a table holds each operation under `/api` against each check, and against each pair of them.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::harness::{Answer, Api, Application, Call, Forge, Suite, now, send_raw, tests};

tests![
    every_operation_under_api_stands_in_the_table,
    a_good_request_passes_every_check,
    a_request_that_breaks_one_rule_is_told_which,
    a_request_that_breaks_two_rules_is_told_the_first,
    a_path_that_does_not_exist_is_not_found,
    a_verb_that_a_path_does_not_take_is_answered_with_those_it_takes,
    a_token_that_the_issuer_did_not_make_is_refused,
    a_token_that_is_no_longer_or_not_yet_valid_is_refused,
    what_is_no_bearer_token_is_no_token,
    a_token_is_bound_to_its_entities,
    one_scope_does_not_imply_another,
    only_versions_that_exist_are_accepted,
    a_body_must_be_declared_as_json,
    a_body_that_is_no_json_object_is_refused,
    an_entity_that_cannot_exist_is_a_violation,
    a_body_that_is_too_large_is_a_problem,
    a_request_without_a_valid_host_is_a_problem,
];

/// A well-formed identifier that no delivery has.
const NO_DELIVERY: &str = "dlv_00000000000000000000000000";

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

/// Every operation under `/api`. A new one goes in here, or the first test fails.
const TABLE: [Row; 5] = [
    Row { operation: "listEvents", method: "GET", path: "/webhook/event/list", body: None, status: 200 },
    Row { operation: "publishEvent", method: "POST", path: "/webhook/event", body: Some(event), status: 202 },
    Row { operation: "createWebhook", method: "POST", path: "/webhook", body: Some(webhook), status: 201 },
    Row { operation: "listWebhooks", method: "GET", path: "/webhook/list", body: None, status: 200 },
    // Check 8, the last that can be seen here: there is no such delivery.
    Row {
        operation: "showDelivery",
        method: "GET",
        path: "/webhook/delivery/dlv_00000000000000000000000000",
        body: None,
        status: 404,
    },
];

fn event() -> Value {
    json!({ "type": "booking.created", "data": {} })
}

fn webhook() -> Value {
    json!({ "name": "table", "eventUrl": "http://127.0.0.1:9/", "eventList": ["booking.expired"], "enabled": false })
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
    let method = if broken(WrongVerb) { "DELETE" } else { row.method };
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
    let table: BTreeSet<(&str, String)> =
        TABLE.iter().map(|row| (row.operation, row.path.replace(NO_DELIVERY, "{deliveryIdentifier}"))).collect();
    let operations = suite.contract.operations();
    let documented: BTreeSet<(&str, String)> = operations
        .iter()
        .filter_map(|operation| {
            let below = operation.path.strip_prefix("/api/managing-entity/{managingEntityIdentifier}")?;
            Some((operation.id.as_str(), below.to_owned()))
        })
        .collect();
    assert_eq!(table, documented, "a new operation needs a row in TABLE");
    let under_api = operations.iter().filter(|operation| operation.path.starts_with("/api/"));
    assert_eq!(
        under_api.count(),
        TABLE.len(),
        "an operation under /api has no managing entity: think about its checks"
    );
}

async fn a_good_request_passes_every_check(suite: Arc<Suite>) {
    let forge = suite.forge();
    for row in &TABLE {
        request(&suite.api, &forge, &scope_of(&suite, row), row, &[]).expect(row.status).await;
    }
}

async fn a_request_that_breaks_one_rule_is_told_which(suite: Arc<Suite>) {
    let forge = suite.forge();
    for row in &TABLE {
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
    for row in &TABLE {
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

fn answered_as(answer: &Answer, breach: Breach, row: &Row, breaches: &[Breach]) {
    let (status, kind) = breach.answer();
    let problem = if answer.status == status { answer.json() } else { Value::Null };
    let of_kind = problem["type"].as_str().is_some_and(|url| url.ends_with(&format!("/problems/{kind}")));
    assert!(of_kind, "{} with {breaches:?}: expected {status} {kind}: {}", row.operation, answer.exchange);
}

/// RFC 6750 §3: no error where no token came, the scope where it is missing.
fn told_how_to_authenticate(answer: &Answer, breach: Breach, scope: &str) {
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

async fn a_path_that_does_not_exist_is_not_found(suite: Arc<Suite>) {
    let token = suite.api.token(Application::Platform, "").await;
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/managing-entity",
        "/api/managing-entity/demo-hotel",
        "/api/managing-entity/demo-hotel/webhook/",
        "/api/managing-entity/demo-hotel/webhook/list/",
        "/api/managing-entity/demo-hotel//webhook/list",
        "//api/managing-entity/demo-hotel/webhook/list",
        "/api/managing-entity//webhook/list",
        "/API/managing-entity/demo-hotel/webhook/list",
        "/api/managing-entity/demo-hotel/Webhook/list",
        "/api/managing-entity/demo-hotel/webhook/LIST",
        "/api/managing-entity/demo-hotel/webhook/%6Cist",
        "/api/managing-entity/demo-hotel/webhook%2Flist",
        "/api/managing-entity/demo-hotel/webhook/delivery",
        "/api/managing-entity/demo-hotel/webhook/delivery/",
        "/api/managing-entity/demo-hotel/webhook/event/lists",
        "/oauth2",
        "/oauth2/Token",
        "/oauth2/token/",
        "/openapi.yaml",
        "/openapi.json/",
        "/problems",
        "/problems/",
        "/problems/not-found/more",
        "/.well-known/openid-configuration",
        "/favicon.ico",
    ] {
        for call in [
            suite.api.get(path),
            suite.api.get(path).bearer(&token),
            suite.api.post(path),
            suite.api.call("OPTIONS", path),
        ] {
            call.refused(404, "not-found").await;
        }
    }
}

async fn a_verb_that_a_path_does_not_take_is_answered_with_those_it_takes(suite: Arc<Suite>) {
    let paths: BTreeSet<String> = suite.contract.operations().into_iter().map(|operation| operation.path).collect();
    for template in paths {
        let takes = suite.contract.verbs(&template);
        let path = template
            .replace("{managingEntityIdentifier}", "demo-hotel")
            .replace("{deliveryIdentifier}", NO_DELIVERY)
            .replace("{kind}", "not-found");
        for verb in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "SOMETHING"] {
            if takes.contains(verb) {
                continue;
            }
            let answer = suite.api.call(verb, path.as_str()).expect(405).await;
            let allowed: BTreeSet<String> =
                answer.header("allow").split(',').map(|verb| verb.trim().to_owned()).collect();
            assert_eq!(allowed, takes, "{}", answer.exchange);
            assert_eq!(verb == "HEAD", answer.body.is_empty(), "{}", answer.exchange);
        }
    }
}

/// Fails unless every operation refuses this value of `Authorization` as an invalid token.
async fn refused_as_invalid(suite: &Suite, authorization: &str) {
    for row in &TABLE {
        let call = suite.api.call(row.method, format!("/api/managing-entity/covered{}", row.path));
        let answer = call.header("authorization", authorization).expect(401).await;
        let challenge = answer.header("www-authenticate");
        let told = challenge.starts_with("Bearer") && challenge.contains(r#"error="invalid_token""#);
        assert!(told, "{authorization}: {}", answer.exchange);
    }
}

/// Sets a member, or removes it when there is no value.
fn set(object: &mut Value, name: &str, value: Value) {
    match value {
        Value::Null => drop(object.as_object_mut().and_then(|members| members.remove(name))),
        value => object[name] = value,
    }
}

async fn a_token_that_the_issuer_did_not_make_is_refused(suite: Arc<Suite>) {
    let forge = suite.forge();
    let (header, claims) = (forge.header(), forge.claims());
    let good = forge.token(&header, &claims);
    suite.api.get("/api/managing-entity/covered/webhook/list").bearer(&good).expect(200).await;

    let with_header = |name: &str, value: Value| {
        let mut header = header.clone();
        set(&mut header, name, value);
        forge.token(&header, &claims)
    };
    let with_claim = |name: &str, value: Value| {
        let mut claims = claims.clone();
        set(&mut claims, name, value);
        forge.token(&header, &claims)
    };
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (head, _) = signed.split_once('.').expect("two parts");
    let other = forge.token(&header, &json!({ "iss": "x" }));
    let other_payload = other.split('.').nth(1).expect("three parts");
    let twice = |text: &str, member: &str| text.replacen('{', &format!("{{{member},"), 1);
    let tokens = [
        "garbage".to_owned(),
        String::new(),
        "a.b.c".to_owned(),
        "..".to_owned(),
        format!("{signed}."),
        signed.to_owned(),
        format!("{good}.{signature}"),
        format!("{head}.{other_payload}.{signature}"),
        format!("{signed}.{}", signature.chars().rev().collect::<String>()),
        format!("{good}="),
        "x".repeat(5_000),
        forge.token_without_signature(&claims),
        forge.token_with_public_key_as_secret(&claims),
        with_header("alg", "none".into()),
        with_header("alg", "HS256".into()),
        with_header("alg", "ES384".into()),
        with_header("alg", Value::Null),
        with_header("typ", "JWT".into()),
        with_header("typ", "id+jwt".into()),
        with_header("typ", Value::Null),
        with_header("kid", "another".into()),
        with_header("kid", "../../etc/passwd".into()),
        with_header("kid", Value::Null),
        with_header("crit", json!(["exp"])),
        with_header("crit", json!(["unheard-of"])),
        with_header("b64", false.into()),
        with_claim("iss", Value::Null),
        with_claim("iss", "https://issuer.example.com".into()),
        with_claim("aud", Value::Null),
        with_claim("aud", "https://api.example.com".into()),
        with_claim("aud", json!(["https://api.example.com"])),
        with_claim("exp", Value::Null),
        with_claim("exp", "tomorrow".into()),
        forge.token_of_texts(&header.to_string(), &twice(&claims.to_string(), r#""exp":99999999999"#)),
        forge.token_of_texts(&header.to_string(), &twice(&claims.to_string(), r#""managing_entities":["*"]"#)),
        forge.token_of_texts(&header.to_string(), "[]"),
        forge.token_of_texts(&header.to_string(), "null"),
        suite.forge().with_another_key().token(&header, &claims),
    ];
    for token in tokens {
        refused_as_invalid(&suite, &format!("Bearer {token}")).await;
    }
}

async fn a_token_that_is_no_longer_or_not_yet_valid_is_refused(suite: Arc<Suite>) {
    let forge = suite.forge();
    // No leeway: issuer and API read the same clock.
    for (claim, from_now) in [("exp", -2), ("exp", -3_600), ("nbf", 120), ("iat", 120)] {
        let mut claims = forge.claims();
        claims[claim] = (now() + from_now).into();
        refused_as_invalid(&suite, &format!("Bearer {}", forge.token(&forge.header(), &claims))).await;
    }
}

async fn what_is_no_bearer_token_is_no_token(suite: Arc<Suite>) {
    for authorization in [None, Some("Basic YTpi"), Some("Digest username=x"), Some("Bearerx")] {
        let call = suite.api.get("/api/managing-entity/covered/webhook/list");
        let call = authorization.into_iter().fold(call, |call, value| call.header("authorization", value));
        let answer = call.expect(401).await;
        told_how_to_authenticate(&answer, NoToken, "");
    }
    // A token anywhere else than in the header is none either (RFC 6750 allows the query; this service does not).
    let token = suite.api.token(Application::Platform, "").await;
    let answer =
        suite.api.get(format!("/api/managing-entity/covered/webhook/list?access_token={token}")).expect(401).await;
    told_how_to_authenticate(&answer, NoToken, "");
    let lower_case =
        suite.api.get("/api/managing-entity/covered/webhook/list").header("authorization", format!("bearer {token}"));
    lower_case.expect(200).await;
}

async fn a_token_is_bound_to_its_entities(suite: Arc<Suite>) {
    let own = &suite.api.env["MANAGING_ENTITY"];
    let token = suite.api.token(Application::Demo, "").await;
    suite.api.get(format!("/api/managing-entity/{own}/webhook/list")).bearer(&token).expect(200).await;
    // The path's parameter is decoded, and then it is the same entity.
    let encoded = own.replace('-', "%2D");
    suite.api.get(format!("/api/managing-entity/{encoded}/webhook/list")).bearer(&token).expect(200).await;
    for foreign in
        ["another-hotel", &own.to_uppercase(), &format!("{own}%20"), &format!("{own}%00"), "*", "%2A", &own[1..]]
    {
        let call = suite.api.get(format!("/api/managing-entity/{foreign}/webhook/list")).bearer(&token);
        call.refused(403, "entity-not-covered").await;
    }
}

async fn one_scope_does_not_imply_another(suite: Arc<Suite>) {
    for (scope, path, method) in [
        ("integrations.write", "/webhook/list", "GET"),
        ("integrations.remove", "/webhook/list", "GET"),
        ("integrations.read", "/webhook", "POST"),
        ("integrations.remove", "/webhook/event", "POST"),
        ("mcp.read", "/webhook/event/list", "GET"),
    ] {
        let token = suite.api.token(Application::Platform, scope).await;
        let call = suite.api.call(method, format!("/api/managing-entity/covered{path}")).bearer(&token);
        let problem = call.refused(403, "insufficient-scope").await;
        assert_ne!(problem["properties"]["requiredScope"], scope);
    }
}

async fn only_versions_that_exist_are_accepted(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for version in ["2.0", "2.0.0"] {
        entity.get("/webhook/list").header("service-version", version).expect(200).await;
    }
    for version in ["", "2", "1.0", "2.1", "2.0.1", "3.0", "v2.0", "latest", "2.0, 1.0"] {
        let problem =
            entity.get("/webhook/list").header("service-version", version).refused(400, "unsupported-version").await;
        let detail = problem["detail"].as_str().expect("openapi.yaml says so");
        assert!(detail.contains("2.0") && detail.contains("2.0.0"), "the versions that exist are not named: {detail}");
    }
}

async fn a_body_must_be_declared_as_json(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in [("/webhook", webhook()), ("/webhook/event", event())] {
        let body = body.to_string();
        for content_type in ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"] {
            let answer = entity.post(path).body(content_type, body.as_str()).send().await;
            assert!(answer.status < 300, "{content_type}: {}", answer.exchange);
        }
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "text/json",
            "application/problem+json",
            "",
        ] {
            entity.post(path).body(content_type, body.as_str()).refused(415, "unsupported-media-type").await;
        }
        entity.post(path).untyped_body(body.as_str()).refused(415, "unsupported-media-type").await;
    }
}

async fn a_body_that_is_no_json_object_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in [("/webhook", webhook()), ("/webhook/event", event())] {
        let good = body.to_string();
        let member = good.split_once(',').expect("several members").0.trim_start_matches('{');
        let bodies: [Vec<u8>; 16] = [
            b"".to_vec(),
            b" ".to_vec(),
            b"null".to_vec(),
            b"1".to_vec(),
            b"\"text\"".to_vec(),
            b"[]".to_vec(),
            format!("[{good}]").into_bytes(),
            b"{".to_vec(),
            b"{}".to_vec(),
            good[..good.len() - 1].as_bytes().to_vec(),
            format!("{good}x").into_bytes(),
            format!("{good}{good}").into_bytes(),
            good.replacen('{', "{\"x\": \"\u{1}\",", 1).into_bytes(),
            [good[..good.len() - 1].as_bytes(), b",\"x\":\"\xff\"}"].concat(),
            good.replacen('{', &format!("{{{member},"), 1).into_bytes(),
            good.replacen('{', &format!("{{\"x\":{}{},", "[".repeat(10_000), "]".repeat(10_000)), 1).into_bytes(),
        ];
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let problem = entity.post(path).body("application/json", body).refused(400, "invalid-request").await;
            let violations = problem["properties"]["violations"].as_array().expect("openapi.yaml says so");
            assert!(!violations.is_empty(), "{shown}: {problem}");
        }
        let mut unknown = body.clone();
        unknown["eventURL"] = "misspelt".into();
        unknown["another"] = 1.into();
        let problem = entity.post(path).json(&unknown).refused(400, "invalid-request").await;
        let fields = fields(&problem);
        assert!(fields.contains(&"eventURL") && fields.contains(&"another"), "{path}: {problem}");
    }
}

fn fields(problem: &Value) -> Vec<&str> {
    let violations = problem["properties"]["violations"].as_array().expect("openapi.yaml says so");
    violations.iter().filter_map(|violation| violation["field"].as_str()).collect()
}

async fn an_entity_that_cannot_exist_is_a_violation(suite: Arc<Suite>) {
    let token = suite.api.token(Application::Platform, "").await;
    for entity in ["a%20b", "a%2Fb", "%C3%A4", "a%00b", "*", &"x".repeat(129)] {
        let call = suite.api.get(format!("/api/managing-entity/{entity}/webhook/list")).bearer(&token);
        let problem = call.refused(400, "invalid-request").await;
        assert_eq!(fields(&problem), ["managingEntityIdentifier"]);
    }
}

async fn a_body_that_is_too_large_is_a_problem(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (path, body) in [("/webhook", webhook()), ("/webhook/event", event())] {
        for megabytes in [7, 11] {
            let mut body = body.clone();
            body["padding"] = "x".repeat(megabytes * 1_024 * 1_024).into();
            entity.post(path).json(&body).refused(413, "payload-too-large").await;
        }
    }
}

async fn a_request_without_a_valid_host_is_a_problem(suite: Arc<Suite>) {
    for host in ["a b", "user@host", "host:99999"] {
        let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = send_raw(&suite.bundle, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{host}: {answer}");
    }
}
