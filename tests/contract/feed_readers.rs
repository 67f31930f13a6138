//! One entity's waiting readers, alongside another entity's.

use std::sync::Arc;

use contract_test::contract_test;
use futures::future::select_all;
use serde_json::json;
use tokio::select;

use crate::harness::{
    Entity, LONG, Suite,
    feed::{confirm, pulled, read_some, reading},
    now, until,
};

/// Half the number of waits that an entity may start in a window.
const WAITING: usize = 100;

/// The number of waits that an entity has started since this second.
async fn waits_since(suite: &Suite, entity: &Entity, began: i64) -> usize {
    let table = suite.table();
    let pk = format!("ALLOWANCE#feed-waits#{}", entity.id);
    let mut waits = 0;
    for window in (began / 10..=now() / 10).map(|window| window * 10) {
        let item = table.item(&pk, &format!("{window:010}")).await.unwrap_or_default();
        waits += item["count"]["N"].as_str().and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    }
    waits
}

/// On a single machine, all readers share the function's process.
#[contract_test]
async fn a_hundred_waiting_readers_hold_up_no_reader_of_another_entity(suite: Arc<Suite>) {
    let _ = suite.bundle();
    // On a machine that stalls, the first of the hundred waits may end before the last one starts.
    until("the other reads while a hundred wait", LONG, async || {
        let entity = suite.entity().await;
        let other = suite.entity().await;
        let hook = pulled(&entity).await;
        let of_other = pulled(&other).await;
        let published = other.publish(json!({})).await;
        other.until_delivery(&published, "waits for a reader", |shown| shown["waitingFor"] == "reader").await;
        let began = now();
        let readers = (0..WAITING).map(|_| Box::pin(reading(&entity, &hook, &json!({ "wait": 10 })).expect(200)));
        let reads_beside_them = async {
            until("a hundred wait", LONG, async || {
                (waits_since(&suite, &entity, began).await >= WAITING).then_some(())
            })
            .await;
            read_some(&other, &of_other, json!({})).await
        };
        select! {
            _ = select_all(readers) => None,
            found = reads_beside_them => {
                assert_eq!(found[0]["deliveryIdentifier"], published.as_str());
                assert_eq!(confirm(&other, &of_other, &found).await, ["confirmed"]);
                Some(())
            }
        }
    })
    .await;
}
