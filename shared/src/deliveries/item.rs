//! Deliveries as items: a small head that changes, attempts that are only ever added, and the keys of both indexes.
//!
//! | item | pk / sk |
//! |---|---|
//! | head | `DLV#{delivery}` / `HEAD` |
//! | attempt | `DLV#{delivery}` / `ATT#0001` |
//!
//! A head stands in the index `byEntity` for listing, and in `byDue` for as long as something is due.

use serde::{Deserialize, Serialize};

use super::{Attempt, Delivery, GRACE, RETENTION, Status};
use crate::{
    auth::entity::EntityId,
    clock::Time,
    events::Event,
    ids::{DeliveryId, EventId},
    webhooks::Webhook,
};

/// How many partitions the index of due deliveries has: one takes 1 000 writes a second.
pub const DUE_SHARDS: u8 = 8;
/// The sort key of heads.
pub const HEAD: &str = "HEAD";

/// The head of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadItem {
    pub(super) pk: String,
    pub(super) sk: String,
    #[serde(flatten)]
    pub(super) delivery: Delivery,
    pub(super) event: EventId,
    /// Attempts made before the present schedule began.
    pub(super) schedule_base: u32,
    /// How often the sweep announced it since it was last claimed.
    pub(super) sweeps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease_until: Option<Time>,
    pub(super) entity_key: String,
    pub(super) created_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due_shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) due_at: Option<Time>,
    pub(super) expires_at: i64,
}

impl HeadItem {
    /// The head of a delivery that was just decided.
    pub fn new(id: DeliveryId, event: &Event, webhook: &Webhook, first_attempt: Time) -> Self {
        let created = event.timestamp;
        Self {
            pk: partition(&id),
            sk: HEAD.to_owned(),
            event: event.id.clone(),
            schedule_base: 0,
            sweeps: 0,
            lease: None,
            lease_until: None,
            entity_key: format!("ENT#{}", event.entity),
            created_key: format!("{created}#{id}"),
            due_shard: Some(due_shard(&id)),
            due_at: Some(first_attempt + GRACE),
            expires_at: (created + RETENTION).as_seconds(),
            delivery: Delivery {
                attempt_count: 0,
                created_date: created,
                id,
                last_http_status: None,
                last_update: created,
                next_attempt_date: Some(first_attempt),
                owner_identifier: event.entity.clone(),
                status: Status::Pending,
                r#type: event.kind.to_owned(),
                url: webhook.event_url.clone(),
                webhook_identifier: webhook.id.clone(),
            },
        }
    }
}

/// An attempt.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    pub(super) attempt: Attempt,
    expires_at: i64,
}

impl AttemptItem {
    /// An attempt of a delivery. It is kept for as long as its delivery.
    pub fn new(delivery: &Delivery, attempt: Attempt) -> Self {
        Self {
            pk: partition(&delivery.id),
            sk: format!("{ATTEMPT}{:04}", attempt.attempt_number),
            attempt,
            expires_at: (delivery.created_date + RETENTION).as_seconds(),
        }
    }
}

/// What the sort keys of attempts begin with.
pub const ATTEMPT: &str = "ATT#";

/// What the index of due deliveries shows of a head.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueEntry {
    /// The key of the head.
    pub pk: String,
    /// When it is due.
    pub due_at: Time,
    /// How many attempts were made.
    pub attempt_count: u32,
    /// How often it was announced in vain.
    pub sweeps: u32,
    /// Whose it is.
    pub owner_identifier: EntityId,
}

impl DueEntry {
    /// The delivery that is due.
    pub fn delivery(&self) -> Option<DeliveryId> {
        DeliveryId::parse(self.pk.strip_prefix("DLV#")?)
    }
}

/// The partition of a delivery.
pub fn partition(id: &DeliveryId) -> String {
    format!("DLV#{id}")
}

/// The key of a shard of the index of due deliveries.
pub fn shard_key(shard: u8) -> String {
    format!("DUE#{shard}")
}

/// The shard that a delivery stands in. The identifier's last character is as good as random.
pub fn due_shard(id: &DeliveryId) -> String {
    let last = id.as_str().bytes().last().unwrap_or_default();
    shard_key(last % DUE_SHARDS)
}
