//! An account replaces another account only on request.

use std::sync::Arc;

use contract_test::contract_test;
use fakes::provider::Kind;
use futures::future::join;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Choice, LONG, Receiver, Suite, Visit, new_account, until};

const PATH: &str = "/payment/provider/sim-basic/connection";

/// Asserts that the person's account was not connected, and that the page says so.
async fn was_not_connected(suite: &Suite, visit: &Visit) {
    let answer = visit.arrive("other-account").await;
    let address =
        answer.header("location").strip_prefix(suite.api.base_url()).expect("the panel is at the service's address");
    let page = visit.at(address).expect(200).await.text();
    assert!(page.contains(&visit.account) && page.contains("was not connected"), "{page}");
    // Another entity may be connected to the account, and most providers would also end that entity's access.
    assert_eq!(suite.providers().of_account(Kind::Revocation, &visit.account), []);
    visit.callback().refused(400, "invalid-state").await;
}

#[contract_test]
async fn connecting_again_asks_before_it_replaces_a_connection(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.link("sim-basic", Choice::ALLOW).await;
    let before = entity.connection("sim-basic").await.expect("connected");
    for body in [None, Some(json!({})), Some(json!({ "replace": false }))] {
        let call = entity.post(PATH);
        let call = body.into_iter().fold(call, |call, body| call.json(&body));
        let problem = call.refused(409, "connection-exists").await;
        assert_eq!(problem["properties"]["account"], first.account, "{problem:#}");
    }
    for wrong in [json!({ "replace": "true" }), json!({ "replace": Value::Null }), json!({ "replace": 1 })] {
        entity.post(PATH).json(&wrong).refused(400, "invalid-request").await;
    }
    assert_eq!(entity.connection("sim-basic").await, Some(before.clone()));
    // A different provider is a different connection.
    entity.post("/payment/provider/sim-body/connection").expect(201).await;

    let second = entity.replace("sim-basic", Choice::ALLOW).await;
    let connections = entity.connections().await;
    assert_eq!(connections.len(), 1, "{connections:#?}");
    assert_eq!(connections[0]["account"], second.account);
    assert_ne!(connections[0]["id"], before["id"]);
    // With most providers, revoking the first token would also revoke the second.
    assert_eq!(suite.providers().of_account(Kind::Revocation, &first.account), []);
}

#[contract_test]
async fn the_start_page_names_the_account_that_is_replaced(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.link("sim-basic", Choice::ALLOW).await;
    let start = entity.replacing_url("sim-basic").await;
    let path = start.strip_prefix(suite.api.base_url()).expect("the start page is at the service's address");
    let page = suite.api.get(path).expect(200).await.text();
    assert!(page.contains(&format!("<strong>{}</strong>", visit.account)) && page.contains("replaces it"), "{page}");
    assert!(page.contains("Current connection"), "{page}");
}

#[contract_test]
async fn the_same_account_mends_a_broken_connection_without_a_question(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = entity.link("sim-basic", Choice::ALLOW).await;
    assert!(suite.table().set(&format!("ENT#{}", entity.id), "PAY#sim-basic", "status", "broken").await);
    let start = entity.authorization_url("sim-basic").await;
    entity.visit_from(&start, &first.account, Choice::ALLOW).await.arrive("connected").await;
    let connection = entity.connection("sim-basic").await.expect("connected");
    assert_eq!((&connection["status"], &connection["account"]), (&json!("connected"), &json!(first.account)));
}

#[contract_test]
async fn another_account_replaces_a_broken_connection_only_when_asked(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.link("sim-basic", Choice::ALLOW).await;
    assert!(suite.table().set(&format!("ENT#{}", entity.id), "PAY#sim-basic", "status", "broken").await);
    let before = entity.connection("sim-basic").await;
    was_not_connected(&suite, &entity.visit("sim-basic", Choice::ALLOW).await).await;
    assert_eq!(entity.connection("sim-basic").await, before);
    let other = entity.replace("sim-basic", Choice::ALLOW).await;
    assert_eq!(entity.connection("sim-basic").await.expect("connected")["account"], other.account);
}

#[contract_test]
async fn a_connection_made_during_a_disconnection_is_kept(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let table = suite.table();
    let visit = entity.link("sim-basic", Choice::leading_to("revoke-hang")).await;
    let (pk, sk) = (format!("ENT#{}", entity.id), "PAY#sim-basic");
    // A broken connection is removed even if the provider does not respond.
    assert!(table.set(&pk, sk, "status", "broken").await);
    let disconnecting = async { entity.disconnect("sim-basic").refused(409, "connection-replaced").await };
    let connecting = async {
        until("the provider is asked", LONG, async || {
            let asked = suite.providers().of_account(Kind::Revocation, &visit.account);
            (!asked.is_empty()).then_some(())
        })
        .await;
        // Do what a callback does during the ten seconds for which the service waits for the provider.
        let mut item = table.item(&pk, sk).await.expect("it is kept");
        item["id"]["S"] = "con_01m7wa4v0evcs5n0yrq8bhk2zt".into();
        let members = item.as_object_mut().expect("an item");
        members.remove("lease");
        members.remove("leaseUntil");
        table.put(item).await;
    };
    join(disconnecting, connecting).await;
    assert_eq!(entity.connection("sim-basic").await.expect("kept")["id"], "con_01m7wa4v0evcs5n0yrq8bhk2zt");
}

#[contract_test]
async fn an_account_that_was_connected_meanwhile_stays(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let types = json!(["payment.connection.established"]);
    entity.hook_with(json!({ "name": "payments", "eventUrl": url, "eventList": types })).await;
    let account = new_account();
    let mut waiting = Vec::new();
    for account in [account.clone(), new_account(), account.clone()] {
        let start = entity.authorization_url("sim-basic").await;
        waiting.push(entity.visit_from(&start, &account, Choice::ALLOW).await);
    }
    let [first, other, same] = &waiting[..] else { unreachable!("there are three") };
    first.arrive("connected").await;
    let connected = entity.connection("sim-basic").await;
    was_not_connected(&suite, other).await;
    assert_eq!(entity.connection("sim-basic").await, connected);
    same.arrive("connected").await;
    assert_eq!(entity.connection("sim-basic").await.expect("connected")["account"], account);
    let events = receiver.until("/", 2).await;
    assert!(
        events.iter().all(|event| event.json()["data"]["account"] == account),
        "no event is about the other account"
    );
    // Only the event about the later connection names the one that it replaced.
    let former = &connected.expect("connected")["id"];
    for event in events {
        let event = event.json();
        let present = entity.connection("sim-basic").await.expect("connected");
        let data = &event["data"];
        let replaced = data.get("replacedConnectionIdentifier");
        let expected = (data["connectionIdentifier"] == present["id"]).then_some(former);
        assert_eq!(replaced, expected, "{event:#}");
    }
}
