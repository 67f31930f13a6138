//! Recoveries, and the number of deliveries that they change.

use serde_json::Value;

use super::{Call, Entity, Hook, LONG, Settings, Table, until, window_start};

/// Settings with which a delivery fails after one attempt.
pub fn one_attempt() -> Settings {
    Settings::default().with("RETRY_SCHEDULE", "0s")
}

/// A request for a recovery of a webhook's deliveries in a range.
pub fn recovery(entity: &Entity, hook: &Hook, range: &Value) -> Call {
    entity.post(&format!("/webhook/{}/recover", hook.id)).json(range)
}

/// Requests a recovery, bypassing the per-minute limit by removing the minute's count first.
pub async fn recover(entity: &Entity, hook: &Hook, range: &Value) -> u64 {
    let minute = window_start(60);
    let counted = format!("ALLOWANCE#recoveries#{}", entity.id);
    Table::of(&entity.api().env).remove(&counted, &format!("{minute:010}")).await;
    let answer = recovery(entity, hook, range).expect(202).await.json();
    answer["count"].as_u64().expect("openapi.yaml says so")
}

/// The number of a webhook's deliveries that have this status.
pub async fn count(entity: &Entity, hook: &Hook, status: &str) -> usize {
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let query = format!("limit=100&status={status}&webhookIdentifier={}{cursor}", hook.id);
        let page = entity.get(&format!("/webhook/delivery/list?{query}")).expect(200).await.json();
        found += page["items"].as_array().map(Vec::len).unwrap_or_default();
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// Waits until this many deliveries have this status; each change restarts the timeout.
pub async fn until_count(entity: &Entity, hook: &Hook, status: &str, expected: usize) {
    let mut last = count(entity, hook, status).await;
    while last != expected {
        last = until(&format!("{expected} deliveries are {status}, and not {last}"), LONG, async || {
            Some(count(entity, hook, status).await).filter(|count| *count != last)
        })
        .await;
    }
}
