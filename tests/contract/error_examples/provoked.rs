//! Errors that require a prepared state, by subject.

use serde_json::{Value, json};

use super::Checked;
use crate::{
    erasing::erase,
    harness::{Application, Behaviour, Call, Choice, Entity, Gate, Receiver, Suite, stored},
};

/// The scopes of an application that may only manage its entity.
const SOME: [&str; 8] = [
    "account.read",
    "account.write",
    "account.remove",
    "integrations.read",
    "integrations.write",
    "integrations.remove",
    "mcp.read",
    "mcp.write",
];

/// A token with this scope (with all scopes, if empty) for a new application, and the application.
async fn limited(suite: &Suite, entity: &Entity, scope: &str) -> (String, Value) {
    let made = application(entity, json!({ "scopes": SOME })).await;
    (token_of(suite, &made, scope).await, made)
}

async fn token_of(suite: &Suite, application: &Value, scope: &str) -> String {
    let text = |name: &str| application[name].as_str().expect("openapi.yaml says so").to_owned();
    let (id, secret) = (text("clientId"), text("clientSecret"));
    let mut form = vec![("grant_type", "client_credentials"), ("client_id", &id), ("client_secret", &secret)];
    if !scope.is_empty() {
        form.push(("scope", scope));
    }
    let answer = suite.api.post("/oauth2/token").form(&form).expect(200).await.json();
    answer["access_token"].as_str().expect("openapi.yaml says so").to_owned()
}

async fn application(entity: &Entity, mut body: Value) -> Value {
    body["name"] = "Examples".into();
    entity.post("/application").json(&body).expect(201).await.json()
}

fn key(kid: &str) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": kid })
}

pub(super) async fn of_applications(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (token, own) = limited(suite, &entity, "").await;
    let as_limited = |method: &str, rest: &str| suite.api.call(method, entity.path(rest)).bearer(&token);
    for (name, larger) in [
        ("grantsMoreScopes", json!({ "scopes": ["booking.write"] })),
        ("grantsMoreEntities", json!({ "scopes": ["account.read"], "managingEntities": [entity.id, "another-hotel"] })),
        ("grantsPublishing", json!({ "scopes": ["account.read"], "mayPublish": true })),
    ] {
        let mut body = larger.clone();
        body["name"] = "Larger".into();
        body["publicKeys"] = json!([key("laptop")]);
        let made = application(&entity, body.clone()).await;
        let at = format!("/application/{}", made["clientId"].as_str().expect("openapi.yaml says so"));
        let secret = made["secrets"][0]["id"].as_str().expect("openapi.yaml says so");
        for (operation, call) in [
            ("createApplication", as_limited("POST", "/application").json(&body)),
            ("changeApplication", as_limited("PATCH", &at).json(&json!({ "name": "Other" }))),
            ("removeApplication", as_limited("DELETE", &at)),
            ("addApplicationSecret", as_limited("POST", &format!("{at}/secret")).json(&json!({}))),
            ("removeApplicationSecret", as_limited("DELETE", &format!("{at}/secret/{secret}"))),
            ("addApplicationKey", as_limited("POST", &format!("{at}/key")).json(&json!({ "publicKey": key("b") }))),
            ("removeApplicationKey", as_limited("DELETE", &format!("{at}/key/laptop"))),
        ] {
            checked.compare(operation, name, &call.answered().await);
        }
    }

    let made = application(&entity, json!({ "scopes": ["account.read"], "publicKeys": [key("laptop")] })).await;
    let at = format!("/application/{}", made["clientId"].as_str().expect("openapi.yaml says so"));
    let add_key = |kid: &str| entity.post(&format!("{at}/key")).json(&json!({ "publicKey": key(kid) }));
    let late = entity.call("PATCH", &at).json(&json!({ "name": "Late", "version": 99 })).answered().await;
    checked.compare("changeApplication", "versionConflict", &late);
    let unknown = entity.call("DELETE", &format!("{at}/secret/sec_01m74zy5evf6q0n2h4ck9w8b1x")).answered().await;
    checked.compare("removeApplicationSecret", "credentialNotFound", &unknown);
    let unknown = entity.call("DELETE", &format!("{at}/key/other")).answered().await;
    checked.compare("removeApplicationKey", "credentialNotFound", &unknown);
    checked.compare("addApplicationKey", "keyExists", &add_key("laptop").answered().await);
    for kid in ["b", "c", "d", "e"] {
        add_key(kid).expect(201).await;
    }
    checked.compare("addApplicationKey", "keyLimit", &add_key("f").answered().await);
    entity.post(&format!("{at}/secret")).json(&json!({})).expect(200).await;
    let third = entity.post(&format!("{at}/secret")).json(&json!({})).answered().await;
    checked.compare("addApplicationSecret", "clientSecretLimit", &third);

    let at = format!("/application/{}", own["clientId"].as_str().expect("openapi.yaml says so"));
    checked.compare("removeApplication", "confirmationRequired", &as_limited("DELETE", &at).answered().await);
    let narrowed = as_limited("PATCH", &at).json(&json!({ "scopes": ["account.read"] })).answered().await;
    checked.compare("changeApplication", "confirmationRequired", &narrowed);
    let secret = own["secrets"][0]["id"].as_str().expect("openapi.yaml says so");
    let last = as_limited("DELETE", &format!("{at}/secret/{secret}")).answered().await;
    checked.compare("removeApplicationSecret", "confirmationRequired", &last);
}

