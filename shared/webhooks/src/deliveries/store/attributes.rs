//! A delivery's head as an item in the table: how a state is stored, how a change is written, and the condition that
//! the item has not changed. No other file names the head's attributes; [`Delivery`] and [`Attempt`] are stored with
//! the names of their members.
//!
//! | item | pk / sk |
//! |---|---|
//! | head | `EVT#{event}` / `{delivery}` |
//! | large attempt | `DLV#{delivery}` / `ATT#0001` |
//! | next of its subject | `DLV#{delivery}` / `NEXT` (`events::line`) |
//!
//! The first write about a delivery inserts its head: usually the first claim or the sweep (`open.rs`), otherwise a wait,
//! a request, a replay or an erasure. Until then, the delivery is only a target of its event, and [`Head::new`] derives
//! its state.
//!
//! Attempts are stored in the head while it stays small, so that a single write of one unit records both. Larger
//! attempts are separate items, so that a change to the head never costs more than two units, regardless of the
//! history.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::deliveries::state::{
    Claim, Lease, Open, State, Unknown, Wait,
    attempt::Attempt,
    delivery::{CancelReason, Delivery, Status, WaitingFor},
    head::Head,
    index::{Index, IndexGroup},
    slot::Slot,
};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};
use storage::table::{Change, Condition, Put, Query, TableError, Write, absent, at_most, is, is_new, more, present};

/// The prefix of the sort keys of attempts.
pub(super) const ATTEMPT: &str = "ATT#";

/// The number of partitions in the index of due deliveries: each accepts 1 000 writes a second.
pub(crate) const DUE_SHARDS: u8 = 8;

/// The attributes of a head.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attributes {
    pk: String,
    sk: String,
    #[serde(flatten)]
    delivery: Delivery,
    status: Status,
    /// Release 1.0.0 stored no reason for a webhook that was disabled or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<CancelReason>,
    schedule_base: u32,
    sweeps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_attempt_date: Option<Time>,
    /// Present while the delivery is open, so that one comparison shows whether it can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimable_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handed_out_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resume_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_at: Option<Time>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    put_off: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held_by: Option<DeliveryId>,
    #[serde(flatten)]
    slot: Option<StoredSlot>,
    #[serde(default, skip_serializing_if = "is_zero")]
    unanswered: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    out_of_turn: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
    /// The partition of the index `byEntity`; present while the delivery is failed or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webhook_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
    expires_at: i64,
}

/// The attributes of a slot.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSlot {
    slot_at: Time,
    slot_since: Time,
    #[serde(default)]
    slot_missed_by: u32,
}

impl From<Slot> for StoredSlot {
    fn from(Slot { at, since, missed_by }: Slot) -> Self {
        Self { slot_at: at, slot_since: since, slot_missed_by: missed_by }
    }
}

impl From<StoredSlot> for Slot {
    fn from(StoredSlot { slot_at, slot_since, slot_missed_by }: StoredSlot) -> Self {
        Self { at: slot_at, since: slot_since, missed_by: slot_missed_by }
    }
}

impl Attributes {
    fn of(head: Head) -> Self {
        let Head { delivery, state, schedule_base, unanswered, out_of_turn, attempts, index, expires_at, .. } = head;
        let (pk, sk) = head_key(&delivery.id);
        let status = state.status();
        let is_undelivered = matches!(status, Status::Failed | Status::Cancelled);
        let attributes = Self {
            pk,
            sk,
            status,
            cancel_reason: state.cancel_reason(),
            schedule_base,
            sweeps: index.sweeps,
            next_attempt_date: None,
            claimable_at: None,
            lease: None,
            handed_out_at: None,
            interrupted_at: None,
            resume_at: None,
            asked_at: None,
            put_off: false,
            waiting_for: None,
            held_by: None,
            slot: None,
            unanswered,
            out_of_turn,
            attempts,
            entity_key: is_undelivered.then(|| undelivered_key(&delivery.owner_identifier)),
            webhook_key: index.group.map(|group| group.key(&delivery.webhook_identifier)),
            due_shard: index.due_at.map(|_| due_shard(&delivery.id)),
            due_at: index.due_at,
            expires_at,
            delivery,
        };
        match state {
            State::Open(open) => attributes.with(open),
            State::Delivered | State::Failed | State::Cancelled(_) => attributes,
        }
    }

