//! Deliveries as items: a small head that changes, attempts that are only added, and the keys of the indexes.
//!
//! | item | pk / sk |
//! |---|---|
//! | head | `EVT#{event}` / `{delivery}` |
//! | large attempt | `DLV#{delivery}` / `ATT#0001` |
//! | next of its subject | `DLV#{delivery}` / `NEXT` (`events::line`) |
//!
//! The first claim inserts the head, or the sweep does (`open.rs`). Until then, the delivery is only a target of its
//! event, and `HeadItem::new` derives its state. A head is in the index `byDue` while it has a due time, in `byWebhook`
//! once it was opened, held, put into a feed or recorded (an early retry changes no index), and in `byEntity` while it
//! has failed or is cancelled.
//!
//! Attempts are stored in the head while it stays small, so that one write of one unit records both. Larger attempts
//! are separate items, so that a change of the head never costs more than two units, regardless of its history.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{CancelReason, Delivery, Status, WaitingFor},
        lease_times::{CLOCK_SKEW, GRACE, LEASE, MAX_DELAY, OPENS_AFTER},
        store::{
            index_group::{self, IndexGroup},
            slot::Slot,
        },
        view::DeliveryView,
    },
    events::store::EventItem,
};
use base::{DeliveryId, EventId, Time, WebhookId};

/// The most bytes of attempts in a head, with the names of their attributes.
const MAX_INLINE: usize = 1024;

/// How many attempts without a known outcome use up none of the schedule: a reader that crashes again and again would use
/// it up in minutes.
pub(crate) const SPARED: u32 = 5;

/// The number of partitions of the index of due deliveries: one takes 1 000 writes a second.
pub(crate) const DUE_SHARDS: u8 = 8;

/// The head of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadItem {
    pub(crate) pk: String,
    pub(crate) sk: String,
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    /// Attempts made before the current schedule began.
    pub(crate) schedule_base: u32,
    /// How often the sweep has postponed the due time since it was set. Starts at 1 if no message announces the
    /// attempt.
    pub(crate) sweeps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<String>,
    /// The earliest time at which the next attempt may be claimed: its time, or the end of the lease. Present while the
    /// delivery is open, so that one comparison decides a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claimable_at: Option<Time>,
    /// When the schedule continues, if the next attempt was requested in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resume_at: Option<Time>,
    /// Whether the next attempt waits for something other than its schedule, such as a breaker, a slot, a reader, the
    /// delivery before it, or an event that is not written yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) put_off: bool,
    /// When a reader of the webhook's feed got the attempt that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handed_out_at: Option<Time>,
    /// When a worker claimed the attempt, if it ended without recording the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted_at: Option<Time>,
    /// How many attempts had no known outcome, and used up none of the schedule: those of readers that did not answer,
    /// and of workers that ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unanswered: u32,
    /// The slot of the next attempt, if its webhook has a rate limit and the attempt waits for it.
    #[serde(flatten)]
    pub(crate) slot: Option<Slot>,
    /// When a person requested the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_at: Option<Time>,
    /// Whether a person requested the first attempt, which does not wait for the deliveries before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) out_of_turn: bool,
    /// Attempts that are small enough for the head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attempts: Vec<Attempt>,
    /// Its entity's partition of the index `byEntity`, while it has failed or is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entity_key: Option<String>,
    /// Its [`IndexGroup`], once it is in the index `byWebhook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<Time>,
    pub(crate) expires_at: i64,
}

impl HeadItem {
    /// The state of a delivery of an event that no worker has claimed yet; `None` if the event has no such delivery.
    pub(crate) fn new(event: &EventItem, id: &DeliveryId) -> Option<Self> {
        let target = event.targets.get(id.ordinal()).filter(|_| id.event() == *event.id())?;
        let first_attempt = event.first_attempt();
        let created = event.id().time();
        let (pk, sk) = head_key(id);
        let new = Self {
            pk,
            sk,
            schedule_base: 0,
            sweeps: 0,
            lease: None,
            claimable_at: Some(first_attempt),
            resume_at: None,
            put_off: false,
            handed_out_at: None,
            interrupted_at: None,
            unanswered: 0,
            slot: None,
            asked_at: event.is_test.then_some(first_attempt),
            out_of_turn: false,
            attempts: Vec::new(),
            entity_key: None,
            webhook_key: None,
            due_shard: None,
            due_at: None,
            expires_at: event.expires_at,
            delivery: Delivery {
                attempt_count: 0,
                cancel_reason: None,
                created_date: created,
                erased_date: None,
                held_by: None,
                id: id.clone(),
                last_error: None,
                last_http_status: None,
                last_update: created,
                next_attempt_date: Some(first_attempt),
                owner_identifier: event.owner_identifier.clone(),
                status: Status::Pending,
                subject: event.subject.clone(),
                test: event.is_test,
                r#type: event.r#type.clone(),
                url: target.url.clone(),
                waiting_for: None,
                webhook_identifier: target.webhook.clone(),
            },
        };
        Some(match event.erased_date {
            Some(erased) => new.cancelled_by_erasing(erased),
            None => new,
        })
    }

