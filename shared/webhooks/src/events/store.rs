//! Events in the table: their bodies, and the plans of idempotency keys.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::events::{event::Event, packed::Packed};
use base::{DeliveryId, EventId, Time, WebhookId, trace::Trace};
use storage::IdempotentRequest;
use storage::table::{Put, Table, TableError, Written, is_new};

/// The largest body that shares its call with other writes, in bytes; larger bodies would slow these down.
const MAX_SHARED: usize = 16 * 1024;

const KEEPING: &str = "keeping an event";
const READING: &str = "reading an event";

/// The events in the table.
#[derive(Debug, Clone)]
pub struct Events {
    table: Table,
}

/// The body of an event, one item for all its deliveries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BodyItem {
    pk: String,
    sk: String,
    /// The uncompressed body; absent if it is packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packed: Option<Packed>,
    /// The publisher's header of this name; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    expires_at: i64,
}

/// The stored part of an event that deliveries need.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    pub(crate) body: String,
    /// The span of its publication. Without a trace of the publisher it is derived from the event's identifier, for the
    /// log only.
    pub(crate) trace: Trace,
    expires_at: i64,
}

impl StoredEvent {
    /// An event with this body that was published in the span of these headers.
    pub(crate) fn of(
        event: &EventId,
        body: String,
        traceparent: Option<&str>,
        tracestate: Option<&str>,
        expires_at: i64,
    ) -> Self {
        let trace = Trace::read(traceparent, tracestate);
        Self { body, trace: trace.unwrap_or_else(|| Trace::derived_from(event.as_str())), expires_at }
    }

    /// Whether the event is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }
}

/// The plan of a publication with an idempotency key. A repetition carries out the same plan, and so gives the same
/// response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicationPlan {
    pub(super) event: EventId,
    pub(super) timestamp: Time,
    pub(super) deliveries: Vec<PlannedDelivery>,
}

/// One delivery of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlannedDelivery {
    #[serde(rename = "deliveryIdentifier")]
    pub(crate) delivery: DeliveryId,
    #[serde(rename = "webhookIdentifier")]
    pub(crate) webhook: WebhookId,
}

impl Events {
    /// The events in this table.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// The write that stores an event's body for its retention.
    pub(super) fn body(&self, event: &Event, retention: Duration) -> Result<Put, TableError> {
        let (pk, sk) = body_key(&event.id);
        let expires_at = (event.timestamp + retention).as_seconds();
        let traceparent = event.trace.as_ref().map(Trace::traceparent);
        let tracestate = event.trace.as_ref().and_then(Trace::tracestate).map(str::to_owned);
        let packed = Packed::of(&event.body);
        let body = packed.is_none().then(|| event.body.clone());
        let item = BodyItem { pk, sk, body, packed, traceparent, tracestate, expires_at };
        Ok(Put::item(&item, KEEPING)?.only_if(is_new()))
    }

    /// Stores an event's body for its retention. Lost if the body is stored already: the first version stays.
    pub(super) async fn keep(&self, event: &Event, retention: Duration) -> Result<Written<()>, TableError> {
        let put = self.body(event, retention)?;
        if event.body.len() <= MAX_SHARED {
            self.table.write_together(put, KEEPING).await
        } else {
            self.table.write(put, KEEPING).await
        }
    }

    pub(crate) async fn find(&self, event: &EventId) -> Result<Option<StoredEvent>, TableError> {
        self.table.read(body_key(event), READING).await?.map(|item| stored(event, item)).transpose()
    }

    /// An eventually consistent read of an event, at half the cost; also `None` when the event was written moments ago.
    /// A stored event never changes.
    pub(crate) async fn read_eventual(&self, event: &EventId) -> Result<Option<StoredEvent>, TableError> {
        self.table.read_eventual(body_key(event), READING).await?.map(|item| stored(event, item)).transpose()
    }

    /// Claims an idempotency key for a plan, or returns the earlier plan of the key; `None` if that had another body.
    pub(super) async fn claim_key(
        &self,
        once: &IdempotentRequest,
        plan: PublicationPlan,
        now: Time,
    ) -> Result<Option<PublicationPlan>, TableError> {
        once.claim(&self.table, plan, now).await
    }
}

fn stored(event: &EventId, item: BodyItem) -> Result<StoredEvent, TableError> {
    let BodyItem { body, packed, traceparent, tracestate, expires_at, .. } = item;
    let unpacked = |packed: Packed| {
        let key = Some(body_key(event).into());
        packed.text().map_err(|source| TableError::Item { doing: READING, key, source: Arc::new(source) })
    };
    let body = body.map(Ok).or_else(|| packed.map(unpacked));
    let body = body.ok_or(TableError::Missing("the body of an event"))??;
    Ok(StoredEvent::of(event, body, traceparent.as_deref(), tracestate.as_deref(), expires_at))
}

fn body_key(event: &EventId) -> (String, String) {
    (format!("EVT#{event}"), "BODY".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    #[test]
    fn a_body_that_cannot_be_unpacked_is_named_with_its_fault() {
        let event = EventId::new(Time::from_millis(0), &SystemRandom);
        let (pk, sk) = body_key(&event);
        let packed = Some(Packed::torn());
        let item = BodyItem { pk, sk, body: None, packed, traceparent: None, tracestate: None, expires_at: 0 };
        let fault = stored(&event, item).expect_err("no DEFLATE");
        assert!(
            matches!(&fault, TableError::Item { key: Some(key), .. } if key.partition.contains(event.as_str())),
            "{fault}"
        );
    }
}
