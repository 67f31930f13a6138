//! Deliveries of pull webhooks. The dispatcher puts them into their webhook's feed instead of sending them. It checks
//! unread deliveries from time to time, since the webhook may be removed or changed in the meantime.

use crate::{
    deliveries::{
        dispatch::dispatcher::Dispatcher,
        state::index::UNREAD_LIMIT,
        store::{Deliveries, claim::Claimed},
    },
    subscriptions::{Webhook, health::operational::WebhookUnread},
};
use base::Time;
use storage::{TableError, table::Transaction};

const PUTTING: &str = "putting a delivery into a feed";

impl Dispatcher {
    /// Puts a claimed delivery into its webhook's feed. Publishes an event if the delivery has been unread for a long
    /// time.
    pub(super) async fn put_into_feed(
        &self,
        claimed: &Claimed,
        webhook: &Webhook,
        now: Time,
    ) -> Result<(), TableError> {
        let change = Deliveries::into_feed(claimed, now)?;
        let delivery = claimed.delivery();
        let was_there = claimed.head().is_in_feed();
        if was_there && now.since(delivery.created_date) >= UNREAD_LIMIT && !delivery.is_operational() {
            let unread = WebhookUnread {
                webhook_identifier: &webhook.id,
                name: &webhook.name,
                delivery_identifier: &delivery.id,
                waiting_since: delivery.created_date,
                last_read_date: webhook.read_at,
            };
            let outbox_event = unread.outbox_event(&delivery.owner_identifier, now, &*self.random);
            let change = Transaction::new().with(change);
            if self.announcer.change(change, &webhook.id, &outbox_event, now).await?.is_done() {
                return Ok(());
            }
        } else if self.deliveries.table.until(claimed.deadline()).write_together(change, PUTTING).await?.is_done() {
            return Ok(());
        }
        // If the claim was lost, this write fails too. Otherwise, the event was erased in the meantime.
        self.deliveries.cancel_erased(claimed, now).await
    }
}