    fn with(self, open: Open) -> Self {
        let (handed_out_at, interrupted_at) = match open.claim.unknown {
            Some(Unknown::Reader(since)) => (Some(since), None),
            Some(Unknown::Worker(since)) => (None, Some(since)),
            None => (None, None),
        };
        Self {
            next_attempt_date: Some(open.next),
            claimable_at: Some(open.claimable_at()),
            handed_out_at,
            interrupted_at,
            resume_at: open.resume_at,
            asked_at: open.asked_at,
            put_off: open.is_put_off(),
            waiting_for: stored_wait(&open.wait),
            held_by: open.wait.before().cloned(),
            slot: open.wait.slot().map(StoredSlot::from),
            lease: open.claim.lease.map(|lease| lease.id),
            ..self
        }
    }

    /// The stored state; `None` if the attributes contradict each other.
    fn state(&self) -> Option<State> {
        Some(match self.status {
            Status::Pending | Status::Retrying => {
                let until = self.claimable_at?;
                let lease = self.lease.clone().map(|id| Lease { id, until });
                let next = if lease.is_some() { self.next_attempt_date? } else { until };
                let unknown = self.interrupted_at.map(Unknown::Worker).or(self.handed_out_at.map(Unknown::Reader));
                State::Open(Open {
                    next,
                    is_retry: self.status == Status::Retrying,
                    wait: self.wait(),
                    resume_at: self.resume_at,
                    asked_at: self.asked_at,
                    claim: Claim { lease, unknown },
                })
            }
            Status::Delivered => State::Delivered,
            Status::Failed => State::Failed,
            Status::Cancelled => State::Cancelled(self.cancel_reason.unwrap_or(CancelReason::WebhookDisabled)),
        })
    }

    fn wait(&self) -> Wait {
        if let Some(before) = &self.held_by {
            return Wait::Before(before.clone());
        }
        match (self.waiting_for, self.slot) {
            (Some(WaitingFor::Breaker), _) => Wait::Breaker,
            (Some(WaitingFor::Pause), _) => Wait::Pause,
            (Some(WaitingFor::Reader), _) => Wait::Reader,
            (Some(WaitingFor::Rate), Some(slot)) => Wait::Slot(slot.into()),
            // An earlier release left `waitingFor: order` in place when a request ended a hold.
            (None | Some(WaitingFor::Order), _) if self.put_off => Wait::Content,
            (None | Some(WaitingFor::Limit | WaitingFor::Order | WaitingFor::Rate | WaitingFor::Schedule), _) => {
                Wait::Schedule
            }
        }
    }
}

/// The stored name of a wait. Waits for the schedule and for a permit are derived from times, and a wait for content is
/// `putOff` without a name.
fn stored_wait(wait: &Wait) -> Option<WaitingFor> {
    match wait {
        Wait::Breaker => Some(WaitingFor::Breaker),
        Wait::Pause => Some(WaitingFor::Pause),
        Wait::Slot(_) => Some(WaitingFor::Rate),
        Wait::Before(_) => Some(WaitingFor::Order),
        Wait::Reader => Some(WaitingFor::Reader),
        Wait::Schedule | Wait::Content => None,
    }
}

