//! Connections to payment providers, from the request to the end.

use std::sync::Arc;

use contract_test::contract_test;
use fakes::provider::{Kind, RequestOutcome};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{
    Application, Behaviour, Choice, Entity, PROVIDERS, Receiver, SCOPES, Suite, continue_to_provider, new_account, now,
    query, secret, secrets_manager, state_of, time,
};

#[contract_test]
async fn a_person_is_sent_to_the_provider_with_what_oauth_needs(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in PROVIDERS {
        let before = now();
        let answer = entity.post(&format!("/payment/provider/{provider}/connection")).expect(201).await;
        assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
        let body = answer.json();
        let begins = time(&body["expiresDate"]).as_second() - 10 * 60;
        assert!((before..=now()).contains(&begins), "a state lives for 10 minutes: {body:#}");
        let start = body["authorizationUrl"].as_str().expect("openapi.yaml says so");
        let own = format!("{}/api/public/{provider}/oauth2/start?state=", suite.api.base_url());
        assert!(start.starts_with(&own), "{start}");
        let address = &continue_to_provider(&suite.api, start, None).await.address;
        assert!(address.starts_with(&suite.providers().url(provider, "authorize")), "{address}");
        let parameters = query(address);
        let value = |name: &str| {
            let mut values = parameters.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
            let first = values.next();
            assert_eq!(values.next(), None, "{name} comes twice: {address}");
            first
        };
        let callback = format!("{}/api/public/{provider}/oauth2/callback", suite.api.base_url());
        assert_eq!(value("response_type"), Some("code"), "{address}");
        assert_eq!(value("redirect_uri"), Some(callback.as_str()), "{address}");
        assert!(value("client_id").is_some() && value("client_secret").is_none(), "{address}");
        let state = value("state").unwrap_or_default();
        assert_eq!(state, state_of(start), "the state is in the address, where clients expect it");
        assert!(state.len() == 43 && state.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{address}");
        if provider.starts_with("sim-") {
            assert_eq!(value("scope"), Some(SCOPES), "{address}");
        }
        if provider == "sim-pkce" {
            assert_eq!(value("code_challenge").map(str::len), Some(43), "{address}");
            assert_eq!(value("code_challenge_method"), Some("S256"), "{address}");
        } else if provider.starts_with("sim-") {
            assert_eq!(value("code_challenge"), None, "{address}");
        }
    }
}

#[contract_test]
async fn a_person_connects_any_provider(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in PROVIDERS {
        let visit = entity.visit(provider, Choice::ALLOW).await;
        assert_eq!(entity.connection(provider).await, None, "{provider}: nothing is connected before the callback");
        let before = now();
        let answer = visit.arrive("connected").await;
        let panel = format!("{}/panel/provider/{provider}?outcome=connected&", suite.api.base_url());
        assert!(answer.header("location").starts_with(&panel), "{}", answer.exchange);
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert!(answer.body.is_empty(), "{}", answer.exchange);
        assert_eq!(suite.providers().exchanges(visit.code()), [RequestOutcome::Done], "{provider}");

        let connection = entity.connection(provider).await.expect("it is connected");
        assert_eq!((&connection["status"], &connection["account"]), (&json!("connected"), &json!(visit.account)));
        assert!((before..=now()).contains(&time(&connection["connectedDate"]).as_second()), "{connection:#}");
        assert_eq!(connection["lastUpdate"], connection["connectedDate"]);
        if provider.starts_with("sim-") {
            assert_eq!(connection["scopes"], json!(SCOPES.split(' ').collect::<Vec<_>>()));
        }
        // The callback works only once.
        visit.callback().refused(400, "invalid-state").await;
        assert_eq!(suite.providers().exchanges(visit.code()).len(), 1, "{provider}");
    }
    assert_eq!(entity.connections().await.len(), PROVIDERS.len());
}

#[contract_test]
async fn every_request_for_a_connection_has_its_own_state(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.replacing_url("sim-pkce").await;
    let second = entity.replacing_url("sim-pkce").await;
    assert_ne!(state_of(&first), state_of(&second));
    let mut challenges = Vec::new();
    for address in [&first, &second] {
        let address = continue_to_provider(&suite.api, address, None).await.address;
        challenges.extend(query(&address).into_iter().find(|(name, _)| name == "code_challenge"));
    }
    assert!(challenges.len() == 2 && challenges[0] != challenges[1], "{challenges:?}");
    // Both URLs work, in any order; the later connection replaces the earlier one, as both requests allow.
    for (address, account) in [(second, "acct-second"), (first, "acct-first")] {
        entity.visit_from(&address, account, Choice::ALLOW).await.arrive("connected").await;
        assert_eq!(entity.connection("sim-pkce").await.expect("connected")["account"], account);
    }
}

#[contract_test]
async fn a_connection_is_asked_for_without_a_body_or_with_an_empty_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let path = "/payment/provider/sim-basic/connection";
    entity.post(path).expect(201).await;
    entity.post(path).json(&json!({})).expect(201).await;
    entity.post(path).json(&json!({ "redirect_uri": "https://evil.example" })).refused(400, "invalid-request").await;
    entity.post(path).json(&json!([])).refused(400, "invalid-request").await;
    entity.post(path).body("text/plain", "{}").refused(415, "unsupported-media-type").await;
}