    /// The head of a delivery that no worker has claimed when its event is erased.
    fn cancelled_by_erasing(self, erased: Time) -> Self {
        let cancelled = self.cancelled(CancelReason::Erased, erased);
        let delivery = Delivery { erased_date: Some(erased), subject: None, ..cancelled.delivery };
        Self { delivery, ..cancelled }
    }

    /// The cancelled head of a delivery that no worker has claimed: final, so that none claims it later.
    pub(crate) fn cancelled(self, reason: CancelReason, now: Time) -> Self {
        let delivery = Delivery {
            cancel_reason: Some(reason),
            last_update: now,
            next_attempt_date: None,
            status: Status::Cancelled,
            ..self.delivery
        };
        let webhook_key = Some(IndexGroup::Unrecoverable.key(&delivery.webhook_identifier));
        let entity_key = index_group::entity_key(Status::Cancelled, &delivery.owner_identifier);
        Self { claimable_at: None, asked_at: None, entity_key, webhook_key, delivery, ..self }
    }

    /// The head, claimed with this lease.
    pub(crate) fn claimed(self, lease: &str, now: Time) -> Self {
        Self { lease: Some(lease.to_owned()), claimable_at: Some(now + LEASE), ..self }
    }

    /// The head with a due time, so that the sweep looks at it.
    pub(crate) fn due(self, now: Time) -> Self {
        let first_attempt = self.claimable_at.unwrap_or(now);
        // No message announces an attempt beyond the longest delay.
        let sweeps = u32::from(first_attempt.since(self.delivery.created_date) > MAX_DELAY);
        let due_shard = Some(due_shard(&self.delivery.id));
        let group = IndexGroup::of_open(Some(first_attempt), now);
        let webhook_key = Some(group.key(&self.delivery.webhook_identifier));
        Self { due_at: Some(first_attempt.max(now)), due_shard, sweeps, webhook_key, ..self }
    }

    /// The head, waiting in the feed of its webhook.
    pub(crate) fn unread(self, now: Time) -> Self {
        let Self { delivery, .. } = &self;
        let webhook_key = Some(IndexGroup::Unread.key(&delivery.webhook_identifier));
        let due_shard = Some(due_shard(&delivery.id));
        let due_at = Some(next_look(delivery.created_date, now));
        let delivery = Delivery { waiting_for: Some(WaitingFor::Reader), ..self.delivery };
        Self { delivery, put_off: true, sweeps: 1, due_at, due_shard, webhook_key, ..self }
    }

    /// The head, held until this delivery before it is final.
    pub(crate) fn held(self, before: &DeliveryId, now: Time) -> Self {
        let Self { delivery, .. } = &self;
        let look = next_look_at_held(delivery.created_date, now);
        let webhook_key = Some(IndexGroup::Waiting.key(&delivery.webhook_identifier));
        let due_shard = Some(due_shard(&delivery.id));
        let delivery = Delivery {
            held_by: Some(before.clone()),
            next_attempt_date: Some(look),
            waiting_for: Some(WaitingFor::Order),
            ..self.delivery
        };
        let (claimable_at, due_at) = (Some(look), Some(look));
        Self { delivery, put_off: true, sweeps: 1, claimable_at, due_at, due_shard, webhook_key, ..self }
    }

    /// The delivery as its owner sees it at this moment.
    pub(crate) fn shown(self, now: Time) -> DeliveryView {
        let waiting_for = self.waiting_for(now);
        // A reader may get it at any time, and the delivery before may become final at any time.
        let has_no_time = matches!(waiting_for, Some(WaitingFor::Reader | WaitingFor::Order));
        let next = self.delivery.next_attempt_date.filter(|_| !has_no_time);
        let slot = self.slot.filter(|_| waiting_for == Some(WaitingFor::Rate)).map(|slot| slot.at);
        let next_attempt_date = slot.or(next);
        let held_by = self.delivery.held_by.filter(|_| waiting_for == Some(WaitingFor::Order));
        DeliveryView::of(Delivery { waiting_for, next_attempt_date, held_by, ..self.delivery })
    }

