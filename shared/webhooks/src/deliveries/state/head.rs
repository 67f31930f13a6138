//! A delivery's head: the delivery with its state, but without its event and its larger attempts.

use base::{DeliveryId, EventId, Time};

use crate::{
    deliveries::state::{
        Lease, Open, State, Wait,
        attempt::Attempt,
        delivery::{CancelReason, Delivery, Status},
        index::Index,
        times::{CLOCK_SKEW, OPENS_AFTER},
    },
    events::store::EventItem,
};

/// Maximum size of an attempt in the head, in bytes, attribute names included.
const MAX_INLINE: usize = 1024;

/// How many attempts without a known outcome do not count in the schedule: otherwise, a reader that crashes repeatedly
/// would use up the schedule in minutes.
pub(crate) const SPARED: u32 = 5;

/// A delivery's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub(crate) delivery: Delivery,
    pub(crate) state: State,
    /// Attempts made before the current schedule began.
    pub(crate) schedule_base: u32,
    /// How many attempts had no known outcome and did not count in the schedule: those of readers that did not answer,
    /// and of workers that died.
    pub(crate) unanswered: u32,
    /// Whether the first attempt was requested by a person or a replay, and so does not wait for the preceding
    /// deliveries.
    pub(crate) out_of_turn: bool,
    /// Attempts that are small enough for the head.
    pub(crate) attempts: Vec<Attempt>,
    /// Its positions in the indexes.
    pub(crate) index: Index,
    /// The end of its retention, in seconds since 1970.
    pub(crate) expires_at: i64,
    /// Whether the table has the head. If not, the head is derived from its event, and the first write inserts it.
    pub(crate) is_stored: bool,
}

impl Head {
    /// A delivery of an event in its initial state; `None` if the event has no such delivery.
    pub(crate) fn new(event: &EventItem, id: &DeliveryId) -> Option<Self> {
        let target = event.targets.get(id.ordinal()).filter(|_| id.event() == *event.id())?;
        let first_attempt = event.first_attempt();
        let created = event.id().time();
        let asked_at = event.is_test.then_some(first_attempt);
        let erased = event.erased_date;
        Some(Self {
            delivery: Delivery {
                attempt_count: 0,
                created_date: created,
                erased_date: erased,
                id: id.clone(),
                last_error: None,
                last_http_status: None,
                last_update: erased.unwrap_or(created),
                owner_identifier: event.owner_identifier.clone(),
                subject: event.subject.clone().filter(|_| erased.is_none()),
                test: event.is_test,
                r#type: event.r#type.clone(),
                url: target.url.clone(),
                webhook_identifier: target.webhook.clone(),
            },
            state: match erased {
                Some(_) => State::Cancelled(CancelReason::Erased),
                None => State::Open(Open { asked_at, ..Open::first(first_attempt) }),
            },
            schedule_base: 0,
            unanswered: 0,
            out_of_turn: false,
            attempts: Vec::new(),
            index: Index::default(),
            expires_at: event.expires_at,
            is_stored: false,
        })
    }

    /// A delivery that a replay adds to an event, due now; `None` as in [`Self::new`].
    pub(crate) fn replayed(event: &EventItem, id: &DeliveryId, now: Time) -> Option<Self> {
        let mut new = Self::new(event, id)?;
        if let State::Open(_) = new.state {
            new.state = State::Open(Open::first(now));
        }
        new.delivery.last_update = now;
        Some(Self { out_of_turn: true, ..new })
    }

    /// The delivery without its state.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The delivery's state as its owner sees it.
    pub(crate) fn status(&self) -> Status {
        self.state.status()
    }

    /// The delivery's event.
    pub fn event(&self) -> EventId {
        self.delivery.id.event()
    }

    /// The number of the next attempt, from 1.
    pub(crate) fn next_attempt(&self) -> u32 {
        self.delivery.attempt_count.saturating_add(1)
    }