#[contract_test]
async fn an_unknown_provider_is_not_found(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for name in ["unknown", "sim", "SQUARE", "a..b", "a%2Fb", "sim-basic%00", &"x".repeat(200)] {
        let call = entity.post(&format!("/payment/provider/{name}/connection"));
        call.refused(404, "provider-not-found").await;
    }
    for name in ["unknown", "sim-basic"] {
        entity.disconnect(name).refused(404, "connection-not-found").await;
    }
}

#[contract_test]
async fn connections_are_listed_by_age_and_never_show_a_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    assert!(entity.connections().await.is_empty());
    for provider in ["stripe", "sim-jwt", "square", "sim-basic"] {
        entity.link(provider, Choice::ALLOW).await;
    }
    let connections = entity.connections().await;
    let providers: Vec<&Value> = connections.iter().map(|connection| &connection["provider"]).collect();
    assert_eq!(providers, ["sim-basic", "square", "sim-jwt", "stripe"]);
    let members = [
        "account",
        "brokenReason",
        "connectedDate",
        "expiresDate",
        "id",
        "lastErrorCode",
        "lastErrorDetail",
        "lastUpdate",
        "provider",
        "scopes",
        "status",
    ];
    for connection in &connections {
        let mut given: Vec<&str> =
            connection.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        given.sort_unstable();
        assert_eq!(given, members);
    }
}

#[contract_test]
async fn a_list_of_connections_has_pages(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in ["sim-basic", "sim-body", "sim-json"] {
        entity.link(provider, Choice::ALLOW).await;
    }
    let connections = entity.connections().await;
    let first = entity.get("/payment/connection/list?limit=2").expect(200).await.json();
    assert_eq!(first["items"], json!(connections[..2]));
    let cursor = first["nextCursor"].as_str().expect("there is another page").to_owned();
    // The connection that the cursor names is gone, but the next page still begins after it.
    entity.disconnect("sim-body").expect(200).await;
    let last = entity.get(&format!("/payment/connection/list?limit=2&cursor={cursor}")).expect(200).await.json();
    assert_eq!(last["items"], json!(connections[2..]));
    assert!(last.get("nextCursor").is_none(), "{last:#}");
    for bad in ["limit=0", "limit=101", "provider=stripe"] {
        entity.get(&format!("/payment/connection/list?{bad}")).refused(400, "invalid-request").await;
    }
    for bad in ["cursor=x", "cursor=sim-basic", "cursor="] {
        entity.get(&format!("/payment/connection/list?{bad}")).refused(400, "invalid-cursor").await;
    }
}

