//! Deliveries as items: a small head that changes, attempts that are only added, and the keys of the indexes.
//!
//! | item | pk / sk |
//! |---|---|
//! | head | `DLV#{delivery}` / `HEAD` |
//! | large attempt | `DLV#{delivery}` / `ATT#0001` |
//! A head is in the index `byOwner` for listing, in `byDue` while the delivery is open, and in `byWebhook` while the
//! delivery is in an [`IndexGroup`].
//!
//! Attempts are stored in the head while it stays small: then one write of one unit records both. Larger attempts are
//! separate items, so that a change of the head never costs more than two units, regardless of its history.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{Delivery, Status},
        lease_times::{GRACE, MAX_DELAY},
        store::{
            index_group::IndexGroup,
            listed_status::{LISTED, NEW, to_list},
        },
    },
    events::Event,
    subscriptions::Webhook,
};
use base::{DeliveryId, EventId, Time, WebhookId};
use storage::table::Change;

/// The most bytes of attempts in a head, with the names of their attributes.
const MAX_INLINE: usize = 1024;

/// How long the sweep leaves a new delivery of a slow webhook alone: less than a lease, so that a claim need not move
/// the due time.
const SLOW_GRACE: Duration = Duration::from_secs(20);
/// The initial `sweeps` of such a delivery, for which the sweep's next pause is 80 s.
const SLOW_SWEEPS: u32 = 3;

/// The number of partitions of the index of due deliveries: one takes 1 000 writes a second.
pub(crate) const DUE_SHARDS: u8 = 8;
/// The sort key of heads.
pub(crate) const HEAD: &str = "HEAD";

/// The head of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadItem {
    pub(crate) pk: String,
    pub(crate) sk: String,
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    pub(crate) event: EventId,
    /// Attempts made before the current schedule began.
    pub(crate) schedule_base: u32,
    /// How often the sweep has announced it since its last claim.
    pub(crate) sweeps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<String>,
    /// The earliest time at which the next attempt may be claimed: its time, or the end of the lease. Present while the
    /// delivery is open, so that one comparison decides a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claimable_at: Option<Time>,
    /// When the schedule continues, if the next attempt was requested by hand in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resume_at: Option<Time>,
    /// Whether the next attempt waits for a breaker, or for an event body that is not written yet, and not for its
    /// schedule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) put_off: bool,
    /// When a person requested the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_at: Option<Time>,
    /// Attempts that are small enough for the head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) entity_key: String,
    pub(crate) created_key: String,
    /// The state in the index of the entity's deliveries.
    pub(crate) listed_status: String,
    /// Its [`IndexGroup`], while it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<Time>,
    pub(crate) expires_at: i64,
}

impl HeadItem {
    /// The head of a new delivery.
    pub fn new(event: &Event, webhook: &Webhook, first_attempt: Time, retention: Duration) -> Self {
        let id = DeliveryId::of(&event.id, &webhook.id);
        let created = event.timestamp;
        // A delivery to a slow webhook may wait for a permit, so the sweep announces it later than others. A first
        // attempt beyond the longest delay of a message starts with `sweeps` at 1 (`transition.rs`).
        let (grace, sweeps) = match webhook.is_slow(created) {
            true => (SLOW_GRACE, SLOW_SWEEPS),
            false => (GRACE, u32::from(first_attempt.since(created) > MAX_DELAY)),
        };
        // A delivery that waits for its first attempt is listed as pending at once.
        let listed_as = if first_attempt > created + GRACE { Status::Pending.as_str() } else { NEW };
        Self {
            pk: partition(&id),
            sk: HEAD.to_owned(),
            event: event.id.clone(),
            schedule_base: 0,
            sweeps,
            lease: None,
            claimable_at: Some(first_attempt),
            resume_at: None,
            put_off: false,
            asked_at: event.asked_for.then_some(first_attempt),
            attempts: Vec::new(),
            entity_key: format!("ENT#{}", event.entity),
            created_key: format!("{created}#{id}"),
            listed_status: listed_as.to_owned(),
            webhook_key: IndexGroup::of(Status::Pending, 0, Some(first_attempt), created)
                .map(|group| group.key(&webhook.id)),
            due_shard: Some(due_shard(&id)),
            due_at: Some(first_attempt + grace),
            expires_at: (created + retention).as_seconds(),
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
                url: webhook.endpoint.shown_url(),
                waiting_for: None,
                webhook_identifier: webhook.id.clone(),
            },
        }
    }

    /// The delivery as its owner sees it at this moment.
    pub(crate) fn shown(self, now: Time) -> Delivery {
        Delivery { waiting_for: self.waiting_for(now), ..self.delivery }
    }

    /// Adds the listed status to a change to this state.
    pub(crate) fn listed(&self, status: Status, change: Change) -> Change {
        change.set_some(LISTED, to_list(status, &self.listed_status).map(Status::as_str))
    }

    /// The delivery as stored in the table.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The delivery's event.
    pub fn event(&self) -> &EventId {
        &self.event
    }

    /// Whether the delivery is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }

    /// Whether the current due time is at or soon after the next attempt. Then the due time stays, which saves two
    /// write units in the index. So a retry after seconds moves no due time, unless the attempt before it was late.
    pub(crate) fn is_swept_soon_after(&self, next_attempt: Time) -> bool {
        let soon = next_attempt..=next_attempt + GRACE;
        self.sweeps == 0 && self.due_at.is_some_and(|due| soon.contains(&due))
    }

    /// Whether the head has room for a further attempt.
    pub(crate) fn has_room_for(&self, attempt: &Attempt) -> bool {
        self.attempts.iter().chain([attempt]).map(Attempt::size).sum::<usize>() <= MAX_INLINE
    }
}

