//! Order by subject in a feed: its reader gets one delivery of a subject at a time, until that delivery is final.

use std::{collections::BTreeMap, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{
    Suite,
    feed::{answer, confirm, read, read_some},
    order::{about, ordered_feed, until_held_by},
};

/// In these tests, readers hold a delivery for ten minutes, longer than any test waits.
fn held() -> Value {
    json!({ "visibility": 600 })
}

#[contract_test]
async fn a_pulled_delivery_waits_for_all_before_it_when_one_between_is_cancelled(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let [first, second, third] = [about(&entity, "A").await, about(&entity, "A").await, about(&entity, "A").await];
    until_held_by(&entity, &second, &first).await;
    until_held_by(&entity, &third, &second).await;
    entity.post(&format!("/webhook/delivery/{second}/cancel")).expect(200).await;
    until_held_by(&entity, &third, &first).await;
    for expected in [first, third] {
        let page = read_some(&entity, &hook, held()).await;
        assert_eq!((page.len(), &page[0]["deliveryIdentifier"]), (1, &json!(expected)));
        confirm(&entity, &hook, &page).await;
    }
}

#[contract_test]
async fn a_feed_gives_one_delivery_of_a_subject_at_a_time(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let mut expected = BTreeMap::<_, Vec<_>>::new();
    for subject in ["A", "A", "B", "A", "B"] {
        expected.entry(subject.to_owned()).or_default().push(about(&entity, subject).await);
    }
    until_held_by(&entity, &expected["A"][1], &expected["A"][0]).await;
    until_held_by(&entity, &expected["A"][2], &expected["A"][1]).await;
    let text = |value: &Value| value.as_str().expect("openapi.yaml says so").to_owned();
    let subject = |delivery: &Value| {
        let body: Value = serde_json::from_str(delivery["body"].as_str().expect("a text")).expect("JSON");
        text(&body["subject"])
    };
    let mut got = BTreeMap::<_, Vec<_>>::new();
    let mut is_first = true;
    while got.values().map(Vec::len).sum::<usize>() < 5 {
        let page = read_some(&entity, &hook, held()).await;
        for delivery in &page {
            got.entry(subject(delivery)).or_default().push(text(&delivery["deliveryIdentifier"]));
        }
        // The reader holds these deliveries, so it gets nothing else about their subjects.
        if std::mem::take(&mut is_first) {
            for ids in expected.values() {
                until_held_by(&entity, &ids[1], &ids[0]).await;
            }
            let subjects: Vec<_> = page.iter().map(subject).collect();
            let more = read(&entity, &hook, held()).await;
            assert!(more.iter().all(|delivery| !subjects.contains(&subject(delivery))), "{more:#?}");
            for delivery in &more {
                got.entry(subject(delivery)).or_default().push(text(&delivery["deliveryIdentifier"]));
            }
            if !more.is_empty() {
                confirm(&entity, &hook, &more).await;
            }
        }
        assert!(confirm(&entity, &hook, &page).await.iter().all(|outcome| outcome == "confirmed"));
    }
    assert_eq!(got, expected);
}

#[contract_test]
async fn a_failure_in_a_feed_holds_up_its_subject(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = ordered_feed(&entity).await;
    let ids = [about(&entity, "A").await, about(&entity, "A").await];
    let mut got = Vec::new();
    // The first delivery fails after the three attempts in its schedule, and the second one follows.
    for _ in 0..3 {
        let page = read_some(&entity, &hook, held()).await;
        got.extend(page.iter().map(|delivery| delivery["deliveryIdentifier"].clone()));
        let failure = json!({ "failed": [{ "receipt": page[0]["receipt"], "reason": "the room is unknown" }] });
        assert_eq!(answer(&entity, &hook, failure).await, ["failed"]);
    }
    let page = read_some(&entity, &hook, held()).await;
    got.extend(page.iter().map(|delivery| delivery["deliveryIdentifier"].clone()));
    assert_eq!(confirm(&entity, &hook, &page).await, ["confirmed"]);
    assert_eq!(got, [&ids[0], &ids[0], &ids[0], &ids[1]].map(|id| json!(id)));
    assert_eq!(entity.delivery(&ids[0]).await["status"], "failed");
}
