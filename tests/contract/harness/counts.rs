//! Attempts' counts: a webhook's statistics, and its failures in a row. An attempt is counted shortly after it is
//! recorded. If the table does not accept a count within seconds, the count is lost; the waits here then end after a
//! minute, when no count is under way any more.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::{Entity, Hook, LONG, Table, until};

/// How long to wait for a count, which is far longer than the table's client tries.
pub const COUNTED_WITHIN: Duration = Duration::from_secs(60);

/// A webhook's statistics.
pub async fn stats(entity: &Entity, hook: &Hook) -> Value {
    entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json()
}

/// Waits until a webhook's statistics have at least this many attempts, and returns them; `None` if a count is lost. The
/// statistics count no attempt twice.
pub async fn counted(entity: &Entity, hook: &Hook, attempts: u64) -> Option<Value> {
    let has_all = |stats: &Value| stats["last7Days"]["attempts"].as_u64() >= Some(attempts);
    let wait = until("every attempt is counted", LONG, async || Some(stats(entity, hook).await).filter(has_all));
    timeout(COUNTED_WITHIN, wait).await.ok()
}

/// Waits until a webhook has at least this many failures in a row, unless a count is lost. A count whose response from
/// the table is lost is made twice.
pub async fn failures_counted(table: &Table, entity: &Entity, hook: &Hook, failures: u64) {
    let (pk, sk) = (format!("ENT#{}", entity.id), format!("HLT#{}", hook.id));
    let wait = until("every failure is counted", LONG, async || {
        table.item(&pk, &sk).await.filter(|health| failures_in(health) >= Some(failures))
    });
    // What follows needs only that no count comes later. Not all counts are lost.
    if timeout(COUNTED_WITHIN, wait).await.is_err() && failures > 1 {
        let health = table.item(&pk, &sk).await;
        assert!(health.as_ref().and_then(failures_in) > Some(0), "no failure is counted: {health:?}");
    }
}

/// The failures in a row of a health item.
pub fn failures_in(health: &Value) -> Option<u64> {
    health["failuresInRow"]["N"].as_str()?.parse().ok()
}