    /// The delivery as stored in the table.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The delivery's event.
    pub fn event(&self) -> EventId {
        self.delivery.id.event()
    }

    /// Whether the sweep has opened the delivery, or may have passed its event. Before that, an early retry leaves due
    /// time and index keys to the sweep, which saves their writes.
    pub(crate) fn is_opened(&self, now: Time) -> bool {
        self.due_at.is_some() || now >= self.delivery.created_date + OPENS_AFTER
    }

    /// Whether the delivery is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }

    /// Whether the current due time is at or soon after the next attempt. Then it stays, which saves two write units in
    /// the index: a retry after seconds moves no due time, unless the attempt before it was late.
    pub(crate) fn is_swept_soon_after(&self, next_attempt: Time) -> bool {
        let soon = next_attempt..=next_attempt + GRACE;
        self.sweeps == 0 && self.due_at.is_some_and(|due| soon.contains(&due))
    }

    /// Applies the erasure of the event, if it has not reached the head yet.
    pub(crate) fn erased_with_its_event(self, erased: Option<Time>) -> Self {
        let Some(erased) = erased.filter(|_| !self.is_erased()) else { return self };
        let attempts = self.attempts.into_iter().map(Attempt::without_answer).collect();
        let delivery = Delivery { subject: None, erased_date: Some(erased), ..self.delivery };
        Self { delivery, attempts, ..self }
    }

    /// Whether an attempt without a known outcome uses up none of the schedule.
    pub(crate) fn spares_schedule(&self) -> bool {
        self.unanswered < SPARED
    }

    /// Whether the content of its event is erased.
    pub(crate) fn is_erased(&self) -> bool {
        self.delivery.erased_date.is_some()
    }

    /// Whether the delivery is final: it has no next attempt.
    pub(crate) fn is_final(&self) -> bool {
        self.claimable_at.is_none()
    }

    /// Whether the delivery is held until another one is final.
    pub(crate) fn is_held(&self) -> bool {
        self.delivery.held_by.is_some()
    }

    /// Whether the delivery was cancelled before any attempt.
    pub(crate) fn is_cancelled_unsent(&self) -> bool {
        self.delivery.status == Status::Cancelled && self.delivery.attempt_count == 0
    }

    /// Whether the delivery ended without regard to those before it in the line of its subject.
    pub(crate) fn ended_early(&self) -> bool {
        self.is_final() && (self.out_of_turn || self.is_cancelled_unsent())
    }

    /// The end of the lease, while its holder may still record the attempt; clock skew is allowed for.
    pub(crate) fn under_way_until(&self, now: Time) -> Option<Time> {
        self.claimable_at.filter(|end| self.lease.is_some() && now < *end + CLOCK_SKEW)
    }

    /// Whether the next attempt was made before, by a reader or a worker of whom no outcome is known. It is recorded
    /// before another attempt is made.
    pub(crate) fn has_unknown_outcome(&self) -> bool {
        self.handed_out_at.is_some() || self.interrupted_at.is_some()
    }

    /// Whether a worker claimed the next attempt, and neither recorded its outcome nor released the claim before the
    /// end of the lease.
    pub(crate) fn is_abandoned(&self, now: Time) -> bool {
        let is_over = self.claimable_at.is_some_and(|end| end <= now + CLOCK_SKEW);
        self.lease.is_some() && !self.has_unknown_outcome() && is_over
    }

    /// Whether an attempt is under way, or is still to be recorded.
    pub(crate) fn has_attempt_to_record(&self) -> bool {
        self.lease.is_some() || self.has_unknown_outcome()
    }

    /// Whether some attempts had no room in the head.
    pub(crate) fn has_large_attempts(&self) -> bool {
        usize::try_from(self.delivery.attempt_count).unwrap_or(usize::MAX) > self.attempts.len()
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
        let pk = partition(&head.delivery.id);
        let expires_at = head.expires_at;
        Self { pk, sk: format!("{ATTEMPT}{:04}", attempt.attempt_number), attempt, expires_at }
    }
}

/// The age at which the dispatcher first looks again at a delivery in a feed. It then publishes an event about the
/// unread feed.
pub(crate) const UNREAD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The longest time between two looks at a delivery in a feed.
const LONGEST_LOOK: Duration = Duration::from_secs(24 * 60 * 60);

/// The time of the dispatcher's next look at a delivery in a feed: when its age has doubled, and at least every day.
/// Its webhook may have been removed, disabled or changed by then.
pub(crate) fn next_look(created: Time, now: Time) -> Time {
    let age = now.since(created);
    if age < UNREAD_LIMIT { created + UNREAD_LIMIT } else { now + age.min(LONGEST_LOOK) }
}

