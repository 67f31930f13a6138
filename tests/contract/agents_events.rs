//! The list of events, through the API and for agents.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    agents_tools::text,
    delivery_list::hook_for,
    harness::{Agent, Behaviour, Entity, LONG, Receiver, Suite, invalid_values, until},
};

/// Publishes an event; returns its identifier.
async fn publish(entity: &Entity, kind: &str) -> String {
    text(&entity.publish_of_type(kind, json!({})).await.json()["eventIdentifier"])
}

fn items(page: &Value) -> Vec<Value> {
    page["items"].as_array().expect("the schema says so").clone()
}

fn ids(page: &Value) -> Vec<String> {
    items(page).iter().map(|event| text(&event["id"])).collect()
}

/// A page of the API's list of events.
async fn listed(entity: &Entity, query: &str) -> Value {
    entity.get(&format!("/webhook/event?{query}")).expect(200).await.json()
}

/// An event's webhooks, grouped by the status of their deliveries.
fn webhooks(event: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let groups = event["deliveries"].as_array().expect("the schema says so").iter().map(|group| {
        let webhooks = group["webhookIdentifiers"].as_array().expect("the schema says so");
        assert_eq!(group["count"], webhooks.len(), "{event:#}");
        (text(&group["status"]), webhooks.iter().map(text).collect())
    });
    groups.collect()
}

/// A list of open deliveries reads each webhook, and counts towards the limit on such lists.
#[contract_test]
async fn an_agent_lists_the_open_deliveries_of_many_webhooks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let urls = ["/one", "/two", "/three"].map(|path| receiver.on(path, [Behaviour::status(500)]));
    for url in &urls {
        entity.hook(url).await;
    }
    entity.publish_of_type("booking.created", json!({})).await;
    until("every webhook's delivery is listed", LONG, async || {
        let listed = agent.call("list_deliveries", json!({ "status": ["pending", "retrying", "failed"] })).await;
        (items(&listed).len() == urls.len()).then_some(())
    })
    .await;
}

#[contract_test]
async fn an_event_is_listed_once_with_its_webhooks_by_status(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let agent = Agent::of(&entity).await;
    let good = hook_for(&entity, "booking.*", &receiver.on("/good", [Behaviour::status(200)])).await;
    let bad = hook_for(&entity, "booking.created", &receiver.on("/bad", [Behaviour::status(500)])).await;
    let older = publish(&entity, "booking.created").await;
    let unwanted = publish(&entity, "payee.created").await;
    let newer = publish(&entity, "booking.cancelled").await;
    let page = until("all deliveries are final", LONG, async || {
        let page = agent.call("list_events", json!({})).await;
        let is_final =
            |event: &Value| webhooks(event).keys().all(|status| ["delivered", "failed"].contains(&&**status));
        items(&page).iter().all(is_final).then_some(page)
    })
    .await;
    assert_eq!(ids(&page), [newer.clone(), unwanted.clone(), older.clone()], "{page:#}");
    assert!(page.get("nextCursor").is_none(), "{page:#}");
    assert_eq!(listed(&entity, "").await, page, "the API lists the same");
    let of = |status: &str, webhook: &str| (status.to_owned(), BTreeSet::from([webhook.to_owned()]));
    assert_eq!(webhooks(&page["items"][0]), BTreeMap::from([of("delivered", &good.id)]));
    assert_eq!(webhooks(&page["items"][1]), BTreeMap::new(), "no webhook wanted it");
    assert_eq!(webhooks(&page["items"][2]), BTreeMap::from([of("delivered", &good.id), of("failed", &bad.id)]));
    let shown = agent.call("show_event", json!({ "eventIdentifier": older })).await;
    assert_eq!(page["items"][2]["timestamp"], shown["timestamp"]);
    assert_eq!(page["items"][2]["type"], "booking.created");

    let time = &page["items"][0]["timestamp"];
    for (filters, expected) in [
        (json!({ "type": "booking.created" }), vec![&older]),
        (json!({ "type": "payee.created" }), vec![&unwanted]),
        (json!({ "createdFrom": time }), vec![&newer]),
        (json!({ "createdUntil": time }), vec![&unwanted, &older]),
        (json!({ "type": "booking.created", "createdFrom": time }), vec![]),
    ] {
        let page = agent.call("list_events", filters.clone()).await;
        assert_eq!(ids(&page).iter().collect::<Vec<_>>(), expected, "{filters}");
        assert!(page.get("nextCursor").is_none(), "{filters}: {page:#}");
        let of_filter = |(name, value): (&String, &Value)| format!("{name}={}", text(value));
        let query: Vec<_> = filters.as_object().expect("an object").iter().map(of_filter).collect();
        assert_eq!(listed(&entity, &query.join("&")).await, page, "{filters}");
    }
    let stranger = suite.entity().await;
    assert_eq!(Agent::of(&stranger).await.call("list_events", json!({})).await, json!({ "items": [] }));
    assert_eq!(listed(&stranger, "").await, json!({ "items": [] }));
}

