//! Leases of a feed: a delivery belongs to the reader that has read it, until the reader answers or the lease expires.
//! Repeating the request returns the same deliveries.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    harness::{
        Entity, Hook, LONG, Suite,
        feed::{confirm, end_visibility, id, items, pulled, read, read_some, reading},
        now, time, until,
    },
    idempotency::asked::{is_first, is_replayed},
};

/// A response can be lost while its deliveries are held.
#[contract_test]
async fn a_repeated_read_gives_the_same_deliveries_while_their_leases_last(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    for number in 1..=2 {
        entity.publish(json!({ "number": number })).await;
    }
    let request = json!({ "limit": 1, "wait": 1, "visibility": 3600 });
    let keyed = |request: &Value| reading(&entity, &hook, request).header("idempotency-key", "key");
    // A response without deliveries does not use up the key.
    let first = until("the feed has a delivery", LONG, async || {
        let answer = keyed(&request).expect(200).await;
        (!items(&answer).is_empty()).then_some(answer)
    })
    .await;
    assert!(is_first(&first), "{}", first.exchange);
    let given = items(&first).remove(0);
    let again = keyed(&request).expect(200).await;
    assert!(is_replayed(&again), "{}", again.exchange);
    assert_eq!((first.header("cache-control"), again.header("cache-control")), ("no-store", "no-store"));
    let repeated = items(&again);
    assert_eq!(repeated.len(), 1, "{repeated:#?}");
    for member in ["deliveryIdentifier", "attemptNumber", "receipt", "visibleFrom", "body"] {
        assert_eq!(repeated[0][member], given[member], "{member}");
    }
    keyed(&json!({ "limit": 2, "wait": 1, "visibility": 3600 })).refused(409, "idempotency-conflict").await;
    let other = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    assert!(other.len() == 1 && id(&other[0]) != id(&given), "{other:#?}");
    assert_eq!(confirm(&entity, &hook, &other).await, ["confirmed"]);

    // The leases expire, and with them the key's batch.
    let table = suite.table();
    let prefix = format!("IDEMPOTENCY#{}#", entity.id);
    let is_batch =
        |item: &Value| item["sk"]["S"] == "BATCH" && item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(&prefix));
    let mut records: Vec<_> = table.scan().await.into_iter().filter(is_batch).collect();
    assert_eq!(records.len(), 1, "{records:#?}");
    let mut record = records.remove(0);
    let ends = record["expiresAt"]["N"].as_str().and_then(|text| text.parse().ok());
    assert_eq!(ends, Some(time(&given["visibleFrom"]).as_second()));
    record["expiresAt"] = json!({ "N": "1" });
    table.put(record).await;
    end_visibility(&table, id(&given)).await;
    let next = until("the delivery comes again", LONG, async || {
        let answer = keyed(&request).expect(200).await;
        (!items(&answer).is_empty()).then_some(answer)
    })
    .await;
    assert!(is_first(&next), "{}", next.exchange);
    let next = items(&next);
    assert_eq!((id(&next[0]), &next[0]["attemptNumber"]), (id(&given), &json!(2)));
    assert_eq!(confirm(&entity, &hook, &next).await, ["confirmed"]);

    // An answered delivery is not returned again.
    let answered = keyed(&request).expect(200).await;
    assert!(is_replayed(&answered) && items(&answered).is_empty(), "{}", answered.exchange);
    assert_eq!(entity.delivery(id(&given)).await["attemptCount"], 2);
}

#[contract_test]
async fn of_several_readers_with_one_key_all_get_the_same_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    for number in 1..=4 {
        let published = entity.publish(json!({ "number": number })).await;
        entity.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
    }
    let request = json!({ "limit": 2, "visibility": 3600 });
    let read_at_once = async || {
        let keyed = || reading(&entity, &hook, &request).header("idempotency-key", "key").expect(200);
        let answers = join_all((0..5).map(|_| keyed())).await;
        let pages: Vec<_> = answers.iter().map(items).filter(|page| !page.is_empty()).collect();
        (pages.len() == answers.len()).then_some(pages)
    };
    let pages = until("the feed has deliveries", LONG, read_at_once).await;
    let receipts = |page: &[Value]| page.iter().map(|item| item["receipt"].clone()).collect::<Vec<_>>();
    for page in &pages {
        assert_eq!(receipts(page), receipts(&pages[0]));
    }
}