impl Serialize for Head {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Attributes::of(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let attributes = Attributes::deserialize(deserializer)?;
        let state = attributes.state().ok_or_else(|| D::Error::custom("an open delivery has no next attempt"))?;
        let group = attributes.webhook_key.as_deref().and_then(IndexGroup::of_key);
        Ok(Self {
            state,
            schedule_base: attributes.schedule_base,
            unanswered: attributes.unanswered,
            out_of_turn: attributes.out_of_turn,
            attempts: attributes.attempts,
            index: Index { group, due_at: attributes.due_at, sweeps: attributes.sweeps },
            expires_at: attributes.expires_at,
            is_stored: true,
            delivery: attributes.delivery,
        })
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A change to a stored head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeadChange(Change);

impl From<HeadChange> for Write {
    fn from(HeadChange(change): HeadChange) -> Self {
        change.into()
    }
}

impl From<HeadChange> for Change {
    fn from(HeadChange(change): HeadChange) -> Self {
        change
    }
}

/// The attributes that a change writes.
impl HeadChange {
    /// The difference between a head as it was read and its new form, with these positions in the indexes; `None`
    /// leaves them unchanged.
    pub(super) fn between(
        read: &Head,
        new: &Head,
        index: Option<Index>,
        doing: &'static str,
    ) -> Result<Self, TableError> {
        let new = Head { index: read.index, ..new.clone() };
        let change = Change::between(head_key(&read.delivery.id), (read, &new), doing)?;
        // A repeated change may write nothing; its conditions are still checked.
        let is_nothing = change.is_empty() && index.is_none();
        let change = if is_nothing { change.set("lastUpdate", new.delivery.last_update) } else { change };
        Ok(index.into_iter().fold(Self(change), |change, index| {
            change.placed(index, &new.delivery.id, &new.delivery.webhook_identifier)
        }))
    }

    /// Sets the positions in the indexes, regardless of those that were read: the sweep may move them at any time.
    fn placed(self, index: Index, id: &DeliveryId, webhook: &WebhookId) -> Self {
        Self(
            self.0
                .set_some("webhookKey", index.group.map(|group| group.key(webhook)))
                .set_or_remove("dueShard", index.due_at.map(|_| due_shard(id)))
                .set_or_remove("dueAt", index.due_at)
                .set("sweeps", index.sweeps),
        )
    }

    /// A claim, until this time, of a delivery that was not read.
    pub(super) fn claiming(id: &DeliveryId, lease: &str, until: Time) -> Self {
        Self(Change::of(head_key(id)).set("lease", lease).set("claimableAt", until))
    }

    /// The extension of a lease until this time.
    pub(super) fn extending(id: &DeliveryId, until: Time) -> Self {
        Self(Change::of(head_key(id)).set("claimableAt", until))
    }

    /// The end of the hold on a delivery that was not read: its next attempt is due now, or it is put into its feed.
    pub(super) fn waking(id: &DeliveryId, wait: &Wait, index: Index, webhook: &WebhookId, now: Time) -> Self {
        let change = Change::of(head_key(id))
            .set("nextAttemptDate", now)
            .set("claimableAt", now)
            .set("lastUpdate", now)
            .set_or_remove("putOff", (*wait != Wait::Schedule).then_some(true))
            .set_or_remove("waitingFor", stored_wait(wait).map(WaitingFor::as_str))
            .remove("heldBy");
        Self(change).placed(index, id, webhook)
    }

    /// The cancellation of an open delivery that was not read.
    pub(super) fn cancelling(id: &DeliveryId, reason: CancelReason, owner: (&EntityId, &WebhookId), now: Time) -> Self {
        let (entity, webhook) = owner;
        let change = Change::of(head_key(id))
            .set("status", Status::Cancelled.as_str())
            .set("cancelReason", reason.as_str())
            .set("entityKey", undelivered_key(entity))
            .set("webhookKey", IndexGroup::Unrecoverable.key(webhook))
            .set("lastUpdate", now);
        let open = [
            "nextAttemptDate",
            "claimableAt",
            "resumeAt",
            "askedAt",
            "putOff",
            "waitingFor",
            "heldBy",
            "slotAt",
            "slotSince",
            "slotMissedBy",
            "dueShard",
            "dueAt",
        ];
        Self(open.into_iter().fold(change, Change::remove))
    }

    /// A new due time.
    pub(super) fn due_at(id: &DeliveryId, due: Time) -> Self {
        Self(Change::of(head_key(id)).set("dueAt", due))
    }

    /// A new due time, after this number of postponements.
    pub(super) fn postponed(id: &DeliveryId, due: Time, sweeps: u32) -> Self {
        Self(Change::of(head_key(id)).set("dueAt", due).set("sweeps", sweeps))
    }

    /// A new group in the webhook's index.
    pub(super) fn in_group(id: &DeliveryId, group: IndexGroup, webhook: &WebhookId) -> Self {
        Self(Change::of(head_key(id)).set("webhookKey", group.key(webhook)))
    }
}

/// The conditions of a change.
impl HeadChange {
    fn only_if(self, condition: Condition) -> Self {
        Self(self.0.only_if(condition))
    }

    /// Requires that no claim, record or request has changed the delivery since it was read.
    pub(super) fn if_as_read(self, read: &Head) -> Self {
        let lease = read.lease().map(|lease| lease.id.as_str());
        self.if_attempts(read.delivery.attempt_count)
            .only_if(is("status", read.status().as_str()))
            .only_if(lease.map_or_else(|| absent("lease"), |lease| is("lease", lease)))
            .if_claimable_at(read)
    }

    /// Requires that the time at which it becomes claimable has not changed since it was read.
    pub(super) fn if_claimable_at(self, read: &Head) -> Self {
        let unchanged = read.claimable_at().map_or_else(|| absent("claimableAt"), |time| is("claimableAt", time));
        self.only_if(unchanged)
    }

    pub(super) fn if_leased(self, lease: &str) -> Self {
        self.only_if(is("lease", lease))
    }

    pub(super) fn if_unleased(self) -> Self {
        self.only_if(absent("lease"))
    }

    /// Requires that it can be claimed by now.
    pub(super) fn if_claimable(self, now: Time) -> Self {
        self.only_if(at_most("claimableAt", now))
    }

    /// Requires that it has no lease, or one that only serves to record an attempt without a known outcome.
    pub(super) fn if_unleased_or_unrecorded(self) -> Self {
        self.only_if(Condition::Any(vec![absent("lease"), present("handedOutAt"), present("interruptedAt")]))
    }

    /// Requires that no attempt by a reader or worker has yet to be recorded.
    pub(super) fn if_nothing_to_record(self) -> Self {
        self.if_unleased().only_if(absent("handedOutAt")).only_if(absent("interruptedAt"))
    }

    /// Requires that a reader holds it.
    pub(super) fn if_handed_out(self) -> Self {
        self.only_if(present("handedOutAt"))
    }

    pub(super) fn if_attempts(self, made: u32) -> Self {
        self.only_if(is("attemptCount", made))
    }

    /// Requires a time at which it can be claimed, which only a final delivery lacks.
    pub(super) fn if_open(self) -> Self {
        self.only_if(more("claimableAt", Time::from_millis(0)))
    }

    pub(super) fn if_held(self) -> Self {
        self.only_if(present("heldBy"))
    }

    pub(super) fn if_held_by(self, before: &DeliveryId) -> Self {
        self.only_if(is("heldBy", before.as_str()))
    }

    pub(super) fn if_not_erased(self) -> Self {
        self.only_if(absent("erasedDate"))
    }

    pub(super) fn if_kept(self, now: Time) -> Self {
        self.only_if(more("expiresAt", now.as_seconds()))
    }

    pub(super) fn if_expired(self, now: Time) -> Self {
        self.only_if(at_most("expiresAt", now.as_seconds()))
    }

    pub(super) fn if_in_group(self, group: IndexGroup, webhook: &WebhookId) -> Self {
        self.only_if(is("webhookKey", group.key(webhook)))
    }

    pub(super) fn if_due_at(self, due: Time) -> Self {
        self.only_if(is("dueAt", due))
    }

    pub(super) fn if_not_due(self) -> Self {
        self.only_if(absent("dueAt"))
    }

    pub(super) fn if_of(self, owner: &EntityId, webhook: &WebhookId) -> Self {
        self.only_if(is("ownerIdentifier", owner.as_str())).only_if(is("webhookIdentifier", webhook.as_str()))
    }
}

/// The write of a head that is not in the table, with these positions in the indexes.
pub(super) fn insertion(new: &Head, index: Option<Index>, doing: &'static str) -> Result<Put, TableError> {
    Ok(Put::item(&Head { index: index.unwrap_or_default(), ..new.clone() }, doing)?.only_if(is_new()))
}

/// An attempt that does not fit into the head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    pub(super) attempt: Attempt,
    expires_at: i64,
}

impl AttemptItem {
    /// A delivery's attempt, stored for as long as the delivery.
    pub(super) fn new(head: &Head, attempt: Attempt) -> Self {
        let pk = partition(&head.delivery.id);
        let expires_at = head.expires_at;
        Self { pk, sk: format!("{ATTEMPT}{:04}", attempt.attempt_number), attempt, expires_at }
    }

