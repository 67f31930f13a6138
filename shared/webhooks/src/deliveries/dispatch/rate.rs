//! A webhook's rate limit: each attempt reserves the webhook's next free slot, and waits for it.
//!
//! A slot is a moment; slots are as far apart as the limit requires (`store::rate`). An attempt waits for up to a
//! second in memory. For a longer wait, its claim is released, so that it holds neither a permit nor a worker and does
//! not delay other webhooks. A delivery keeps its slot, and so its turn, unless it misses the slot or the limit
//! changes; it then reserves another. A test event does not wait for its slot.

use std::time::Duration;

use crate::{
    deliveries::{
        dispatch::dispatcher::{DispatchError, Dispatcher},
        state::{Wait, slot::WAITS_IN_MEMORY},
        store::claim::Claimed,
    },
    subscriptions::Webhook,
};
use base::pause;

impl Dispatcher {
    /// Waits for the slot of a claimed attempt if it comes soon. Otherwise releases the claim and returns false.
    pub(super) async fn reaches_its_slot(&self, claimed: &Claimed, webhook: &Webhook) -> Result<bool, DispatchError> {
        let Some(limit) = webhook.rate_limit else { return Ok(true) };
        let now = self.clock.now();
        let slot = match claimed.slot().filter(|slot| slot.since == limit.since) {
            Some(slot) if slot.is_valid(limit, now) => slot,
            missed => self.deliveries.reserve_slot(&webhook.id, limit, missed, now).await?,
        };
        // A person is waiting for a test. Later deliveries make room, so that the limit holds on average.
        let wait = if claimed.delivery().test { Duration::ZERO } else { slot.at.since(now) };
        if wait <= WAITS_IN_MEMORY {
            pause(wait).await;
            return Ok(true);
        }
        // Messages are delayed by whole seconds. This one arrives up to a second before the slot, never after it.
        let until = slot.claimable_at(now);
        self.wait(claimed, Wait::Slot(slot), (until, Some(webhook)), now).await?;
        Ok(false)
    }
}