#[contract_test]
async fn a_connection_is_shown_by_the_identifier_of_its_request(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let asked = entity.post("/payment/provider/sim-basic/connection").expect(201).await.json();
    let id = asked["connectionIdentifier"].as_str().expect("openapi.yaml says so").to_owned();
    let show = async |entity: &Entity| entity.get(&format!("/payment/connection/{id}")).answered().await;
    assert_eq!(show(&entity).await.status, 404, "nothing is connected before the callback");
    let start = asked["authorizationUrl"].as_str().expect("openapi.yaml says so");
    entity.visit_from(start, &new_account(), Choice::ALLOW).await.arrive("connected").await;
    let shown = entity.get(&format!("/payment/connection/{id}")).expect(200).await.json();
    assert_eq!((&shown["id"], &shown["provider"]), (&json!(id), &json!("sim-basic")), "{shown:#}");
    assert_eq!(entity.connections().await, [shown]);
    assert_eq!(show(&suite.entity().await).await.status, 404, "another entity has no such connection");
    // The connection that replaces it has another identifier.
    entity.replace("sim-basic", Choice::ALLOW).await;
    for id in [id.as_str(), "con_0", "sim-basic"] {
        entity.get(&format!("/payment/connection/{id}")).refused(404, "connection-not-found").await;
    }
}

#[contract_test]
async fn the_providers_that_are_set_up_are_listed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let page = entity.get("/payment/provider/list").expect(200).await.json();
    let items = page["items"].as_array().expect("openapi.yaml says so");
    let names: Vec<_> = items.iter().map(|provider| provider["name"].as_str().expect("a text")).collect();
    assert!(names.is_sorted() && PROVIDERS.iter().all(|provider| names.contains(provider)), "{names:?}");
    for (name, label) in [("square", "Square"), ("sim-basic", "sim-basic")] {
        assert!(items.contains(&json!({ "name": name, "label": label })), "{page:#}");
    }
    assert!(page.get("nextCursor").is_none(), "{page:#}");
    // Read page by page; another test removes `adyen`, and processes may have read the list before or after that.
    let mut listed = Vec::new();
    let mut next = Some(String::new());
    while let Some(cursor) = next {
        let page = entity.get(&format!("/payment/provider/list?limit=3{cursor}")).expect(200).await.json();
        listed.extend(page["items"].as_array().expect("openapi.yaml says so").clone());
        next = page["nextCursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
    }
    let others = |items: &[Value]| items.iter().filter(|item| item["name"] != "adyen").cloned().collect::<Vec<_>>();
    assert_eq!(others(&listed), others(items));
}

#[contract_test]
async fn a_provider_without_an_expiry_makes_a_connection_without_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (provider, seconds) in [("stripe", None), ("square", Some(30 * 24 * 3_600)), ("sim-basic", Some(3_600))] {
        let before = now();
        entity.link(provider, Choice::ALLOW).await;
        let after = now();
        let connection = entity.connection(provider).await.expect("connected");
        let expires = (!connection["expiresDate"].is_null()).then(|| time(&connection["expiresDate"]).as_second());
        let as_told = match (expires, seconds) {
            (None, None) => true,
            (Some(end), Some(life)) => (before..=after).contains(&(end - life)),
            _ => false,
        };
        assert!(as_told, "{provider}: {connection:#}");
    }
}

#[contract_test]
async fn a_person_who_declines_connects_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in ["sim-pkce", "square"] {
        let visit = entity.visit(provider, Choice::DENY).await;
        assert_eq!(visit.back.parameter("error"), "access_denied");
        let answer = visit.arrive("denied").await;
        assert_eq!((answer.header("cache-control"), answer.header("referrer-policy")), ("no-store", "no-referrer"));
        visit.callback().refused(400, "invalid-state").await;
    }
    assert!(entity.connections().await.is_empty());
}

