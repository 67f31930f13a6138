//! The rate limit of a webhook: each attempt reserves the next free slot of the webhook, and waits for it.
//!
//! A slot is a moment; slots are as far apart as the limit requires. The next free slot of a webhook is a number in one
//! item, which a reservation advances by one write, so that all dispatchers share it. An attempt waits up to a second
//! in memory. For a longer wait its claim is released, so that it holds no permit and no worker, and does not hold up
//! other webhooks. A delivery keeps its slot, and so its turn; it reserves another if it missed the slot, or if the limit
//! was changed. A test event does not wait for its slot.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    deliveries::{
        dispatch::{
            claim::Claimed,
            dispatcher::{DispatchError, Dispatcher},
        },
        lease_times::CLAIM_LIMIT,
        queue::Lane,
        store::{
            Deliveries,
            slot::{SHORT_WAIT, Slot},
        },
    },
    subscriptions::{Webhook, rate_limit::RateLimit},
};
use base::{Time, WebhookId, pause};
use storage::table::{Change, TableError, absent, at_most, more};

/// Number of tries of a reservation that concurrent ones overtake.
const TRIES: usize = 10;
/// How long a line is kept after its last reservation. No delivery waits in it for longer than its retention.
const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

const RESERVING: &str = "reserving a slot of a webhook with a rate limit";

/// The line of a webhook: the time of its next free slot.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// In microseconds since 1970: under most limits, slots are not whole milliseconds apart.
    next_at: i64,
}

impl Dispatcher {
    /// Waits for the slot of a claimed attempt, if it comes soon. Otherwise releases the claim and returns false.
    pub(super) async fn reaches_its_slot(&self, claimed: &Claimed, webhook: &Webhook) -> Result<bool, DispatchError> {
        let Some(limit) = webhook.rate_limit else { return Ok(true) };
        let now = self.clock.now();
        let slot = match claimed.slot().filter(|slot| slot.since == limit.since) {
            Some(slot) if slot.is_valid(limit, now) => slot,
            missed => self.deliveries.reserve_slot(&webhook.id, limit, missed, now).await?,
        };
        // A person waits for a test. The deliveries after it make room, so that the limit holds on average.
        let wait = if claimed.delivery().test { Duration::ZERO } else { slot.at.since(now) };
        if wait <= SHORT_WAIT {
            pause(wait).await;
            return Ok(true);
        }
        let until = slot.claimable_at(now);
        tracing::debug!(deliveryId = %claimed.delivery().id, slot = %slot.at, "put off: its webhook has a rate limit");
        self.deliveries.release_to_slot(claimed, slot, until, now).await?;
        // Messages are delayed by whole seconds. This one comes up to a second before the slot, and not after it.
        let message = claimed.message(claimed.attempt()).waiting();
        self.queue.announce(Lane::of(webhook.is_slow(until)), message, until, now).await;
        Ok(false)
    }
}

impl Deliveries {
    /// Reserves the next free slot of a webhook with this limit, for an attempt that may have missed one. If the
    /// response to a reservation is lost, its repetition reserves another, and one slot stays unused.
    async fn reserve_slot(
        &self,
        webhook: &WebhookId,
        limit: RateLimit,
        missed: Option<Slot>,
        now: Time,
    ) -> Result<Slot, TableError> {
        let slot_at = |at| Slot::after(missed, at, limit.since, now);
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        // A changed limit begins another line.
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
