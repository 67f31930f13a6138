//! A delivery whose turn it is, with the facts about it.

use std::sync::Arc;

use crate::{
    deliveries::{
        dispatch::{counting::RecordedAttempt, prefetch::CurrentWebhook},
        queue::{Lane, message::AttemptMessage},
        state::decide::Facts,
        store::claim::Claimed,
    },
    events::store::StoredEvent,
    subscriptions::health::{breaker::HealthItem, tally::AttemptOutcome},
};
use auth::AuthorizedEntity;
use base::Time;

/// The webhook, event and health of a delivery that can be sent.
pub(super) struct Ready {
    pub(super) webhook: CurrentWebhook,
    pub(super) event: Arc<StoredEvent>,
    pub(super) health: Option<HealthItem>,
}

/// A claimed delivery with its owner, and its message with the lane that it came from.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) entity: &'a AuthorizedEntity,
    pub(super) claimed: &'a Claimed,
    pub(super) message: &'a AttemptMessage,
    pub(super) lane: Lane,
}

impl<'a> Turn<'a> {
    /// The facts about the delivery.
    pub(super) fn facts(
        self,
        webhook: Option<&'a CurrentWebhook>,
        event: Option<&'a StoredEvent>,
        health: Option<&'a HealthItem>,
        now: Time,
    ) -> Facts<'a> {
        Facts {
            head: self.claimed.head(),
            webhook: webhook.map(|current| &current.webhook.webhook),
            lane: self.lane,
            event: event.map(|event| &event.item),
            health,
            now,
        }
    }

    /// The recorded attempt, which has yet to be counted.
    pub(super) fn recorded(self, outcome: AttemptOutcome, health_before: Option<HealthItem>) -> RecordedAttempt {
        let delivery = self.claimed.delivery();
        RecordedAttempt {
            entity: self.entity.clone(),
            webhook: delivery.webhook_identifier.clone(),
            outcome,
            health_before,
            operational: delivery.is_operational(),
        }
    }
}