#[contract_test]
async fn disconnecting_gives_access_back_and_removes_the_connection(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in PROVIDERS {
        let visit = entity.link(provider, Choice::ALLOW).await;
        let connection = entity.connection(provider).await.expect("connected");
        let answer = entity.disconnect(provider).expect(200).await.json();
        assert_eq!(answer["id"], connection["id"], "{provider}: {answer:#}");
        assert_eq!(answer["providerAccess"], "revoked", "{provider}: {answer:#}");
        assert!(suite.providers().has_ended(provider, &visit.account), "{provider} still gives access: {answer:#}");
        let revocations = suite.providers().of_account(Kind::Revocation, &visit.account);
        assert_eq!(
            revocations.iter().filter(|outcome| **outcome == RequestOutcome::Done).count(),
            1,
            "{revocations:?}"
        );
        assert_eq!(entity.connection(provider).await, None);
        entity.disconnect(provider).refused(404, "connection-not-found").await;
    }
}

#[contract_test]
async fn disconnecting_removes_a_connection_whose_access_had_ended(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in ["sim-basic", "square", "stripe"] {
        let visit = entity.link(provider, Choice::ALLOW).await;
        suite.providers().end(provider, &visit.account);
        let answer = entity.disconnect(provider).expect(200).await.json();
        // Most providers confirm the revocation of a token that is already invalid (RFC 7009 section 2.2).
        let has_ended = ["revoked", "already-revoked"].iter().any(|access| answer["providerAccess"] == *access);
        assert!(has_ended, "{provider}: {answer:#}");
        assert_eq!(entity.connection(provider).await, None);
    }
}

#[contract_test]
async fn a_provider_that_fails_keeps_its_connection(suite: Arc<Suite>) {
    // Test these concurrently, since the service waits ten seconds for a hanging provider.
    let fates = ["revoke-500", "revoke-503", "revoke-429", "revoke-reset", "revoke-hang", "revoke-invalid_client"];
    join_all(fates.map(async |fate| {
        let entity = suite.entity().await;
        let visit = entity.link("sim-basic", Choice::leading_to(fate)).await;
        let before = entity.connection("sim-basic").await.expect("connected");
        let answer = entity.disconnect("sim-basic").expect(503).await;
        assert_eq!(answer.json()["kind"], "provider-revocation-failed", "{fate}: {}", answer.exchange);
        assert_eq!(answer.header("retry-after"), "30", "{fate}: {}", answer.exchange);
        let after = entity.connection("sim-basic").await.expect("kept");
        assert_eq!((&after["id"], &after["status"]), (&before["id"], &before["status"]), "{fate}");
        assert_eq!(suite.providers().of_account(Kind::Revocation, &visit.account)[0], RequestOutcome::Failed, "{fate}");
    }))
    .await;
}

#[contract_test]
async fn a_broken_connection_can_be_removed_despite_the_provider(suite: Arc<Suite>) {
    for fate in ["revoke-500", "revoke-reset", "revoke-invalid_client"] {
        let entity = suite.entity().await;
        entity.link("sim-basic", Choice::leading_to(fate)).await;
        let pk = format!("ENT#{}", entity.id);
        let sk = "PAY#sim-basic";
        assert!(suite.table().set(&pk, sk, "status", "broken").await);
        let answer = entity.disconnect("sim-basic").expect(200).await.json();
        assert_eq!(answer["providerAccess"], "unknown", "{fate}: {answer:#}");
        let message = answer["message"].as_str().expect("openapi.yaml says so");
        assert!(message.contains("check your account settings"), "{fate}: {message}");
        assert_eq!(entity.connection("sim-basic").await, None);
    }
}