    /// The write that removes the parts of a stored response that may repeat the event's content; `None` if there are
    /// none.
    pub(super) fn erasing(id: &DeliveryId, sort_key: &str, attempt: &Attempt) -> Option<Change> {
        let change = Change::of((partition(id), sort_key.to_owned()));
        let change = change.set_some("error", attempt.error_without_reason()).remove("responseBody");
        attempt.has_answer().then(|| change.only_if(is("attemptNumber", attempt.attempt_number)))
    }
}

/// A head in the index of due deliveries.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DueEntry {
    #[serde(rename = "sk")]
    pub(crate) delivery: DeliveryId,
    pub(crate) due_at: Time,
    pub(crate) attempt_count: u32,
    pub(crate) webhook_identifier: WebhookId,
    /// How often the sweep has postponed it.
    pub(crate) sweeps: u32,
}

/// A group's deliveries in their webhook's index.
pub(crate) fn of_group(webhook: &WebhookId, group: IndexGroup) -> Query {
    Query::index("byWebhook", "webhookKey", group.key(webhook))
}

/// An entity's failed and cancelled deliveries, whose webhooks may be gone.
pub(crate) fn undelivered(entity: &EntityId) -> Query {
    Query::index("byEntity", "entityKey", undelivered_key(entity))
}