#[contract_test]
async fn a_reader_may_hold_its_deliveries_for_longer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let held = read_some(&entity, &hook, json!({ "visibility": 60 })).await;
    let receipts = json!([held[0]["receipt"]]);
    let extended = async |entity: &Entity, hook: &Hook, visibility: i64| {
        let body = json!({ "receipts": receipts, "visibility": visibility });
        items(&entity.post(&format!("/webhook/{}/feed/extend", hook.id)).json(&body).expect(200).await).remove(0)
    };
    for visibility in [3_600, 600] {
        let began = now();
        let result = extended(&entity, &hook, visibility).await;
        assert_eq!((&result["outcome"], id(&result)), (&json!("extended"), published.as_str()));
        assert_eq!(result["receipt"], receipts[0]);
        let ends = time(&result["visibleFrom"]).as_second();
        assert!((began + visibility..=now() + visibility).contains(&ends), "{result:#}");
        let head = suite.table().head(&published).await.expect("it is leased");
        assert_eq!(head["claimableAt"]["S"], result["visibleFrom"]);
    }
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a reader holds it");

    // A receipt from another webhook is invalid here, and changes nothing.
    let other = pulled(&entity).await;
    let before = suite.table().head(&published).await;
    let foreign = extended(&entity, &other, 60).await;
    assert!(foreign["outcome"] == "expired" && foreign.get("visibleFrom").is_none(), "{foreign:#}");
    assert_eq!(suite.table().head(&published).await, before);
    let stranger = suite.entity().await;
    let body = json!({ "receipts": receipts, "visibility": 60 });
    let call = stranger.post(&format!("/webhook/{}/feed/extend", hook.id)).json(&body);
    call.refused(404, "webhook-not-found").await;

    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    assert_eq!(extended(&entity, &hook, 60).await["outcome"], "expired", "it is answered");
    assert_eq!(entity.delivery(&published).await["attemptCount"], 1);
}

#[contract_test]
async fn an_unconfirmed_delivery_comes_again_and_its_receipt_expires(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let began = now();
    let first = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    let ends = time(&first[0]["visibleFrom"]).as_second();
    assert!((began + 3_600..=now() + 3_600).contains(&ends), "{first:#?}");
    assert!(read(&entity, &hook, json!({})).await.is_empty(), "a reader holds it");
    end_visibility(&suite.table(), &published).await;
    let second = read_some(&entity, &hook, json!({})).await;
    assert_eq!((id(&second[0]), &second[0]["attemptNumber"]), (published.as_str(), &json!(2)));
    assert_eq!(confirm(&entity, &hook, &first).await, ["expired"]);
    assert_eq!(confirm(&entity, &hook, &second).await, ["confirmed"]);
    let shown = entity.delivery(&published).await;
    assert!(
        shown["attempts"][0]["error"].as_str().is_some_and(|error| error.starts_with("unconfirmed: ")),
        "{shown:#}"
    );
    assert_eq!(shown["attempts"][1]["confirmed"], true);
}

#[contract_test]
async fn a_late_answer_counts_while_no_other_reader_has_the_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published = entity.publish(json!({})).await;
    let held = read_some(&entity, &hook, json!({ "visibility": 3600 })).await;
    end_visibility(&suite.table(), &published).await;
    assert_eq!(confirm(&entity, &hook, &held).await, ["confirmed"]);
    assert_eq!(entity.delivery(&published).await["attemptCount"], 1);
}

#[contract_test]
async fn concurrent_readers_never_hold_the_same_delivery(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = pulled(&entity).await;
    let published: BTreeSet<_> =
        join_all((0..60).map(|number| entity.publish(json!({ "number": number })))).await.into_iter().collect();
    let got = Mutex::new(Vec::new());
    let reader = async || {
        while got.lock().expect("no reader panics").len() < published.len() {
            let found = read(&entity, &hook, json!({ "limit": 7, "wait": 2 })).await;
            if !found.is_empty() {
                assert!(confirm(&entity, &hook, &found).await.iter().all(|outcome| outcome == "confirmed"));
            }
            got.lock().expect("no reader panics").extend(found.iter().map(|delivery| id(delivery).to_owned()));
        }
    };
    timeout(LONG, join_all((0..4).map(|_| reader()))).await.expect("the feed has all deliveries");
    let got = got.into_inner().expect("no reader panics");
    assert_eq!(got.len(), 60, "none twice");
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), published);
}
