//! The right to publish: which applications have it, who can grant it, and that withdrawing it takes effect.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    application_credentials::introspected,
    applications::{KEY, Made, claims, made_with, of, shown, text, token},
    harness::{Api, Behaviour, Call, Entity, LONG, Receiver, Suite, until},
    panel_sessions,
};

/// A subscriber's or publisher's application, with or without `mayPublish`.
async fn integration(entity: &Entity, may_publish: Option<bool>) -> Made {
    let mut body = json!({ "name": "Integration", "scopes": ["integrations.read", "integrations.write"] });
    if let Some(may_publish) = may_publish {
        body["mayPublish"] = may_publish.into();
    }
    made_with(entity, body).await
}

fn publish(api: &Api, entity: &Entity, token: &str) -> Call {
    let event = json!({ "type": "payment.received", "data": {} });
    api.post(entity.path("/webhook/event")).bearer(token).json(&event)
}

fn forged(suite: &Suite, entity: &Entity, scope: &str, may_publish: bool) -> String {
    let forge = suite.forge();
    let mut claims = forge.claims();
    claims["scope"] = scope.into();
    claims["managing_entities"] = json!([entity.id]);
    claims["may_publish"] = may_publish.into();
    forge.token(&forge.header(), &claims)
}

/// Otherwise, a subscriber could claim to others that a payment was received.
#[contract_test]
async fn an_application_publishes_only_if_that_was_asked_for(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    for (asked, may_publish) in [(None, false), (Some(false), false), (Some(true), true)] {
        let application = integration(&entity, asked).await;
        assert_eq!(shown(&entity, &application).await["mayPublish"], may_publish);
        let token = token(api, &application.id, &application.secret).await;
        assert_eq!(claims(&token)["may_publish"], may_publish);
        assert_eq!(introspected(api, &token).await["may_publish"], may_publish);
        if may_publish {
            publish(api, &entity, &token).expect(202).await;
        } else {
            let problem = publish(api, &entity, &token).refused(403, "may-not-publish").await;
            assert!(text(&problem, "detail").contains("mayPublish"), "{problem:#}");
        }
        // The scope's other rights are unchanged, including test events.
        let tested = api.post(entity.path(&format!("/webhook/{}/test", hook.id))).bearer(&token).json(&json!({}));
        tested.expect(202).await;
    }
    // There is one event from the application with the right, and three test events.
    let kinds: Vec<Value> = receiver.until("/", 4).await.iter().map(|sent| sent.json()["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "payment.received").count(), 1, "{kinds:?}");
    for (wrong, body) in [("null", json!(null)), ("a text", json!("true"))] {
        let body = json!({ "name": "n", "scopes": ["integrations.write"], "mayPublish": body });
        let problem = entity.post("/application").json(&body).refused(400, "invalid-request").await;
        assert_eq!(problem["properties"]["violations"][0]["pointer"], "/mayPublish", "{wrong}");
    }
}

#[contract_test]
async fn a_caller_gives_no_right_to_publish_that_its_token_lacks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let scopes = "account.write account.remove integrations.read integrations.write";
    let [without, with] = [false, true].map(|may| forged(&suite, &entity, scopes, may));
    let body = |may_publish: bool| json!({ "name": "n", "scopes": ["account.write"], "mayPublish": may_publish });
    let ask = |token: &str, may: bool| api.post(entity.path("/application")).bearer(token).json(&body(may));
    ask(&without, true).refused(403, "may-not-publish").await;
    ask(&without, false).expect(201).await;
    ask(&with, true).expect(201).await;

    // With its own secret or key for a publishing application, a caller could publish; removing one requires the same
    // rights.
    let publisher = integration(&entity, Some(true)).await;
    let before = shown(&entity, &publisher).await;
    let secret = text(&before["secrets"][0], "id");
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "key" } });
    let calls = [
        ("POST", "/secret".to_owned(), Some(json!({})), 200),
        ("POST", "/key".to_owned(), Some(key), 201),
        ("DELETE", "/key/key".to_owned(), None, 200),
        ("DELETE", format!("/secret/{secret}"), None, 200),
        ("DELETE", String::new(), None, 200),
    ];
    let call = |token: &str, (method, path, body, _): &(&str, String, Option<Value>, u16)| {
        let call = api.call(method, entity.path(&of(&publisher, path))).bearer(token);
        body.iter().fold(call, |call, body| call.json(body))
    };
    for refused in calls.iter().filter(|(_, path, ..)| path != "/key/key") {
        call(&without, refused).refused(403, "may-not-publish").await;
    }
    assert_eq!(shown(&entity, &publisher).await, before);
    for done in &calls {
        call(&with, done).expect(done.3).await;
    }
}

