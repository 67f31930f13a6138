//! Held deliveries: an ordered webhook gets the events about a subject one after another. A delivery is held until the
//! one before it in the line of its subject (`events::line`) is final.
//!
//! The worker that holds a delivery first writes so, and then checks the one before it again. The worker that ends the
//! one before it looks for a held delivery afterwards. So at least one of the two sees that the delivery can be sent.
//! An erasure does the same for the deliveries that it ends.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::{
    deliveries::{
        delivery::{Delivery, WaitingFor},
        lease_times::{CLAIM_LIMIT, CLOCK_SKEW, GRACE},
        queue::message::{AttemptMessage, DeliveryOwner},
        store::{
            Deliveries,
            index_group::IndexGroup,
            item::{HeadItem, due_shard, head_key, next_look},
            skip_unreadable,
        },
    },
    events::store::EventItem,
    subscriptions::Webhook,
};
use base::{DeliveryId, Time, WebhookId, logging};
use storage::table::{Change, Put, TableError, Written, absent, is, is_new, more};

/// The age from which a delivery without a head is opened by the next of its line. Unless the sweep lags, it has passed
/// the event: the publication wrote it late, and died before it opened its deliveries.
const UNOPENED_AFTER: Duration = Duration::from_secs(5 * 60);

const HOLDING: &str = "holding a delivery";
const WAKING: &str = "waking a held delivery";

/// A delivery that became due because the one before it is final.
#[derive(Debug)]
pub(crate) enum Woken {
    /// It is due, and the caller announces it with this message.
    Due(AttemptMessage),
    /// The feed of its webhook has it.
    InFeed,
}

impl Deliveries {
    /// Whether a delivery is final or gone, so that the next of its line may be sent. Opens it if nothing else will.
    pub(crate) async fn is_over(&self, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
        let consequence =
            "a delivery or its event cannot be read; the next delivery about its subject does not wait for it";
        match skip_unreadable(self.head(id).await, id, consequence)? {
            Some(Some(head)) => Ok(head.is_final() || !head.is_kept(now)),
            Some(None) => {
                let event = skip_unreadable(self.events.item(&id.event()).await, id, consequence)?.flatten();
                let Some(event) = event.filter(|event| event.is_kept(now)) else { return Ok(true) };
                let is_over = HeadItem::new(&event, id).is_none_or(|new| new.is_final());
                if !is_over && now.since(event.first_attempt()) > UNOPENED_AFTER {
                    self.open_forgotten(&event, now).await;
                }
                Ok(is_over)
            }
            None => Ok(true),
        }
    }

    /// Opens the deliveries of an event that are not open. If that fails, a later look tries again.
    async fn open_forgotten(&self, event: &EventItem, now: Time) {
        let failed = match timeout(CLAIM_LIMIT, self.open_missing(event, now)).await {
            Ok(opened) => opened.err().map(|error| logging::chain(&error)),
            Err(late) => Some(late.to_string()),
        };
        if let Some(error) = failed {
            tracing::warn!(error, eventId = %event.id(), "deliveries that nothing else opens were not opened");
        }
    }

    /// Holds a delivery without a head until `before` is final. Returns false if the delivery has a head already, is
    /// final or expired, or is not due.
    pub(crate) async fn add_held(
        &self,
        event: &EventItem,
        id: &DeliveryId,
        before: &DeliveryId,
        now: Time,
    ) -> Result<bool, TableError> {
        let head = HeadItem::new(event, id).filter(|head| head.is_kept(now) && !head.is_final());
        let Some(head) = head.filter(|_| event.first_attempt() <= now + CLOCK_SKEW) else { return Ok(false) };
        let put = Put::item(&head.held(before, now), HOLDING)?.only_if(is_new());
        Ok(self.table.until(Instant::now() + CLAIM_LIMIT).write_together(put, HOLDING).await?.is_done())
    }

    /// Wakes the delivery that is held by `last`, which is final. `None` if none is held: the attempt of the next one
    /// will find that `last` is final. Costs nothing for a webhook that is not ordered.
    pub(crate) async fn wake_next(
        &self,
        last: &Delivery,
        webhook: &Webhook,
        now: Time,
    ) -> Result<Option<Woken>, TableError> {
        // An erased delivery has lost its subject.
        let may_have_next = !last.test && (last.subject.is_some() || last.erased_date.is_some());
        if !webhook.is_ordered() || !may_have_next {
            return Ok(None);
        }
        let Some(next) = self.events.next_in_line(&last.id).await? else { return Ok(None) };
        self.wake(&next, &last.id, webhook, now).await
    }

