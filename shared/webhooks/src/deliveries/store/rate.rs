//! The slots of a webhook with a rate limit. The next free slot is a number in one item, which each reservation
//! advances with one write, so that all dispatchers share it.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    deliveries::{
        state::{slot::Slot, times::CLAIM_LIMIT},
        store::Deliveries,
    },
    subscriptions::rate_limit::RateLimit,
};
use base::{Time, WebhookId};
use storage::table::{Change, TableError, absent, at_most, more};

/// How many times a reservation is tried when concurrent ones are faster.
const TRIES: usize = 10;
/// How long a line is kept after its last reservation. No delivery waits in it beyond its retention.
const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

const RESERVING: &str = "reserving a slot for a webhook with a rate limit";

/// A webhook's line: the time of its next free slot.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// In microseconds since 1970: under most limits, the interval between slots is not a whole number of milliseconds.
    next_at: i64,
}

impl Deliveries {
    /// Reserves the next free slot of a webhook with this limit, for an attempt that may have missed one. If the
    /// response to a reservation is lost, the repeated call reserves another, and one slot stays unused.
    pub(crate) async fn reserve_slot(
        &self,
        webhook: &WebhookId,
        limit: RateLimit,
        missed: Option<Slot>,
        now: Time,
    ) -> Result<Slot, TableError> {
        let slot_at = |at| Slot::after(missed, at, limit.since, now);
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        // A changed limit starts another line.
        let line = || {
            let change = Change::of((format!("RATE#{webhook}"), limit.since.to_string()));
            change.set("expiresAt", (now + KEPT).as_seconds())
        };
        let interval = i64::try_from(limit.per_second.interval().as_micros()).unwrap_or(i64::MAX);
        let now_micros = now.as_millis().saturating_mul(1000);
        let is_free = absent("nextAt").or(at_most("nextAt", now_micros));
        for _ in 0..TRIES {
            let at_once = line().set("nextAt", now_micros.saturating_add(interval)).only_if(is_free.clone());
            if table.write(at_once, RESERVING).await?.is_done() {
                return Ok(slot_at(now));
            }
            let next = line().add("nextAt", interval).only_if(more("nextAt", now_micros));
            if let Some(line) = table.write_and_read::<Line>(next, RESERVING).await?.done() {
                let at = line.next_at.saturating_sub(interval).div_euclid(1000).saturating_add(1);
                return Ok(slot_at(Time::from_millis(at)));
            }
        }
        Err(TableError::code(RESERVING, "ConditionalCheckFailedException"))
    }
}
