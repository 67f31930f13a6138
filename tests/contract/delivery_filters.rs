//! Filtering the list of deliveries by state and by last response. The list is always exact: filtered by webhook or
//! state, it finds a delivery before a worker has claimed it, while it is waiting, and when it is final.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::hook_for,
    harness::{Behaviour, Entity, LONG, Receiver, Settings, Suite, Table, announced, until},
};

const STATES: [&str; 5] = ["pending", "retrying", "delivered", "failed", "cancelled"];

/// A response that delays the next attempt by hours.
fn later() -> Behaviour {
    Behaviour::answer(503, &[("Retry-After", "36000")], "")
}

/// The identifiers in a list with these filters, newest first.
async fn listed(entity: &Entity, filters: &str) -> Vec<String> {
    let listed = entity.get(&format!("/webhook/delivery/list?{filters}")).expect(200).await.json();
    assert!(listed.get("nextCursor").is_none(), "{filters}: {listed:#}");
    let items = listed["items"].as_array().expect("openapi.yaml says so");
    items.iter().map(|item| item["id"].as_str().expect("openapi.yaml says so").to_owned()).collect()
}

/// The only delivery to a webhook.
struct Expected {
    webhook: String,
    delivery: String,
    status: &'static str,
}

/// Asserts that each delivery is in every list that it belongs to, and in no other.
async fn are_listed(entity: &Entity, expected: &[Expected]) {
    let among = |statuses: &[&str]| {
        let found = expected.iter().filter(|one| statuses.contains(&one.status));
        let mut found: Vec<_> = found.map(|one| one.delivery.clone()).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found
    };
    for status in STATES {
        assert_eq!(listed(entity, &format!("status={status}")).await, among(&[status]), "{status}");
        for Expected { webhook, delivery, status: own } in expected {
            let filters = format!("webhookIdentifier={webhook}&status={status}");
            let found = if *own == status { vec![delivery.clone()] } else { Vec::new() };
            assert_eq!(listed(entity, &filters).await, found, "{own}: {filters}");
        }
    }
    for statuses in [&["pending", "retrying"][..], &["failed", "cancelled"], &["pending", "delivered"], &STATES] {
        assert_eq!(listed(entity, &format!("status={}", statuses.join(","))).await, among(statuses), "{statuses:?}");
    }
    for Expected { webhook, delivery, status } in expected {
        let of_webhook = format!("webhookIdentifier={webhook}");
        assert_eq!(listed(entity, &of_webhook).await, std::slice::from_ref(delivery), "{status}");
    }
    assert_eq!(listed(entity, "").await, among(&STATES));
}