    /// The lease of the next attempt.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.state.open()?.claim.lease.as_ref()
    }

    /// Whether this lease entitles its holder to the next attempt.
    pub(crate) fn is_leased_by(&self, lease: &str) -> bool {
        self.lease().is_some_and(|found| found.id == lease)
    }

    /// The earliest time of a claim; `None` if the delivery is final.
    pub(crate) fn claimable_at(&self) -> Option<Time> {
        self.state.open().map(Open::claimable_at)
    }

    /// When the next attempt is due; `None` if the delivery is final.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.state.open().map(|open| open.next)
    }

    /// Whether the delivery is final: it has no next attempt.
    pub(crate) fn is_final(&self) -> bool {
        self.state.open().is_none()
    }

    /// Whether the delivery is waiting for another one to become final.
    pub(crate) fn is_held(&self) -> bool {
        self.held_by().is_some()
    }

    /// The delivery that it is waiting for.
    pub(crate) fn held_by(&self) -> Option<&DeliveryId> {
        self.state.open()?.wait.before()
    }

    /// Whether it is in its webhook's feed, or was when someone requested an attempt.
    pub(crate) fn is_in_feed(&self) -> bool {
        self.state.open().is_some_and(|open| open.wait == Wait::Reader)
    }

    /// Whether the sweep has opened the delivery, or may have passed its event. Before that, an early retry leaves the
    /// due time and the index keys to the sweep, which saves writing them.
    pub(crate) fn is_opened(&self, now: Time) -> bool {
        self.index.due_at.is_some() || now >= self.delivery.created_date + OPENS_AFTER
    }

    /// Whether the delivery is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }

    /// The end of the delivery's retention.
    pub(crate) fn expires(&self) -> Time {
        Time::from_millis(self.expires_at.saturating_mul(1000))
    }

    /// The head without its event's content, if the content is erased but the erasure has not reached the head yet.
    pub(crate) fn erased_with_its_event(self, erased: Option<Time>) -> Self {
        let Some(erased) = erased.filter(|_| !self.is_erased()) else { return self };
        let attempts = self.attempts.into_iter().map(Attempt::without_answer).collect();
        let delivery = Delivery { subject: None, erased_date: Some(erased), ..self.delivery };
        Self { delivery, attempts, ..self }
    }

    /// Whether an attempt without a known outcome does not count in the schedule.
    pub(crate) fn spares_schedule(&self) -> bool {
        self.unanswered < SPARED
    }

    /// Whether its event's content is erased.
    pub(crate) fn is_erased(&self) -> bool {
        self.delivery.erased_date.is_some()
    }

    /// Whether the delivery may have ended before the preceding deliveries about its subject: it was cancelled while it
    /// could be held, or a person requested its first attempt.
    pub(crate) fn ended_early(&self) -> bool {
        let is_cancelled_unsent = self.status() == Status::Cancelled && self.delivery.may_be_first();
        self.is_final() && (self.out_of_turn || is_cancelled_unsent)
    }

    /// The end of the lease, while its holder may still record the attempt. Allows for clock skew.
    pub(crate) fn under_way_until(&self, now: Time) -> Option<Time> {
        self.lease().map(|lease| lease.until).filter(|end| now < *end + CLOCK_SKEW)
    }

    /// Whether a reader or a worker has already made the next attempt, with an unknown outcome. It is recorded before
    /// another attempt is made.
    pub(crate) fn has_unknown_outcome(&self) -> bool {
        self.state.open().is_some_and(|open| open.claim.unknown.is_some())
    }

    /// Whether a worker claimed the next attempt, and neither recorded its outcome nor released the claim before the
    /// end of the lease.
    pub(crate) fn is_abandoned(&self, now: Time) -> bool {
        let is_over = self.lease().is_some_and(|lease| lease.until <= now + CLOCK_SKEW);
        is_over && !self.has_unknown_outcome()
    }

    /// Whether an attempt is under way or has yet to be recorded.
    pub(crate) fn has_attempt_to_record(&self) -> bool {
        self.lease().is_some() || self.has_unknown_outcome()
    }

    /// Whether the next attempt is later than now, and unclaimed.
    pub(crate) fn waits(&self, now: Time) -> bool {
        self.state.open().is_some_and(|open| open.is_later(now))
    }

    /// Whether some attempts did not fit into the head.
    pub(crate) fn has_large_attempts(&self) -> bool {
        usize::try_from(self.delivery.attempt_count).unwrap_or(usize::MAX) > self.attempts.len()
    }

    /// Whether another attempt fits into the head.
    pub(crate) fn has_room_for(&self, attempt: &Attempt) -> bool {
        self.attempts.iter().chain([attempt]).map(Attempt::size).sum::<usize>() <= MAX_INLINE
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        deliveries::state::{
            Claim, Unknown,
            attempt::ErrorCode,
            times::{GRACE, LEASE},
        },
        events::{Event, catalogue, store::Target},
    };
    use auth::EntityId;
    use base::{WebhookId, testing::CountingRandom};
    use serde_json::value::RawValue;
    use std::time::Duration;

    pub const NOW: Time = Time::from_millis(1_795_167_900_000);
    pub const LATER: Time = Time::from_millis(1_795_167_960_000);

    /// A delivery that is in the table and due.
    pub fn head() -> Head {
        event_and_head("{}").1
    }

    impl Head {
        /// The head with its open state changed.
        pub(crate) fn opened(mut self, change: impl FnOnce(&mut Open)) -> Self {
            let State::Open(open) = &mut self.state else { panic!("{self:?} is final") };
            change(open);
            self
        }

        /// The head with a claim until this time.
        pub(crate) fn leased(self, until: Time) -> Self {
            let lease = Some(Lease { id: "worker".to_owned(), until });
            self.opened(|open| open.claim.lease = lease)
        }

        /// The head with its next attempt at this time.
        pub(crate) fn waiting(self, next: Time, wait: Wait) -> Self {
            self.opened(|open| (open.next, open.wait) = (next, wait))
        }

        /// The head in this state.
        pub(crate) fn with(self, state: State) -> Self {
            Self { state, ..self }
        }
    }

    /// An event with this data, and its delivery.
    pub fn event_and_head(data: &str) -> (Event, Head) {
        let random = CountingRandom::default();
        let entity = EntityId::parse("hotel").expect("an entity");
        let data = RawValue::from_string(data.to_owned()).expect("JSON");
        let kind = catalogue::find("booking.created").expect("it exists");
        let event = Event::new(EventId::new(NOW, &random), kind, NOW, entity.clone(), &data).expect("small");
        let target = Target::of(WebhookId::new(NOW, &random), "https://hooks.example.com/".to_owned());
        let item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        let head = Head::new(&item, &DeliveryId::of(&event.id, 0)).expect("it is a target");
        let index = Index::opened(&head, NOW + GRACE);
        (event, Head { index, is_stored: true, ..head })
    }

    /// An erased event, and its delivery as it was before.
    pub fn erased_event_and_head() -> (EventItem, Head) {
        let (event, head) = event_and_head("{}");
        let target = Target::of(head.delivery.webhook_identifier.clone(), head.delivery.url.clone());
        let mut item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        item.erased_date = Some(NOW);
        (item, head)
    }

    #[test]
    fn a_delivery_of_an_erased_event_is_cancelled_from_the_start() {
        let (event, head) = erased_event_and_head();
        let new = Head::new(&event, &head.delivery.id).expect("a target");
        assert!(new.is_final() && new.is_erased() && new.delivery.subject.is_none());
        assert_eq!(new.state, State::Cancelled(CancelReason::Erased));
    }

    #[test]
    fn a_delivery_of_a_test_event_says_so_and_any_other_has_no_such_member() {
        let (event, target) = (event_and_head("{}").0, head().delivery);
        let target = Target::of(target.webhook_identifier, target.url);
        for is_test in [true, false] {
            let event = Event { is_test, ..event.clone() };
            let item = EventItem::new(&event, vec![target.clone()], NOW, Duration::from_secs(60));
            let head = Head::new(&item, &DeliveryId::of(&event.id, 0)).expect("it is a target");
            let shown = serde_json::to_value(head.shown(NOW)).expect("JSON");
            assert_eq!(shown.get("test"), Some(&true.into()).filter(|_| is_test));
        }
    }

    #[test]
    fn a_replayed_delivery_is_due_now_out_of_turn_and_kept_as_long_as_its_event() {
        let (event, head) = event_and_head("{}");
        let target = Target::of(head.delivery.webhook_identifier.clone(), head.delivery.url.clone());
        let item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        let replayed = Head::replayed(&item, &head.delivery.id, LATER).expect("it is a target");
        assert_eq!((replayed.next_time(), replayed.delivery.last_update), (Some(LATER), LATER));
        assert_eq!((replayed.delivery.created_date, replayed.expires_at), (NOW, head.expires_at));
        assert!(replayed.out_of_turn && !replayed.is_stored);
        let (erased, head) = erased_event_and_head();
        assert!(Head::replayed(&erased, &head.delivery.id, LATER).expect("it is a target").is_final());
    }

    #[test]
    fn a_delivery_that_was_cancelled_while_it_could_be_held_ended_early() {
        let cancelled = |attempts: u32, error: Option<ErrorCode>| {
            let head = head();
            let delivery = Delivery { attempt_count: attempts, last_error: error, ..head.delivery };
            Head { delivery, state: State::Cancelled(CancelReason::Owner), ..head }
        };
        assert!(cancelled(0, None).ended_early());
        assert!(cancelled(1, Some(ErrorCode::Interrupted)).ended_early(), "its request may not have been sent");
        assert!(!cancelled(1, Some(ErrorCode::Timeout)).ended_early());
        let delivered = Head { state: State::Delivered, ..head() };
        assert!(!delivered.ended_early() && Head { out_of_turn: true, ..delivered }.ended_early());
        assert!(!head().ended_early());
    }

    #[test]
    fn a_delivery_is_kept_until_the_last_second_of_its_retention() {
        let head = head();
        assert!(head.is_kept(NOW + Duration::from_millis(59_999)));
        assert!(!head.is_kept(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn an_attempt_is_under_way_until_no_worker_can_record_it() {
        let leased = head().leased(NOW + LEASE);
        assert_eq!(leased.under_way_until(NOW), Some(NOW + LEASE));
        assert_eq!(leased.under_way_until(NOW + LEASE), Some(NOW + LEASE), "clocks differ");
        assert_eq!(leased.under_way_until(NOW + LEASE + CLOCK_SKEW), None, "its worker has died");
        assert_eq!(head().under_way_until(NOW), None);
    }

    #[test]
    fn an_attempt_is_abandoned_when_its_worker_can_no_longer_record_it() {
        let end = NOW + LEASE;
        let leased = head().leased(end);
        assert!(!leased.is_abandoned(NOW) && leased.is_abandoned(end));
        assert!(leased.has_attempt_to_record() && !leased.has_unknown_outcome());
        let released = head().opened(|open| open.claim = Claim::default());
        let known = [Unknown::Reader(NOW), Unknown::Worker(NOW)];
        let known = known.map(|unknown| leased.clone().opened(|open| open.claim.unknown = Some(unknown)));
        for head in known.into_iter().chain([released]) {
            assert!(!head.is_abandoned(end), "{head:?}");
            assert_eq!(head.has_attempt_to_record(), head.has_unknown_outcome());
        }
    }
}
