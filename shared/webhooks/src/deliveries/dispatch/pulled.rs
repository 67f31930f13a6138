//! Deliveries of pull webhooks. The dispatcher puts them into their webhook's feed instead of sending them. It checks
//! unread deliveries from time to time, since the webhook may be removed or changed in the meantime.

use crate::{
    deliveries::{
        dispatch::{
            counting::RecordedAttempt,
            dispatcher::{DispatchError, Dispatcher},
            turn::Turn,
        },
        feed::outcome::{Outcome, OutcomeRecorder},
        queue::Lane,
        state::{index::UNREAD_LIMIT, schedule::Next},
        store::{Deliveries, claim::Claimed, held::Ended},
    },
    subscriptions::{
        Webhook,
        health::{breaker::HealthItem, operational::WebhookUnread},
    },
};
use base::Time;
use storage::{TableError, table::Transaction};

const PUTTING: &str = "putting a delivery into a feed";

impl Dispatcher {
    /// Puts a claimed delivery into its webhook's feed. If the delivery has been there unread for a long time, this
    /// publishes an event.
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
        // Either the claim was lost, in which case this write fails as well, or the event was erased in the meantime.
        self.deliveries.cancel_erased(claimed, now).await
    }

    /// Records the attempt by a reader that did not confirm the delivery in time, or of a worker that died, and
    /// announces the next attempt.
    pub(super) async fn record_unknown_outcome(
        &self,
        turn: Turn<'_>,
        webhook: Option<&Webhook>,
        health: Option<HealthItem>,
        now: Time,
    ) -> Result<Option<RecordedAttempt>, DispatchError> {
        let claimed = turn.claimed;
        let recorder = OutcomeRecorder {
            deliveries: &self.deliveries,
            announcer: &self.announcer,
            schedule: self.schedule.of_webhook(webhook.map(|webhook| webhook.retries).unwrap_or_default()),
            random: &*self.random,
        };
        let ended = webhook.is_none_or(|webhook| !webhook.enabled);
        let unknown = Outcome::Unknown { in_feed: false, ended };
        let Some((outcome, next)) = recorder.record(claimed, &unknown, now).await? else { return Ok(None) };
        if let Next::RetryAt(time) = next {
            let message = claimed.message(claimed.attempt().saturating_add(1));
            self.queue.announce(Lane::Quick, message, time, now).await;
        } else if let Some(webhook) = webhook {
            // Its worker may have died before it checked the deliveries before this one, so the next one checks for
            // itself.
            self.wake_next(Ended::cancelled(claimed.head()), webhook, now).await;
        }
        Ok(Some(turn.recorded(outcome, health)))
    }
}
