//! The order of a webhook's deliveries. Before its first attempt, a delivery is held until all earlier deliveries about
//! its subject are final. The attempt after an interrupted one is held as well, since the interrupted request may never
//! have been sent. Other retries and requested attempts are not held.

use crate::{
    deliveries::{
        dispatch::dispatcher::Dispatcher,
        queue::Lane,
        state::{index::AnnouncedBy, transition::Transition},
        store::{
            claim::Claimed,
            held::{Ended, Waker, Woken},
        },
    },
    subscriptions::Webhook,
};
use base::{DeliveryId, Time};
use storage::TableError;

impl Dispatcher {
    /// Makes a claimed delivery wait until the preceding one is final.
    pub(super) async fn hold(
        &self,
        claimed: &Claimed,
        before: &DeliveryId,
        webhook: &Webhook,
        now: Time,
    ) -> Result<(), TableError> {
        self.deliveries.end_claim(claimed, Transition::Hold { before }, now).await?;
        self.after_holding(&claimed.delivery().id, before, webhook).await
    }

    /// Checks the preceding delivery again. If it became final before this one was held, its worker did not wake this
    /// one.
    pub(super) async fn after_holding(
        &self,
        delivery: &DeliveryId,
        before: &DeliveryId,
        webhook: &Webhook,
    ) -> Result<(), TableError> {
        tracing::info!(
            deliveryId = %delivery,
            %before,
            "held: the previous delivery for the same subject is not final"
        );
        let now = self.clock.now();
        let open = self.deliveries.open_before(before, now).await?;
        if open.as_ref() != Some(before) {
            // If another earlier delivery is open now, the attempt holds this one again.
            let waker = Waker { by: before, in_turn: open.is_none(), announced_by: AnnouncedBy::Message };
            let woken = self.deliveries.wake(delivery, waker, webhook, now).await?;
            self.announce_woken(woken.woken(), webhook, now).await;
        }
        Ok(())
    }

    /// Wakes and announces the delivery held by another that has ended.
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