/// The index entries with one of these states and this type.
pub(crate) fn filtered(query: Query, statuses: &[Status], kind: Option<&str>) -> Query {
    let statuses = statuses.iter().map(|status| is("status", status.as_str())).reduce(Condition::or);
    let kind = kind.map(|kind| is("type", kind));
    statuses.into_iter().chain(kind).fold(query, Query::only)
}

fn undelivered_key(entity: &EntityId) -> String {
    format!("UNDELIVERED#{entity}")
}

/// The partition of a delivery's large attempts.
pub(super) fn partition(id: &DeliveryId) -> String {
    format!("DLV#{id}")
}

/// The key of a delivery's head. An event's deliveries share a partition.
pub(super) fn head_key(id: &DeliveryId) -> (String, String) {
    (format!("EVT#{}", id.event()), id.to_string())
}

/// The key of this shard in the index of due deliveries.
pub(super) fn shard_key(shard: u8) -> String {
    format!("DUE#{shard}")
}

/// A delivery's shard. The characters before the last two are random. The sum of several characters spreads evenly
/// across the shards, which a single one of 32 letters would not.
fn due_shard(id: &DeliveryId) -> String {
    let sum = id.as_str().bytes().rev().take(8).fold(0u8, u8::wrapping_add);
    shard_key(sum % DUE_SHARDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        head::tests::{NOW, head},
        transition::tests::heads,
        wait::tests::each,
    };
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn stored(head: &Head) -> Value {
        serde_json::to_value(head).expect("JSON")
    }

    fn read(item: Value) -> Head {
        serde_json::from_value(item).expect("a head")
    }

    proptest! {
        #[test]
        fn a_delivery_is_read_as_it_was_stored(head in heads()) {
            let item = stored(&head);
            let again = read(item.clone());
            prop_assert_eq!(stored(&again), item);
            prop_assert_eq!(again, head);
        }

        #[test]
        fn a_change_makes_the_new_head_of_the_one_that_was_read(read in heads(), new in heads()) {
            let new = Head { index: read.index, ..new };
            let change: Change = HeadChange::between(&read, &new, None, "testing").expect("a change").into();
            prop_assert_eq!(change.applied(&read), new);
        }

        #[test]
        fn a_change_is_never_empty(head in heads()) {
            let change = Change::from(HeadChange::between(&head, &head, None, "testing").expect("a change"));
            prop_assert!(!change.is_empty() && change.applied(&head) == head);
        }

        #[test]
        fn a_change_writes_the_given_places_over_any_others(head in heads(), other in heads()) {
            let change = HeadChange::between(&head, &head, Some(other.index), "testing").expect("a change");
            let moved = Change::from(change).applied(&head);
            let group = other.index.group.or(head.index.group);
            prop_assert_eq!(moved.index, Index { group, ..other.index });
        }
    }

    #[test]
    fn each_reason_to_wait_is_read_as_it_was_stored() {
        for wait in each() {
            let waiting = head().waiting(NOW, wait);
            assert_eq!(read(stored(&waiting)).state, waiting.state);
        }
    }

    #[test]
    fn a_change_without_a_read_is_the_same_as_the_transition() {
        let held = head().waiting(NOW, Wait::Before(head().delivery.id));
        let webhook = &held.delivery.webhook_identifier;
        for wait in [Wait::Schedule, Wait::Reader] {
            let change = HeadChange::waking(&held.delivery.id, &wait, held.index, webhook, NOW);
            let woken = Change::from(change).applied(&held);
            assert_eq!(woken.state, held.clone().waiting(NOW, wait).state);
        }
        let owner = (&held.delivery.owner_identifier, webhook);
        let change = HeadChange::cancelling(&held.delivery.id, CancelReason::WebhookRemoved, owner, NOW);
        let cancelled = Change::from(change).applied(&held);
        assert_eq!(cancelled.state, State::Cancelled(CancelReason::WebhookRemoved));
        assert_eq!((cancelled.index.due_at, cancelled.index.group), (None, Some(IndexGroup::Unrecoverable)));
        assert_eq!(
            stored(&cancelled),
            stored(&Head { index: cancelled.index, ..cancelled.clone() }),
            "nothing is left"
        );
    }

    #[test]
    fn a_cancelled_delivery_of_the_first_release_counts_as_disabled() {
        let mut item = stored(&head().with(State::Cancelled(CancelReason::WebhookRemoved)));
        item.as_object_mut().expect("an object").remove("cancelReason");
        assert_eq!(read(item).state, State::Cancelled(CancelReason::WebhookDisabled));
    }

    #[test]
    fn a_hold_that_a_request_ended_is_still_put_off() {
        let mut item = stored(&head());
        item["putOff"] = json!(true);
        item["waitingFor"] = json!("order");
        assert_eq!(read(item).state.open().map(|open| open.wait.clone()), Some(Wait::Content));
    }

    #[test]
    fn an_open_delivery_without_a_time_is_unreadable() {
        let mut item = stored(&head());
        item.as_object_mut().expect("an object").remove("claimableAt");
        assert!(serde_json::from_value::<Head>(item).is_err());
    }
}
