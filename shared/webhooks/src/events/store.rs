//! Events in the table: their bodies, and the publications that idempotency keys stand for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::Event;
use auth::AuthorizedEntity;
use base::{DeliveryId, EventId, Time, WebhookId, trace::Trace};
use storage::table::{Put, Table, TableError, Written, at_most, is_new};

/// The largest body that shares its call with other writes, in bytes; a larger one would hold them up.
const MAX_SHARED: usize = 16 * 1024;

/// How long an idempotency key is remembered.
pub(crate) const IDEMPOTENCY_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// The events in the table.
#[derive(Debug, Clone)]
pub struct Events(Table);

/// The body of an event, one item for all its deliveries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BodyItem {
    pk: String,
    sk: String,
    body: String,
    /// As the header of this name has them. Events of former releases, and the service's own, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    expires_at: i64,
}

/// The stored part of an event that its deliveries send.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    pub(crate) body: String,
    /// The span in which it was published. An event that was published in none has a trace by its identifier, so that
    /// all attempts to deliver it are of one.
    pub(crate) trace: Trace,
    expires_at: i64,
}

impl StoredEvent {
    /// Whether the event is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }
}

/// The publication of an idempotency key: enough to do the same again and to answer the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Publication {
    pub(super) event: EventId,
    pub(super) timestamp: Time,
    /// SHA-256 of the request's body, in base 64.
    pub(super) request_hash: String,
    pub(super) deliveries: Vec<PlannedDelivery>,
}

/// One delivery of a publication.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlannedDelivery {
    #[serde(rename = "deliveryIdentifier")]
    pub(crate) delivery: DeliveryId,
    #[serde(rename = "webhookIdentifier")]
    pub(crate) webhook: WebhookId,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicationItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    publication: Publication,
    expires_at: i64,
}

impl Events {
    /// The events in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Keeps an event's body for its retention.
    pub(super) async fn keep(&self, event: &Event, retention: Duration) -> Result<(), TableError> {
        const DOING: &str = "keeping an event";
        let (pk, sk) = body_key(&event.id);
        let expires_at = (event.timestamp + retention).as_seconds();
        let traceparent = event.trace.as_ref().map(Trace::traceparent);
        let tracestate = event.trace.as_ref().and_then(Trace::tracestate).map(str::to_owned);
        let item = BodyItem { pk, sk, body: event.body.clone(), traceparent, tracestate, expires_at };
        let put = Put::item(&item, DOING)?.only_if(is_new());
        let kept = if event.body.len() <= MAX_SHARED {
            self.0.write_together(put, DOING).await
        } else {
            self.0.write(put, DOING).await
        };
        // A body that stands there already stays as it was first sent.
        kept.map(drop)
    }

    pub(crate) async fn find(&self, event: &EventId) -> Result<Option<StoredEvent>, TableError> {
        let item: Option<BodyItem> = self.0.read(body_key(event), "reading an event").await?;
        Ok(item.map(|BodyItem { body, traceparent, tracestate, expires_at, .. }| {
            let trace = Trace::read(traceparent.as_deref(), tracestate.as_deref());
            StoredEvent { body, trace: trace.unwrap_or_else(|| Trace::named(event.as_str())), expires_at }
        }))
    }

    /// Claims an idempotency key for a publication, or returns the publication that has it already.
    ///
    /// The first of several at once wins, and all of them go on with its publication. A key whose time is over is free,
    /// whether or not the table has removed it yet.
    pub(super) async fn claim_key(
        &self,
        entity: &AuthorizedEntity,
        key_hash: &str,
        publication: Publication,
        now: Time,
    ) -> Result<Publication, TableError> {
        const DOING: &str = "claiming an idempotency key";
        let item = PublicationItem {
            pk: format!("IDEMPOTENCY#{}#{key_hash}", entity.id()),
            sk: "PUBLICATION".into(),
            expires_at: (now + IDEMPOTENCY_MEMORY).as_seconds(),
            publication,
        };
        let put = Put::item(&item, DOING)?.only_if(is_new().or(at_most("expiresAt", now.as_seconds())));
        match self.0.put_and_read(put, DOING).await? {
            Written::Done(PublicationItem { publication, .. })
            | Written::Lost(Some(PublicationItem { publication, .. })) => Ok(publication),
            Written::Lost(None) => Err(TableError::Missing("the publication that holds an idempotency key")),
        }
    }
}

fn body_key(event: &EventId) -> (String, String) {
    (format!("EVT#{event}"), "BODY".to_owned())
}