/// An attempt that has no room in the head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    pub(crate) attempt: Attempt,
    expires_at: i64,
}

impl AttemptItem {
    /// An attempt of a delivery, kept as long as the delivery.
    pub(crate) fn new(head: &HeadItem, attempt: Attempt) -> Self {
        let pk = head.pk.clone();
        let expires_at = head.expires_at;
        Self { pk, sk: format!("{ATTEMPT}{:04}", attempt.attempt_number), attempt, expires_at }
    }

    pub(crate) fn key(&self) -> (String, String) {
        (self.pk.clone(), self.sk.clone())
    }
}

/// The prefix of the sort keys of attempts.
pub(crate) const ATTEMPT: &str = "ATT#";

/// A head in the index of due deliveries.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DueEntry {
    pub(crate) pk: String,
    pub(crate) due_at: Time,
    pub(crate) attempt_count: u32,
    pub(crate) webhook_identifier: WebhookId,
    /// How often the sweep has announced it in vain.
    pub(crate) sweeps: u32,
}

/// The partition of a delivery.
pub(crate) fn partition(id: &DeliveryId) -> String {
    format!("DLV#{id}")
}

pub(crate) fn head_key(id: &DeliveryId) -> (String, String) {
    (partition(id), HEAD.to_owned())
}

/// The delivery with this partition key.
pub(crate) fn delivery_of(pk: &str) -> Option<DeliveryId> {
    DeliveryId::parse(pk.strip_prefix("DLV#")?)
}

/// The key of a shard of the index of due deliveries.
pub(crate) fn shard_key(shard: u8) -> String {
    format!("DUE#{shard}")
}

/// The shard of a delivery. The last characters of the identifier are random: one of 32 letters would not spread evenly
/// over the shards, the sum of several does.
pub(crate) fn due_shard(id: &DeliveryId) -> String {
    let sum = id.as_str().bytes().rev().take(6).fold(0u8, u8::wrapping_add);
    shard_key(sum % DUE_SHARDS)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::events::catalogue;
    use auth::EntityId;
    use base::testing::CountingRandom;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    pub const NOW: Time = Time::from_millis(1_795_167_900_000);
    pub const LATER: Time = Time::from_millis(1_795_167_960_000);

    pub fn head() -> HeadItem {
        event_and_head("{}").1
    }

    /// An event with these data, and its delivery.
    pub fn event_and_head(data: &str) -> (Event, HeadItem) {
        let random = CountingRandom::default();
        let entity = EntityId::parse("hotel").expect("an entity");
        let data = RawValue::from_string(data.to_owned()).expect("JSON");
        let kind = catalogue::find("booking.created").expect("it exists");
        let event = Event::new(EventId::new(NOW, &random), kind, NOW, entity.clone(), &data).expect("small");
        let webhook = webhook(WebhookId::new(NOW, &random), entity);
        let head = HeadItem::new(&event, &webhook, NOW, Duration::from_secs(60));
        (event, head)
    }

    fn webhook(id: WebhookId, owner_identifier: EntityId) -> Webhook {
        let mut webhook = serde_json::json!({
            "createdDate": NOW, "enabled": true, "eventList": [], "eventUrl": "https://hooks.example.com/",
            "headers": BTreeMap::<String, String>::new(), "id": id, "lastUpdate": NOW, "name": "test",
            "ownerIdentifier": owner_identifier, "version": 1,
        });
        serde_json::from_value(webhook.take()).expect("a webhook")
    }

    #[test]
    fn a_due_time_stays_if_it_is_at_or_soon_after_the_next_attempt() {
        let head = head();
        let due = head.due_at.expect("it is open");
        assert_eq!(due, NOW + GRACE);
        for (next, stays) in [(NOW, true), (due, true), (due + Duration::from_millis(1), false), (LATER, false)] {
            assert_eq!(head.is_swept_soon_after(next), stays, "{next}");
        }
        let later = HeadItem { due_at: Some(LATER), ..head.clone() };
        assert!(!later.is_swept_soon_after(NOW), "a lost message would be noticed late");
        assert!(!HeadItem { sweeps: 1, ..head }.is_swept_soon_after(NOW), "the sweep counts from zero again");
    }

    #[test]
    fn a_delivery_is_kept_until_the_last_second_of_its_retention() {
        let head = head();
        assert!(head.is_kept(NOW + Duration::from_millis(59_999)));
        assert!(!head.is_kept(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn a_first_attempt_that_no_message_announces_counts_as_announced_once() {
        let (event, head) = event_and_head("{}");
        let webhook = webhook(head.delivery.webhook_identifier, head.delivery.owner_identifier);
        let sweeps = |wait: u64| {
            HeadItem::new(&event, &webhook, NOW + Duration::from_secs(wait), Duration::from_secs(60)).sweeps
        };
        assert_eq!([0, 900, 901].map(sweeps), [0, 0, 1]);
    }
}