#[contract_test]
async fn lists_by_webhook_and_state_are_exact_in_every_state(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "states".to_owned()).await;
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let mut expected = Vec::new();
    for (kind, answer, status) in [
        ("booking.created", Behaviour::status(200), "delivered"),
        ("booking.cancelled", Behaviour::status(500), "failed"),
        ("payment.received", later(), "retrying"),
        ("booking.expired", Behaviour::status(200), "pending"),
    ] {
        let hook = hook_for(&entity, kind, &receiver.on(&format!("/{status}"), [answer])).await;
        if status == "pending" {
            let webhook = hook.id.clone();
            setup.services.swallow(usize::MAX, move |call| announced(call).iter().any(|due| due.webhook == webhook));
        }
        let published = entity.publish_of_type(kind, json!({})).await.json();
        let delivery = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("a text").to_owned();
        entity.until_status(&delivery, &[status]).await;
        expected.push(Expected { webhook: hook.id, delivery, status });
    }
    let unclaimed = expected[3].delivery.clone();
    assert_eq!(table.head(&unclaimed).await, None, "no worker has claimed it, and the sweep has not opened it");
    are_listed(&entity, &expected).await;
    until("the sweep has opened it", LONG, async || table.head(&unclaimed).await).await;
    are_listed(&entity, &expected).await;
    entity.remove(&expected[2].webhook).expect(200).await;
    entity.until_status(&expected[2].delivery, &["cancelled"]).await;
    expected[2].status = "cancelled";
    are_listed(&entity, &expected).await;
    assert!(receiver.received("/pending").is_empty());
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn deliveries_are_listed_by_their_last_answer_or_error(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let mut hooks = Vec::new();
    for url in [
        receiver.on("/good", [Behaviour::status(204)]),
        receiver.on("/busy", [later(), Behaviour::status(204)]),
        receiver.on("/silent", [Behaviour::hang()]),
        "http://127.0.0.1:9/".to_owned(),
    ] {
        hooks.push(hook_for(&entity, "booking.created", &url).await);
    }
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
    let of = |hook: usize| {
        let delivery = deliveries.iter().find(|delivery| delivery["webhookIdentifier"] == hooks[hook].id.as_str());
        delivery.expect("each subscribes")["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
    };
    let [good, busy, silent, refused] = [0, 1, 2, 3].map(of);
    entity.until_status(&good, &["delivered"]).await;
    entity.until_status(&refused, &["failed"]).await;
    let busy_shown = entity.until_status(&busy, &["retrying"]).await;
    assert_eq!((&busy_shown["lastHttpStatus"], busy_shown.get("lastErrorCode")), (&json!(503), None), "{busy_shown:#}");
    let timed_out = |delivery: &Value| delivery["lastErrorCode"] == "timeout" && delivery["lastHttpStatus"].is_null();
    entity.until_delivery(&silent, "has timed out", timed_out).await;
    let webhook = &hooks[1].id;
    for (filters, expected) in [
        ("lastHttpStatus=204".to_owned(), vec![&good]),
        ("lastHttpStatus=503".to_owned(), vec![&busy]),
        ("lastHttpStatus=503&status=retrying".to_owned(), vec![&busy]),
        ("lastHttpStatus=503&status=failed".to_owned(), vec![]),
        (format!("lastHttpStatus=503&webhookIdentifier={webhook}"), vec![&busy]),
        (format!("lastHttpStatus=204&webhookIdentifier={webhook}"), vec![]),
        ("lastHttpStatus=500".to_owned(), vec![]),
        ("lastHttpStatus=999".to_owned(), vec![]),
        ("lastErrorCode=connect".to_owned(), vec![&refused]),
        ("lastErrorCode=connect&status=failed".to_owned(), vec![&refused]),
        ("lastErrorCode=connect&status=pending,retrying".to_owned(), vec![]),
        ("lastErrorCode=connect&type=booking.cancelled".to_owned(), vec![]),
        ("lastErrorCode=timeout".to_owned(), vec![&silent]),
        ("lastErrorCode=dns".to_owned(), vec![]),
        ("lastErrorCode=timeout&lastHttpStatus=503".to_owned(), vec![]),
    ] {
        assert_eq!(listed(&entity, &filters).await.iter().collect::<Vec<_>>(), expected, "{filters}");
    }
    // Only the last response counts.
    entity.post(&format!("/webhook/delivery/{busy}/resend")).expect(202).await;
    entity.until_status(&busy, &["delivered"]).await;
    assert_eq!(listed(&entity, "lastHttpStatus=503").await, Vec::<String>::new());
    assert_eq!(listed(&entity, &format!("lastHttpStatus=204&webhookIdentifier={webhook}")).await, [busy]);
    entity.changed(&hooks[3].id, json!({ "eventUrl": receiver.on("/moved", [Behaviour::status(204)]) })).await;
    entity.post(&format!("/webhook/delivery/{refused}/resend")).expect(202).await;
    let moved = entity.until_status(&refused, &["delivered"]).await;
    assert_eq!((&moved["lastHttpStatus"], moved.get("lastErrorCode")), (&json!(204), None), "{moved:#}");
    assert_eq!(listed(&entity, "lastErrorCode=connect").await, Vec::<String>::new());
}

/// A page of open deliveries reads the index three times for each webhook.
#[contract_test]
async fn lists_of_many_webhooks_open_deliveries_are_limited(suite: Arc<Suite>) {
    let (many, few) = (suite.entity().await, suite.entity().await);
    let mut hooks = Vec::new();
    for entity in [&many, &many, &many, &few, &few] {
        hooks.push(hook_for(entity, "booking.expired", "http://127.0.0.1:9/").await);
    }
    for entity in [&many, &few] {
        suite.table().count_as_used(&format!("open-lists#{}", entity.id), 60, 11_998).await;
    }
    for filters in ["status=pending", "status=retrying,failed", "lastErrorCode=timeout"] {
        let call = many.get(&format!("/webhook/delivery/list?{filters}"));
        let refused = call.refused(429, "too-many-requests").await;
        let properties = json!({ "limitName": "open-lists", "limit": 12_000, "windowSeconds": 60 });
        assert_eq!(refused["properties"], properties, "{filters}");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("`webhookIdentifier`")), "{refused:#}");
        assert_eq!(listed(&few, filters).await, Vec::<String>::new(), "{filters}");
    }
    let of_webhook = format!("status=pending&webhookIdentifier={}", hooks[0].id);
    for filters in ["", "status=failed", "status=delivered", &of_webhook] {
        assert_eq!(listed(&many, filters).await, Vec::<String>::new(), "{filters}");
    }
}