pub(super) async fn of_webhooks(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (token, _) = limited(suite, &entity, "").await;
    let wrong = json!({ "name": "n", "eventUrl": "hooks.example.com", "eventList": ["booking.create"] });
    let answer = entity.post("/webhook").json(&wrong).answered().await;
    checked.compare("createWebhook", "invalidRequest", &answer);

    let unknown = entity.get("/webhook/event/type/booking.create").answered().await;
    checked.compare("showEventType", "eventTypeNotFound", &unknown);

    let wrong = json!({ "eventFilter": { "propertyIdentifier": "PRP-118", "nights": [{ "number": [">", 0] }] } });
    let answer = entity.post("/webhook/event/filter/check").json(&wrong).answered().await;
    checked.compare("checkEventFilter", "invalidRequest", &answer);

    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/examples", [Behaviour::status(204)])).await;
    let at = format!("/webhook/{}", hook.id);
    let no_feed = entity.post(&format!("{at}/feed/read")).answered().await;
    checked.compare("readFeed", "webhookNotPulled", &no_feed);
    let feed = entity.hook_with(json!({ "name": "feed", "delivery": "pull", "eventList": ["booking.created"] })).await;
    let pulled = entity.post(&format!("/webhook/{}/pause", feed.id)).answered().await;
    checked.compare("pauseWebhook", "webhookPulled", &pulled);
    entity.call("DELETE", &format!("/webhook/{}", feed.id)).expect(200).await;
    let late = entity.call("PATCH", &at).json(&json!({ "name": "Late", "version": 99 })).answered().await;
    checked.compare("changeWebhook", "versionConflict", &late);
    entity.post(&format!("{at}/secret")).json(&json!({})).expect(200).await;
    let early = entity.post(&format!("{at}/secret")).json(&json!({})).answered().await;
    checked.compare("rotateWebhookSecret", "previousSecretLive", &early);

    let event = |data: Value| json!({ "type": "booking.created", "data": data });
    let publish = |data: Value| entity.post("/webhook/event").json(&event(data));
    let call = suite.api.post(entity.path("/webhook/event")).bearer(&token).json(&event(json!({})));
    checked.compare("publishEvent", "mayNotPublish", &call.answered().await);
    let large = publish(json!({ "text": "x".repeat(300_000) })).answered().await;
    checked.compare("publishEvent", "payloadTooLarge", &large);
    let large = entity.test(&hook.id).json(&event(json!({ "text": "x".repeat(300_000) }))).answered().await;
    checked.compare("testWebhook", "payloadTooLarge", &large);
    publish(json!({})).header("idempotency-key", "used").expect(202).await;
    let other = publish(json!({ "another": true })).header("idempotency-key", "used").answered().await;
    checked.compare("publishEvent", "idempotencyConflict", &other);

    let delivery = entity.publish(json!({ "for": "a resend" })).await;
    entity.until_status(&delivery, &["delivered"]).await;
    let resend = || entity.post(&format!("/webhook/delivery/{delivery}/resend"));
    let late = entity.post(&format!("/webhook/delivery/{delivery}/cancel")).answered().await;
    checked.compare("cancelDelivery", "deliveryFinal", &late);
    let answers = Gate::closed();
    receiver.on("/examples", [Behaviour::status(204).behind(&answers)]);
    let before = receiver.received("/examples").len();
    let slow = entity.publish(json!({ "for": "a cancellation" })).await;
    receiver.until("/examples", before + 1).await;
    let early = entity.post(&format!("/webhook/delivery/{slow}/cancel")).answered().await;
    checked.compare("cancelDelivery", "attemptUnderWay", &early);
    answers.open();
    receiver.on("/examples", [Behaviour::status(204)]);
    let erased = entity.publish(json!({ "for": "an erasure" })).await;
    entity.until_status(&erased, &["delivered"]).await;
    erase(&entity, &stored::event_of(&erased)).await;
    let again = entity.post(&format!("/webhook/delivery/{erased}/resend")).answered().await;
    checked.compare("resendDelivery", "eventErased", &again);
    let replay = |from: &str| entity.post(&format!("{at}/replay")).json(&json!({ "createdFrom": from }));
    replay("2026-01-01T00:00:00.000Z").expect(202).await;
    checked.compare("replayEvents", "replayUnderWay", &replay("2026-01-02T00:00:00.000Z").answered().await);
    entity.call("PATCH", &at).json(&json!({ "enabled": false })).expect(200).await;
    let range = json!({ "createdFrom": "2026-01-01T00:00:00.000Z" });
    for (operation, call) in [
        ("testWebhook", entity.post(&format!("{at}/test"))),
        ("pauseWebhook", entity.post(&format!("{at}/pause"))),
        ("resumeWebhook", entity.post(&format!("{at}/resume"))),
        ("recoverDeliveries", entity.post(&format!("{at}/recover")).json(&range)),
        ("replayEvents", entity.post(&format!("{at}/replay")).json(&range)),
        ("resendDelivery", resend()),
    ] {
        checked.compare(operation, "webhookDisabled", &call.answered().await);
    }
    entity.call("DELETE", &at).expect(200).await;
    checked.compare("resendDelivery", "webhookRemoved", &resend().answered().await);
}