/// The longest time between two looks at a held delivery.
const LONGEST_LOOK_AT_HELD: Duration = Duration::from_secs(6 * 60 * 60);

/// The time of the dispatcher's next look at a held delivery. Usually the end of the delivery before it makes it due;
/// the look is for crashes, and for predecessors that the job of a removed webhook cancelled.
pub(crate) fn next_look_at_held(created: Time, now: Time) -> Time {
    now + now.since(created).clamp(OPENS_AFTER, LONGEST_LOOK_AT_HELD)
}

/// The prefix of the sort keys of attempts.
pub(crate) const ATTEMPT: &str = "ATT#";

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

/// The partition of a delivery's large attempts.
pub(crate) fn partition(id: &DeliveryId) -> String {
    format!("DLV#{id}")
}

/// The key of a delivery's head. The deliveries of an event share a partition.
pub(crate) fn head_key(id: &DeliveryId) -> (String, String) {
    (format!("EVT#{}", id.event()), id.to_string())
}

/// The key of a shard of the index of due deliveries.
pub(crate) fn shard_key(shard: u8) -> String {
    format!("DUE#{shard}")
}

/// The shard of a delivery. The characters before the last two are random: the sum of several spreads evenly over the
/// shards, which one of 32 letters would not.
pub(crate) fn due_shard(id: &DeliveryId) -> String {
    let sum = id.as_str().bytes().rev().take(8).fold(0u8, u8::wrapping_add);
    shard_key(sum % DUE_SHARDS)
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::events::{Event, catalogue, store::Target};
    use auth::EntityId;
    use base::testing::CountingRandom;
    use serde_json::value::RawValue;

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
        let target = Target::of(WebhookId::new(NOW, &random), "https://hooks.example.com/".to_owned());
        let item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        let head = HeadItem::new(&item, &DeliveryId::of(&event.id, 0)).expect("it is a target");
        (event, head.due(NOW + GRACE))
    }

    /// An erased event, and its delivery as it was before.
    pub fn erased_event_and_head() -> (EventItem, HeadItem) {
        let (event, head) = event_and_head("{}");
        let target = Target::of(head.delivery.webhook_identifier.clone(), head.delivery.url.clone());
        let mut item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        item.erased_date = Some(NOW);
        (item, head)
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
    fn a_delivery_of_a_test_event_says_so_and_any_other_has_no_such_member() {
        let (event, target) = (event_and_head("{}").0, head().delivery);
        let target = Target::of(target.webhook_identifier, target.url);
        for is_test in [true, false] {
            let event = Event { is_test, ..event.clone() };
            let item = EventItem::new(&event, vec![target.clone()], NOW, Duration::from_secs(60));
            let head = HeadItem::new(&item, &DeliveryId::of(&event.id, 0)).expect("it is a target");
            let shown = serde_json::to_value(head.shown(NOW)).expect("JSON");
            assert_eq!(shown.get("test"), Some(&true.into()).filter(|_| is_test));
        }
    }

    #[test]
    fn a_delivery_is_kept_until_the_last_second_of_its_retention() {
        let head = head();
        assert!(head.is_kept(NOW + Duration::from_millis(59_999)));
        assert!(!head.is_kept(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn an_attempt_is_abandoned_when_its_worker_can_no_longer_record_it() {
        let leased = HeadItem { lease: Some("worker".into()), claimable_at: Some(NOW + LEASE), ..head() };
        assert!(!leased.is_abandoned(NOW) && leased.is_abandoned(NOW + LEASE));
        let end = NOW + LEASE;
        assert!(leased.has_attempt_to_record() && !leased.has_unknown_outcome());
        for known in [
            HeadItem { lease: None, ..leased.clone() },
            HeadItem { handed_out_at: Some(NOW), ..leased.clone() },
            HeadItem { interrupted_at: Some(NOW), ..leased.clone() },
        ] {
            assert!(!known.is_abandoned(end), "{known:?}");
            assert_eq!(known.has_attempt_to_record(), known.has_unknown_outcome());
        }
    }

    #[test]
    fn a_first_attempt_that_no_message_announces_counts_as_announced_once() {
        let sweeps = |wait: u64| {
            let first_attempt = NOW + Duration::from_secs(wait);
            HeadItem { claimable_at: Some(first_attempt), ..head() }.due(NOW).sweeps
        };
        assert_eq!([0, 900, 901].map(sweeps), [0, 0, 1]);
    }
}