#[contract_test]
async fn events_are_listed_page_by_page_and_none_on_two_pages(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let agent = Agent::of(&entity).await;
    let hooks = join_all((0..6).map(|_| entity.hook("http://127.0.0.1:9/"))).await;
    let hooks: BTreeSet<_> = hooks.into_iter().map(|hook| hook.id).collect();
    // Some of these events share a millisecond.
    let published: BTreeSet<_> =
        join_all((0..60).map(|_| publish(&entity, "booking.created"))).await.into_iter().collect();
    for limit in [7, 50] {
        let mut found = Vec::new();
        let mut pages = Vec::new();
        let mut arguments = json!({ "type": "booking.created", "limit": limit });
        loop {
            let page = agent.call("list_events", arguments.clone()).await;
            let items = items(&page);
            pages.push(items.len());
            found.extend(items);
            match page.get("nextCursor") {
                Some(next) => arguments["cursor"] = next.clone(),
                None => break,
            }
        }
        assert!(pages.iter().all(|items| *items <= limit), "{pages:?}");
        let ids: Vec<_> = found.iter().map(|event| text(&event["id"])).collect();
        assert!(ids.is_sorted_by(|one, next| one > next), "newest first, each once: {ids:?}");
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), published, "{pages:?}");
        for event in &found {
            let webhooks: Vec<_> = webhooks(event).into_values().flatten().collect();
            assert_eq!(webhooks.len(), hooks.len(), "{event:#}");
            assert_eq!(webhooks.into_iter().collect::<BTreeSet<_>>(), hooks, "{event:#}");
        }
        assert_eq!(pages[0], limit, "a page is full while there are more: {pages:?}");
        let first = listed(&entity, &format!("type=booking.created&limit={limit}")).await;
        let cursor = text(&first["nextCursor"]);
        let second = listed(&entity, &format!("type=booking.created&limit={limit}&cursor={cursor}")).await;
        let shown = [self::ids(&first), self::ids(&second)].concat();
        assert_eq!(shown, ids[..shown.len()], "the API lists the same pages");
    }

    let first = json!({ "type": "booking.created", "limit": 1 });
    let cursor = agent.call("list_events", first).await["nextCursor"].clone();
    let of_deliveries = agent.call("list_deliveries", json!({ "limit": 1 })).await["nextCursor"].clone();
    for refused in [json!({ "cursor": cursor }), json!({ "cursor": of_deliveries })] {
        let problem = agent.refused("list_events", refused).await;
        assert_eq!(problem["kind"], "invalid-cursor", "{problem:#}");
    }
    let problem = agent.refused("list_deliveries", json!({ "type": "booking.created", "cursor": cursor })).await;
    assert_eq!(problem["kind"], "invalid-cursor", "{problem:#}");
}

#[contract_test]
async fn a_list_of_events_refuses_every_bad_value_by_name(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (query, refused) in [
        ("type=nope", vec!["type"]),
        ("type=booking.*", vec!["type"]),
        ("subject=", vec!["subject"]),
        ("createdFrom=now", vec!["createdFrom"]),
        ("createdFrom=2026-11-20T09:45:00.001Z&createdUntil=2026-11-20T09:45:00Z", vec!["createdUntil"]),
        ("limit=0", vec!["limit"]),
        ("limit=51", vec!["limit"]),
        ("status=failed", vec!["status"]),
        ("webhookIdentifier=whk_00000000000000000000000000", vec!["webhookIdentifier"]),
    ] {
        let problem = entity.get(&format!("/webhook/event?{query}")).refused(400, "invalid-request").await;
        let expected: Vec<_> = refused.iter().map(|name| format!("query/{name}")).collect();
        assert_eq!(invalid_values(&problem), expected, "{query}");
    }
    entity.get("/webhook/event?cursor=x").refused(400, "invalid-cursor").await;
}