    /// Makes the delivery `held` due, or puts it into the feed. `None` if `by` does not hold it.
    pub(crate) async fn wake(
        &self,
        held: &DeliveryId,
        by: &DeliveryId,
        webhook: &Webhook,
        now: Time,
    ) -> Result<Option<Woken>, TableError> {
        let in_feed = webhook.is_pulled() && webhook.enabled;
        let change = if in_feed {
            into_feed(held, webhook, now)
        } else {
            due_now(held, &webhook.id).set("dueAt", now + GRACE).set("sweeps", 0_u32)
        };
        let change = not_held(change, held, by, now);
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        let written: Written<HeadItem> = table.write_together_and_read(change, WAKING).await?;
        let is_own = |head: &HeadItem| head.delivery.held_by.is_none() && head.delivery.last_update == now;
        let Some(head) = written.or_own(is_own).done() else { return Ok(None) };
        tracing::info!(deliveryId = %held, before = %by, "woken: the delivery before it about its subject is final");
        if in_feed {
            return Ok(Some(Woken::InFeed));
        }
        let next = head.delivery.attempt_count.saturating_add(1);
        let message = AttemptMessage::new(held.clone(), next, DeliveryOwner::of(head.delivery()));
        Ok(Some(Woken::Due(message.since(webhook.last_update).waiting())))
    }

    /// Makes the delivery due that is held by `erased`. The sweep announces it, since an erasure has neither the
    /// webhook nor the queue. If `erased` is not final yet, the attempt holds the delivery again.
    pub(crate) async fn release_next(
        &self,
        erased: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<(), TableError> {
        let Some(next) = self.events.next_in_line(erased).await? else { return Ok(()) };
        // No message announces it, as for a delivery that a job makes due.
        let change = due_now(&next, webhook).set("dueAt", now).set("sweeps", 1_u32);
        let change = not_held(change, &next, erased, now);
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        if table.write_together(change, WAKING).await?.is_done() {
            tracing::info!(deliveryId = %next, before = %erased, "woken: the delivery before it is erased");
        }
        Ok(())
    }

    /// Wakes the next delivery like [`Self::wake_next`], but only logs an error: the dispatcher looks at held
    /// deliveries from time to time.
    pub(crate) async fn wake_next_or_log(&self, last: &Delivery, webhook: &Webhook, now: Time) -> Option<Woken> {
        match self.wake_next(last, webhook, now).await {
            Ok(woken) => woken,
            Err(error) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    deliveryId = %last.id,
                    "the next delivery about a subject was not woken; it is sent when the dispatcher looks at it again"
                );
                None
            }
        }
    }
}

/// Completes a change that ends the hold of a delivery, on condition that `by` still holds it.
fn not_held(change: Change, held: &DeliveryId, by: &DeliveryId, now: Time) -> Change {
    change
        .set("nextAttemptDate", now)
        .set("claimableAt", now)
        .set("dueShard", due_shard(held))
        .set("lastUpdate", now)
        .remove("heldBy")
        .only_if(is("heldBy", by.as_str()))
        // Any time matches: only a final delivery has none.
        .only_if(more("claimableAt", Time::from_millis(0)))
        .only_if(absent("erasedDate"))
        .only_if(absent("lease"))
}

/// The change of a held delivery that is to be sent, without its due time.
fn due_now(held: &DeliveryId, webhook: &WebhookId) -> Change {
    Change::of(head_key(held)).set("webhookKey", IndexGroup::Open.key(webhook)).remove("putOff").remove("waitingFor")
}

/// The change that puts a held delivery directly into its webhook's feed, without a dispatcher.
fn into_feed(held: &DeliveryId, webhook: &Webhook, now: Time) -> Change {
    Change::of(head_key(held))
        .set("dueAt", next_look(held.time(), now))
        .set("sweeps", 1_u32)
        .set("webhookKey", IndexGroup::Unread.key(&webhook.id))
        .set("putOff", true)
        .set("waitingFor", WaitingFor::Reader.as_str())
}