/// Regression test: a link created with a publishing token always had the right to publish.
#[contract_test]
async fn a_panel_link_may_publish_only_if_its_maker_says_so_and_may(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let [publisher, receiver] = [integration(&entity, Some(true)).await, integration(&entity, None).await];
    let path = entity.path("/panel/link");
    let publisher = token(api, &publisher.id, &publisher.secret).await;
    let receiver = token(api, &receiver.id, &receiver.secret).await;
    for (asked, may_publish) in [(json!({}), false), (json!({ "mayPublish": true }), true)] {
        let link = api.post(path.clone()).bearer(&publisher).json(&asked).expect(201).await.json();
        assert_eq!(link["mayPublish"], may_publish);
        let code = text(&link, "url").split_once("#code=").expect("a link has its code").1.to_owned();
        let session = panel_sessions::opened(api, &code).await;
        assert_eq!(claims(&session.token)["may_publish"], may_publish);
    }
    let asked = json!({ "mayPublish": true });
    api.post(path.clone()).bearer(&receiver).json(&asked).refused(403, "may-not-publish").await;
}

#[contract_test]
async fn withdrawing_the_right_to_publish_revokes_the_tokens_that_have_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let create = ["application", "create", "--json", "--name", "System", "--entity", &entity.id];
    assert_eq!(suite.admin(&create).await.json()["mayPublish"], false);
    let made = suite.admin(&[&create[..], &["--may-publish"]].concat()).await.json();
    assert_eq!(made["mayPublish"], true);
    let application = Made { id: text(&made, "clientId"), secret: text(&made, "clientSecret") };
    let first = token(api, &application.id, &application.secret).await;
    publish(api, &entity, &first).expect(202).await;

    let turn = async |to: &str| suite.admin(&["application", "publishing", &application.id, to, "--json"]).await;
    let off = turn("off").await;
    assert!(off.err.contains(r#""action":"application.change""#), "{}", off.err);
    let off = off.json();
    assert_eq!((&off["mayPublish"], &off["version"]), (&json!(false), &json!(2)));
    assert_eq!(introspected(api, &first).await["active"], false);
    // The application can continue with its next token.
    let next = async || {
        until("a token that is good", LONG, async || {
            let next = token(api, &application.id, &application.secret).await;
            (introspected(api, &next).await["active"] == true).then_some(next)
        })
        .await
    };
    let second = next().await;
    assert_eq!(claims(&second)["may_publish"], false);
    publish(api, &entity, &second).refused(403, "may-not-publish").await;
    assert_eq!(turn("off").await.json()["version"], 2, "no further change is made");

    assert_eq!(turn("on").await.json()["mayPublish"], true);
    let shown = suite.admin(&["application", "show", &application.id]).await.done();
    assert!(shown.contains("publishes  yes"), "{shown}");
    publish(api, &entity, &next().await).expect(202).await;
    assert_eq!(introspected(api, &second).await["active"], true, "granting a right ends no token");
    suite.admin(&["application", "publishing", "appNobody", "on"]).await.failed(3);
    suite.admin(&["application", "publishing", &application.id, "maybe"]).await.failed(2);
}
