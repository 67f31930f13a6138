//! The order of a webhook's deliveries: before its first attempt, a delivery is held until those before it in the line
//! of its subject are final. Later and requested attempts are not held.

use crate::{
    deliveries::{
        delivery::WaitingFor,
        dispatch::{
            claim::Claimed,
            dispatcher::{DispatchError, Dispatcher},
            prefetch::Prefetch,
        },
        queue::Lane,
        store::held::{Ended, Woken},
    },
    events::store::EventItem,
    subscriptions::Webhook,
};
use base::{DeliveryId, Time};
use storage::TableError;

impl Dispatcher {
    /// Holds a new delivery by one write and without a claim, if the one before it is not final. Returns false
    /// otherwise, and if the delivery already has a head.
    pub(super) async fn held_without_claim(
        &self,
        prefetch: &Prefetch,
        delivery: &DeliveryId,
    ) -> Result<bool, TableError> {
        let webhook = prefetch.webhook().map(|found| &found.webhook).filter(|webhook| webhook.is_ordered());
        let event = prefetch.event.as_ref().filter(|event| event.item.erased_date.is_none());
        let (Some(webhook), Some(event)) = (webhook, event) else { return Ok(false) };
        let Some(before) = before(&event.item, delivery) else { return Ok(false) };
        let now = self.clock.now();
        let Some(open) = self.deliveries.open_before(before, now).await? else { return Ok(false) };
        if !self.deliveries.add_held(&event.item, delivery, &open, now).await? {
            return Ok(false);
        }
        self.after_holding(delivery, &open, webhook).await?;
        Ok(true)
    }

    /// Holds a claimed delivery if the one before it is not final. Returns whether it did.
    pub(super) async fn held(
        &self,
        claimed: &Claimed,
        webhook: &Webhook,
        event: &EventItem,
        now: Time,
    ) -> Result<bool, DispatchError> {
        let delivery = claimed.delivery();
        let is_first = claimed.may_be_first() && !claimed.is_requested();
        // A delivery was checked before it was put into the feed.
        let is_in_feed = delivery.waiting_for == Some(WaitingFor::Reader);
        if !webhook.is_ordered() || !is_first || is_in_feed {
            return Ok(false);
        }
        let Some(before) = before(event, &delivery.id) else { return Ok(false) };
        let Some(open) = self.deliveries.open_before(before, now).await? else { return Ok(false) };
        self.deliveries.release_held(claimed, &open, now).await?;
        self.after_holding(&delivery.id, &open, webhook).await?;
        Ok(true)
    }

    /// Checks the delivery before again. If it became final before this one was held, its worker did not wake this one.
    async fn after_holding(
        &self,
        delivery: &DeliveryId,
        before: &DeliveryId,
        webhook: &Webhook,
    ) -> Result<(), TableError> {
        tracing::info!(deliveryId = %delivery, %before, "held: the delivery before it about its subject is not final");
        let now = self.clock.now();
        let open = self.deliveries.open_before(before, now).await?;
        if open.as_ref() != Some(before) {
            // If another one is open now, the attempt holds this one again.
            let woken = self.deliveries.wake(delivery, (before, open.is_none()), webhook, now).await?;
            self.announce_woken(woken.woken(), webhook, now).await;
        }
        Ok(())
    }

    /// Wakes and announces the delivery that is held by one that ended.
    pub(super) async fn wake_next(&self, ended: Ended<'_>, webhook: &Webhook, now: Time) {
        let woken = self.deliveries.wake_next_or_log(ended, webhook, now).await;
        self.announce_woken(woken, webhook, now).await;
    }

    async fn announce_woken(&self, woken: Option<Woken>, webhook: &Webhook, now: Time) {
        if let Some(Woken::Due(message)) = woken {
            self.queue.announce(Lane::of(webhook.is_slow(now)), message, now, now).await;
        }
    }
}

/// The delivery before this one in the line of its subject.
fn before<'a>(event: &'a EventItem, delivery: &DeliveryId) -> Option<&'a DeliveryId> {
    event.targets.get(delivery.ordinal()).and_then(|target| target.after.as_ref())
}