#[contract_test]
async fn a_provider_whose_secret_was_deleted_is_unknown(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    // When an operator deletes the secret, it can be restored for some days, but not read.
    let request = json!({ "SecretId": secret(&suite.api.env, "provider-adyen"), "RecoveryWindowInDays": 7 });
    secrets_manager(&suite.api.env, "DeleteSecret", &request).await.expect("it is there");
    entity.post("/payment/provider/adyen/connection").refused(404, "provider-not-found").await;
    entity.disconnect("adyen").refused(404, "connection-not-found").await;
}

#[contract_test]
async fn each_entity_has_its_own_connections(suite: Arc<Suite>) {
    let mine = suite.entity().await;
    let theirs = suite.entity().await;
    mine.link("sim-basic", Choice::ALLOW).await;
    assert!(theirs.connections().await.is_empty());
    theirs.disconnect("sim-basic").refused(404, "connection-not-found").await;
    let alone = mine.get("/payment/provider/sim-basic/connection").refused(405, "method-not-allowed").await;
    let list = mine.path("/payment/provider/list");
    assert!(alone["detail"].as_str().is_some_and(|detail| detail.contains(&format!("`GET {list}`"))), "{alone:#}");
    assert_eq!(mine.connections().await.len(), 1);
}

#[contract_test]
async fn events_of_connections_and_their_end_reach_webhooks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let types = json!(["payment.connection.established", "payment.connection.removed"]);
    entity.hook_with(json!({ "name": "payments", "eventUrl": url, "eventList": types })).await;
    let visit = entity.link("sim-basic", Choice::ALLOW).await;
    let connection = entity.connection("sim-basic").await.expect("connected");
    receiver.until("/", 1).await;
    entity.disconnect("sim-basic").expect(200).await;
    let received = receiver.until("/", 2).await;
    let expected =
        json!({ "connectionIdentifier": connection["id"], "provider": "sim-basic", "account": visit.account });
    for (request, kind) in received.iter().zip(["payment.connection.established", "payment.connection.removed"]) {
        let event = request.json();
        assert_eq!((&event["type"], &event["data"]), (&json!(kind), &expected), "{event:#}");
        assert_eq!(event["managingEntityIdentifier"], entity.id);
    }
}

#[contract_test]
async fn the_outcome_page_believes_no_address_and_runs_nothing(suite: Arc<Suite>) {
    let mut pages = Vec::new();
    for outcome in [
        "?outcome=connected",
        "?outcome=denied",
        "?outcome=failed",
        "?outcome=other-account",
        "",
        "?outcome=<script>alert(1)</script>",
    ] {
        let answer = suite.api.get(format!("/panel/provider/sim-basic{outcome}")).expect(200).await;
        assert!(answer.header("content-type").starts_with("text/html"), "{}", answer.exchange);
        let page = answer.text();
        assert!(!page.contains("<script") && page.contains("lang=\"en\""), "{page}");
        pages.push(page);
    }
    pages.dedup();
    assert_eq!(pages.len(), 1, "an unproven outcome is not shown");
    for name in ["UPPER", "a_b", "%3Cscript%3E", &"x".repeat(100)] {
        suite.api.get(format!("/panel/provider/{name}?outcome=connected")).refused(404, "not-found").await;
    }
}

#[contract_test]
async fn a_request_without_the_scope_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.link("sim-basic", Choice::ALLOW).await;
    let path = |rest: &str| entity.path(&format!("/payment/provider/{rest}"));
    for (method, path, scope) in [
        ("POST", path("sim-basic/connection"), "payment.read payment.remove"),
        ("GET", path("list"), "payment.write payment.remove"),
        ("GET", entity.path("/payment/connection/list"), "payment.write payment.remove"),
        ("DELETE", path("sim-basic/connection"), "payment.read payment.write"),
    ] {
        let token = suite.api.token(Application::Platform, scope).await;
        suite.api.call(method, path).bearer(&token).refused(403, "insufficient-scope").await;
    }
    assert!(entity.connection("sim-basic").await.is_some(), "the connection is still there");
}