pub(super) async fn of_payments(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (token, _) = limited(suite, &entity, "").await;
    let unknown = entity.post("/payment/provider/strip/connection").answered().await;
    checked.compare("connectProvider", "providerNotFound", &unknown);
    entity.link("sim-basic", Choice::ALLOW).await;
    let again = entity.post("/payment/provider/sim-basic/connection").answered().await;
    checked.compare("connectProvider", "connectionExists", &again);
    entity.link("sim-body", Choice::leading_to("revoke-500")).await;
    let kept = entity.disconnect("sim-body").answered().await;
    checked.compare("disconnectProvider", "providerRevocationFailed", &kept);

    let state = "A".repeat(43);
    let at = |rest: &str| suite.api.get(format!("/api/public/stripe/oauth2/{rest}state={state}"));
    checked.compare("providerStart", "invalidState", &at("start?").answered().await);
    checked.compare("providerCallback", "invalidState", &at("callback?code=c&").answered().await);
    checked.compare("providerCallback", "missingCode", &at("callback?").answered().await);
    let refused = at("callback?code=c&").bearer(&token).answered().await;
    checked.compare("providerCallback", "insufficientScope", &refused);
}

pub(super) async fn of_agents_and_tasks(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (token, _) = limited(suite, &entity, "mcp.read").await;
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "create_webhook", "arguments": {} },
    });
    let call = || suite.api.post("/mcp").bearer(&token).json(&message);
    checked.compare("callAgentServer", "insufficientScope", &call().answered().await);
    let wrong = call().header("x-mcp-readonly", "maybe").answered().await;
    checked.compare("callAgentServer", "headerThatSelectsTools", &wrong);

    let platform = suite.api.token(Application::Platform, "").await;
    let update = |body: Value| suite.api.post("/task/geo-ip-update").bearer(&platform).json(&body);
    let missing = update(json!({ "environment": "none" })).answered().await;
    checked.compare("upgradeGeoIPs", "invalidRequest", &missing);
    let wrong = update(json!({ "key": "wrong", "environment": "none" })).answered().await;
    checked.compare("upgradeGeoIPs", "taskRefused", &wrong);
    let canary = suite.api.post("/task/canary").header("webhook-id", "evt_1").header("webhook-timestamp", "1");
    let canary = canary.header("webhook-signature", "v1,x").json(&json!({})).answered().await;
    checked.compare("receiveCanary", "taskRefused", &canary);
}

