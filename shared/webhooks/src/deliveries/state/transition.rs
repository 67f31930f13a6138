//! Transitions: how each event changes a delivery. `apply` is pure; the store writes the difference.

use base::{DeliveryId, Time};

use crate::deliveries::state::{
    Claim, Lease, Open, State, Unknown, Wait,
    attempt::{Attempt, ErrorCode},
    delivery::{CancelReason, Delivery},
    head::Head,
    index::next_look_at_held,
    schedule::Next,
    times::LEASE,
};

/// An event in a delivery's life.
#[derive(Debug, Clone)]
pub(crate) enum Transition<'a> {
    /// A worker claims the next attempt.
    Claim { lease: &'a str },
    /// A worker claims an attempt whose worker died without recording the outcome.
    TakeOver { lease: &'a str },
    /// A reader of the feed receives the delivery until this time.
    HandOut { lease: &'a str, until: Time },
    /// The worker releases its claim without an attempt.
    Release,
    /// The delivery waits without an attempt, and the dispatcher checks it at this time.
    PutOff { wait: Wait, until: Time },
    /// The delivery waits until this one is final.
    Hold { before: &'a DeliveryId },
    /// The delivery is put into its webhook's feed.
    PutIntoFeed,
    /// An attempt was made.
    Record { attempt: &'a Attempt, next: Next },
    /// The delivery ends without an attempt.
    Cancel(CancelReason),
    /// Its event's content was erased at this time.
    Erase(Time),
    /// A new schedule begins now.
    Reopen(Requester),
    /// The next attempt is due now. It is an additional one only if the schedule's attempt had yet to be made.
    Expedite(Requester),
}

/// Where a request to attempt a delivery again comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A person requested this delivery. The attempt waits neither for a breaker nor for the preceding deliveries, and
    /// the caller announces it.
    Person,
    /// A job makes many deliveries due, and the sweep announces them. They wait like any other delivery.
    Job,
}

impl Requester {
    fn asked_at(self, now: Time) -> Option<Time> {
        (self == Self::Person).then_some(now)
    }

    /// Whether the attempt may be the first one and does not wait for the preceding deliveries.
    fn is_out_of_turn(self, delivery: &Delivery) -> bool {
        self == Self::Person && delivery.may_be_first()
    }
}

/// The delivery after an event. An event that the delivery's state rules out has no effect: a final delivery is not
/// claimed, and an open one is not reopened.
pub(crate) fn apply(head: &Head, transition: Transition<'_>, now: Time) -> Head {
    let updated = || head.clone().updated(now);
    match (transition, head.state.clone()) {
        (Transition::Claim { lease }, State::Open(open)) => head.clone().in_state(open.leased(lease, now + LEASE)),
        (Transition::TakeOver { lease }, State::Open(open)) => head.clone().in_state(open.taken_over(lease, now)),
        (Transition::HandOut { lease, until }, State::Open(open)) => {
            let mut open = open.leased(lease, until);
            open.claim.unknown = Some(Unknown::Reader(now));
            head.clone().in_state(open)
        }
        (Transition::Release, State::Open(mut open)) => {
            open.claim.lease = None;
            head.clone().in_state(open)
        }
        (Transition::PutOff { wait, until }, State::Open(open)) => updated().in_state(open.put_off(wait, until)),
        (Transition::Hold { before }, State::Open(open)) => {
            let look = next_look_at_held(head.delivery.created_date, now);
            updated().in_state(open.put_off(Wait::Before(before.clone()), look))
        }
        (Transition::PutIntoFeed, State::Open(open)) => updated().in_state(open.in_feed(now)),
        (Transition::Record { attempt, next }, State::Open(open)) => recorded(head, &open, attempt, next, now),
        (Transition::Cancel(reason), State::Open(_)) => Head { state: State::Cancelled(reason), ..updated() },
        (Transition::Erase(erased), _) => erase(head, erased, now),
        (Transition::Reopen(requester), State::Delivered | State::Failed | State::Cancelled(_)) => {
            reopened(head, requester, now)
        }
        (Transition::Expedite(requester), State::Open(open)) => {
            let out_of_turn = head.out_of_turn || requester.is_out_of_turn(&head.delivery);
            Head { out_of_turn, ..updated() }.in_state(open.expedited(requester, now))
        }
        (_, _) => head.clone(),
    }
}

impl Head {
    fn updated(mut self, now: Time) -> Self {
        self.delivery.last_update = now;
        self
    }

    fn in_state(self, open: Open) -> Self {
        Self { state: State::Open(open), ..self }
    }
}

impl Open {
    fn leased(mut self, lease: &str, until: Time) -> Self {
        self.claim.lease = Some(Lease { id: lease.to_owned(), until });
        self
    }

    /// The state after a claim, with the abandoned attempt yet to be recorded.
    fn taken_over(self, lease: &str, now: Time) -> Self {
        let began = self.claim.lease.as_ref().map(|former| Unknown::Worker(former.until - LEASE));
        let mut open = self.leased(lease, now + LEASE);
        open.claim.unknown = began;
        open
    }

    /// The state, unclaimed and waiting. If someone requested the attempt, it waits too.
    fn put_off(self, wait: Wait, until: Time) -> Self {
        Self { wait, next: until, claim: Claim::default(), ..self }
    }

    fn in_feed(self, now: Time) -> Self {
        Self { asked_at: None, ..self.put_off(Wait::Reader, now) }
    }

    /// The state with the attempt due now. The scheduled time is kept, unless this is the schedule's own attempt, which
    /// was postponed or is already due.
    fn expedited(self, requester: Requester, now: Time) -> Self {
        let is_in_between = now < self.next && self.resume_at.is_none() && !self.is_put_off();
        let resume_at = if is_in_between { Some(self.next) } else { self.resume_at };
        let wait = self.wait.after_request();
        Self { next: now, wait, resume_at, asked_at: requester.asked_at(now), ..self }
    }
}

/// The delivery with a new schedule that begins now. Its retention does not change.
fn reopened(head: &Head, requester: Requester, now: Time) -> Head {
    let open = Open { asked_at: requester.asked_at(now), ..Open::first(now) };
    Head {
        schedule_base: head.delivery.attempt_count,
        unanswered: 0,
        // This describes the first attempt, and further requests do not change it.
        out_of_turn: head.out_of_turn || requester.is_out_of_turn(&head.delivery),
        state: State::Open(open),
        ..head.clone().updated(now)
    }
}

/// The delivery after an attempt. If its event was erased in the meantime, the attempt's response is left out, and no
/// other attempt follows.
fn recorded(head: &Head, open: &Open, attempt: &Attempt, next: Next, now: Time) -> Head {
    let attempt = if head.is_erased() { attempt.clone().without_answer() } else { attempt.clone() };
    let last_error = attempt.error.as_deref().and_then(ErrorCode::of);
    let is_spared = last_error.is_some_and(ErrorCode::is_unknown_outcome) && head.spares_schedule();
    let is_in_between = open.resume_at.is_some();
    let state = match next {
        Next::Delivered => State::Delivered,
        Next::Exhausted | Next::Gone => State::Failed,
        Next::Cancelled => State::Cancelled(CancelReason::Erased),
        Next::RetryAt(_) | Next::ReadFrom(_) if head.is_erased() => State::Cancelled(CancelReason::Erased),
        Next::RetryAt(time) | Next::ReadFrom(time) => {
            let wait = if matches!(next, Next::ReadFrom(_)) { Wait::Reader } else { Wait::Schedule };
            // An attempt that was requested manually is repeated as such.
            let (resume_at, asked_at) = if is_spared { (open.resume_at, open.asked_at) } else { (None, None) };
            State::Open(Open { is_retry: true, wait, resume_at, asked_at, ..Open::first(time) })
        }
    };
    let mut head = head.clone().updated(now);
    head.delivery.attempt_count = attempt.attempt_number;
    head.delivery.last_http_status = attempt.http_status;
    head.delivery.last_error = last_error;
    head.schedule_base = head.schedule_base.saturating_add(u32::from(is_in_between || is_spared));
    head.unanswered = head.unanswered.saturating_add(u32::from(is_spared));
    if head.has_room_for(&attempt) {
        head.attempts.push(attempt);
    }
    Head { state, ..head }
}

/// The delivery without its event's content. If no attempt is left to record, the delivery ends, since there is nothing
/// to send. Otherwise its worker or reader ends it.
fn erase(head: &Head, erased: Time, now: Time) -> Head {
    let head = head.clone().erased_with_its_event(Some(erased));
    if head.is_final() || head.has_attempt_to_record() {
        return head;
    }
    apply(&head, Transition::Cancel(CancelReason::Erased), now)
}

#[cfg(test)]
#[path = "transition_tests.rs"]
pub(crate) mod tests;