pub(super) async fn of_the_panel(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (token, _) = limited(suite, &entity, "").await;
    let session = |method: &str| suite.api.call(method, "/panel/session");
    let ended = session("POST").header("cookie", "waypost-panel=x").answered().await;
    checked.compare("renewPanelSession", "noPanelSession", &ended);
    for (operation, method) in [("renewPanelSession", "POST"), ("endPanelSession", "DELETE")] {
        let foreign = session(method).header("origin", "https://elsewhere.example").answered().await;
        checked.compare(operation, "foreignOrigin", &foreign);
    }
    let link = entity.post("/panel/link").json(&json!({})).expect(201).await.json();
    let address = link["url"].as_str().expect("openapi.yaml says so");
    let (_, code) = address.split_once("#code=").expect("openapi.yaml says so");
    let opened = session("POST").json(&json!({ "code": code })).expect(200).await.json();
    let again = session("POST").json(&json!({ "code": code })).answered().await;
    checked.compare("renewPanelSession", "used", &again);
    let unknown = session("DELETE").json(&json!({ "code": code })).answered().await;
    checked.compare("endPanelSession", "unknownMember", &unknown);

    let ask = |token: &str, body: Value| suite.api.post(entity.path("/panel/link")).bearer(token).json(&body);
    let of_session = opened["accessToken"].as_str().expect("openapi.yaml says so");
    checked.compare("createPanelLink", "ofASession", &ask(of_session, json!({})).answered().await);
    let more = ask(&token, json!({ "scopes": ["integrations.read", "booking.write"] })).answered().await;
    checked.compare("createPanelLink", "givesMoreScopes", &more);
    let publishing = ask(&token, json!({ "mayPublish": true })).answered().await;
    checked.compare("createPanelLink", "mayNotPublish", &publishing);
    let renew = |token: &str, link: &Value| {
        let id = link["id"].as_str().expect("openapi.yaml says so");
        suite.api.post(entity.path(&format!("/panel/link/{id}/renew"))).bearer(token).json(&json!({}))
    };
    checked.compare("renewPanelLink", "ofASession", &renew(of_session, &link).answered().await);
    let wide = json!({ "scopes": ["integrations.read", "booking.write"] });
    let wide = entity.post("/panel/link").json(&wide).expect(201).await.json();
    checked.compare("renewPanelLink", "givesMoreScopes", &renew(&token, &wide).answered().await);
    let publishing = json!({ "scopes": ["integrations.read"], "mayPublish": true });
    let publishing = entity.post("/panel/link").json(&publishing).expect(201).await.json();
    checked.compare("renewPanelLink", "mayNotPublish", &renew(&token, &publishing).answered().await);
    let unopened = ask(&token, json!({})).expect(201).await.json();
    checked.compare("renewPanelLink", "panelLinkUnopened", &renew(&token, &unopened).answered().await);
    let repeated = |body: Value| entity.post("/panel/link").header("idempotency-key", "used").json(&body);
    repeated(json!({})).expect(201).await;
    let other = repeated(json!({ "name": "Another" })).answered().await;
    checked.compare("createPanelLink", "idempotencyConflict", &other);
}

pub(super) async fn of_tokens(suite: &Suite, checked: &mut Checked) {
    let entity = suite.entity().await;
    let (_, own) = limited(suite, &entity, "").await;
    let text = |name: &str| own[name].as_str().expect("openapi.yaml says so").to_owned();
    let (id, secret) = (text("clientId"), text("clientSecret"));
    let ask = |path: &str, secret: &str, rest: &[(&str, &str)]| -> Call {
        let credentials = [("client_id", id.as_str()), ("client_secret", secret)];
        suite.api.post(path).form(&[&credentials, rest].concat())
    };
    let foreign = suite.api.token(Application::Demo, "").await;
    for (operation, path, rest) in [
        ("token", "/oauth2/token", ("grant_type", "client_credentials")),
        ("revokeToken", "/oauth2/revoke", ("token", "x")),
        ("introspectToken", "/oauth2/introspect", ("token", "x")),
    ] {
        checked.compare(operation, "invalidClient", &ask(path, "wrong", &[rest]).answered().await);
        let large = suite.api.post(path).form(&[("token", &"x".repeat(6_300_000))]).answered().await;
        checked.compare(operation, "payloadTooLarge", &large);
    }
    let large = suite.api.post("/task/canary").body("application/json", "x".repeat(6_300_000)).answered().await;
    checked.compare("receiveCanary", "payloadTooLarge", &large);
    let scope = [("grant_type", "client_credentials"), ("scope", "bookings.read")];
    checked.compare("token", "invalidScope", &ask("/oauth2/token", &secret, &scope).answered().await);
    let revoked = ask("/oauth2/revoke", &secret, &[("token", &foreign)]).answered().await;
    checked.compare("revokeToken", "foreignToken", &revoked);
    let missing = ask("/oauth2/introspect", &secret, &[]).answered().await;
    checked.compare("introspectToken", "noToken", &missing);
    checked.compare("authorize", "refused", &suite.api.get("/oauth2/authorize?response_type=code").answered().await);
}
