//! The delivery after each event, as a table, and the rules that hold after any sequence of events.

use super::*;
use crate::deliveries::state::{
    head::{
        SPARED,
        tests::{LATER, NOW, head},
    },
    index::{AnnouncedBy, Index},
    slot::Slot,
    times::GRACE,
};
use proptest::prelude::*;
use std::time::Duration;

fn attempt(number: u32, error: Option<&str>) -> Attempt {
    Attempt::of_reader(number, NOW, NOW, error.map(str::to_owned))
}

fn after(head: &Head, transition: Transition<'_>) -> Head {
    apply(head, transition, NOW)
}

fn open(head: &Head) -> &Open {
    head.state.open().expect("it is open")
}

fn breaker(until: Time) -> Transition<'static> {
    Transition::PutOff { wait: Wait::Breaker, until }
}

#[test]
fn a_claim_ends_with_a_record_a_release_or_a_wait() {
    let due = head();
    let claimed = after(&due, Transition::Claim { lease: "worker" });
    assert!(claimed.is_leased_by("worker") && claimed.claimable_at() == Some(NOW + LEASE));
    assert_eq!(after(&claimed, Transition::Release), due);
    let put_off = after(&claimed, breaker(LATER));
    assert_eq!((put_off.lease(), put_off.claimable_at()), (None, Some(LATER)));
    let success = attempt(1, None);
    let recorded = after(&claimed, Transition::Record { attempt: &success, next: Next::Delivered });
    assert_eq!((&recorded.state, recorded.delivery.attempt_count), (&State::Delivered, 1));
}

#[test]
fn an_abandoned_attempt_is_known_from_the_start_of_its_lease() {
    let abandoned = head().leased(NOW);
    let taken_over = after(&abandoned, Transition::TakeOver { lease: "other" });
    assert!(taken_over.is_leased_by("other"));
    assert_eq!(open(&taken_over).claim.unknown, Some(Unknown::Worker(NOW - LEASE)));
    let released = after(&taken_over, Transition::Release);
    assert!(released.has_unknown_outcome() && released.lease().is_none(), "it is still to be recorded");
}

#[test]
fn the_feed_has_a_delivery_until_a_reader_gets_it() {
    let in_feed = after(&head().leased(LATER), Transition::PutIntoFeed);
    assert!(in_feed.is_in_feed() && in_feed.claimable_at() == Some(NOW));
    let handed_out = after(&in_feed, Transition::HandOut { lease: "reader", until: LATER });
    assert_eq!(open(&handed_out).claim.unknown, Some(Unknown::Reader(NOW)));
    assert_eq!(handed_out.claimable_at(), Some(LATER));
}

#[test]
fn a_put_off_attempt_is_the_one_of_the_schedule_and_a_waiting_one_is_not() {
    let resumes = |head: &Head| open(&after(head, Transition::Expedite(Requester::Person))).resume_at;
    let waiting = head().waiting(LATER, Wait::Schedule);
    assert_eq!(resumes(&waiting), Some(LATER));
    assert_eq!(resumes(&head().waiting(LATER, Wait::Breaker)), None, "it is the attempt of the schedule itself");
    assert_eq!(resumes(&head().waiting(NOW, Wait::Schedule)), None, "it is due");
    let again = after(&waiting, Transition::Expedite(Requester::Job)).waiting(LATER, Wait::Schedule);
    assert_eq!(resumes(&again), Some(LATER), "the first time stays");
}

#[test]
fn a_request_ends_a_hold_and_keeps_a_turn() {
    let slot = Wait::Slot(Slot { at: LATER, since: NOW, missed_by: 0 });
    let waits_for = |wait: &Wait| {
        open(&after(&head().waiting(LATER, wait.clone()), Transition::Expedite(Requester::Person))).wait.clone()
    };
    assert_eq!(waits_for(&Wait::Before(head().delivery.id)), Wait::Schedule);
    for kept in [slot, Wait::Reader] {
        assert_eq!(waits_for(&kept), kept);
    }
}

#[test]
fn a_person_goes_out_of_turn_and_a_job_does_not() {
    let requested = |requester| {
        let expedited = after(&head(), Transition::Expedite(requester));
        let reopened = after(&head().with(State::Failed), Transition::Reopen(requester));
        [expedited, reopened].map(|head| (head.out_of_turn, open(&head).asked_at))
    };
    assert_eq!(requested(Requester::Person), [(true, Some(NOW)); 2]);
    assert_eq!(requested(Requester::Job), [(false, None); 2], "many attempts do not pass a breaker");
    let mut sent = after(&head(), Transition::Expedite(Requester::Person)).with(State::Delivered);
    sent.delivery.attempt_count = 1;
    assert!(after(&sent, Transition::Reopen(Requester::Person)).out_of_turn, "those before it may still be open");
}

#[test]
fn a_new_schedule_counts_from_its_beginning() {
    let mut failed = head().with(State::Failed);
    (failed.delivery.attempt_count, failed.unanswered, failed.schedule_base) = (7, 3, 2);
    let reopened = after(&failed, Transition::Reopen(Requester::Job));
    assert_eq!((reopened.schedule_base, reopened.unanswered, reopened.delivery.attempt_count), (7, 0, 7));
    assert_eq!(open(&reopened), &Open::first(NOW));
    assert_eq!(after(&head(), Transition::Reopen(Requester::Job)), head(), "it is open");
}

#[test]
fn an_interrupted_attempt_that_was_requested_is_repeated_as_such() {
    let requested = head().opened(|open| (open.resume_at, open.asked_at) = (Some(LATER), Some(NOW)));
    let interrupted = Attempt::interrupted(1, NOW);
    let recorded = |head: &Head, next| after(head, Transition::Record { attempt: &interrupted, next });
    let repeated = recorded(&requested, Next::RetryAt(NOW));
    assert_eq!((open(&repeated).resume_at, open(&repeated).asked_at), (Some(LATER), Some(NOW)));
    assert_eq!((repeated.schedule_base, repeated.unanswered), (1, 1), "the schedule stays as it was");
    let often = recorded(&Head { unanswered: SPARED, ..requested.clone() }, Next::RetryAt(LATER));
    assert_eq!((open(&often).resume_at, open(&often).asked_at), (None, None));
    assert_eq!(recorded(&requested, Next::Exhausted).state, State::Failed);
}

#[test]
fn an_attempt_of_an_erased_event_has_no_answer_and_no_successor() {
    let mut erased = head().leased(LATER);
    erased.delivery.erased_date = Some(NOW);
    let reported = attempt(1, Some("reported: Jane Doe"));
    for next in [Next::RetryAt(LATER), Next::ReadFrom(LATER)] {
        let recorded = after(&erased, Transition::Record { attempt: &reported, next });
        assert_eq!(recorded.state, State::Cancelled(CancelReason::Erased));
        assert!(!format!("{recorded:?}").contains("Jane Doe"));
    }
    let failed = after(&erased, Transition::Record { attempt: &reported, next: Next::Exhausted });
    assert_eq!(failed.state, State::Failed);
}

#[test]
fn an_erasure_ends_a_delivery_unless_an_attempt_is_to_be_recorded() {
    let erased = |head: &Head| after(head, Transition::Erase(NOW));
    assert_eq!(erased(&head()).state, State::Cancelled(CancelReason::Erased));
    let unknown = head().opened(|open| open.claim.unknown = Some(Unknown::Reader(NOW)));
    for under_way in [head().leased(LATER), unknown] {
        let erased = erased(&under_way);
        assert!(!erased.is_final() && erased.is_erased() && erased.delivery.subject.is_none());
    }
    assert_eq!(erased(&head().with(State::Delivered)).state, State::Delivered);
}

/// Events of every kind, with times around now.
#[derive(Debug, Clone, Copy)]
struct AnyEvent {
    kind: u8,
    seconds: u64,
    flag: bool,
}

/// A delivery after a series of events, each of them possible in the state before it, as the table's conditions
/// require.
pub(crate) fn heads() -> impl Strategy<Value = Head> {
    histories().prop_map(|events| events.into_iter().fold(head(), |head, event| step(&head, event)))
}

fn histories() -> impl Strategy<Value = Vec<AnyEvent>> {
    let event = (0_u8..13, 0_u64..2_000, any::<bool>());
    proptest::collection::vec(event.prop_map(|(kind, seconds, flag)| AnyEvent { kind, seconds, flag }), 0..12)
}

fn step(head: &Head, AnyEvent { kind, seconds, flag }: AnyEvent) -> Head {
    let now = NOW + Duration::from_secs(seconds);
    let soon = now + GRACE;
    let requester = if flag { Requester::Person } else { Requester::Job };
    let slot = Wait::Slot(Slot { at: soon, since: now, missed_by: u32::from(flag) });
    let error = flag.then_some("reported: no room");
    let made =
        if kind == 12 { Attempt::interrupted(head.next_attempt(), now) } else { attempt(head.next_attempt(), error) };
    let wait = match (flag, seconds % 2) {
        (true, _) => Wait::Breaker,
        (false, 0) => Wait::Content,
        (false, _) => Wait::Pause,
    };
    let next = match seconds % 5 {
        0 => Next::Delivered,
        1 => Next::Exhausted,
        2 => Next::ReadFrom(soon),
        _ => Next::RetryAt(soon),
    };
    let before = head.delivery.id.clone();
    let (is_claimed, is_recordable) = (head.lease().is_some(), head.has_attempt_to_record());
    let transition = match kind {
        0 if !is_claimed => Transition::Claim { lease: "worker" },
        1 if head.is_abandoned(now) => Transition::TakeOver { lease: "other" },
        2 if head.is_in_feed() && !is_recordable => Transition::HandOut { lease: "reader", until: soon },
        3 => Transition::Release,
        4 if is_claimed => Transition::PutOff { wait, until: soon },
        5 if is_claimed => Transition::PutOff { wait: slot, until: soon },
        6 if is_claimed => Transition::Hold { before: &before },
        7 => Transition::PutIntoFeed,
        8 | 12 if is_claimed => Transition::Record { attempt: &made, next },
        9 if !is_recordable => {
            Transition::Cancel(if flag { CancelReason::Owner } else { CancelReason::WebhookDisabled })
        }
        10 => Transition::Erase(now),
        11 if !is_claimed && head.is_final() => Transition::Reopen(requester),
        11 if !is_claimed => Transition::Expedite(requester),
        _ => return head.clone(),
    };
    let new = apply(head, transition, now);
    let index = Index::after(head, &new, AnnouncedBy::Message, now).unwrap_or(head.index);
    Head { index, ..new }
}

proptest! {
    #[test]
    fn every_delivery_is_final_or_has_a_time_at_which_it_is_looked_at(head in heads()) {
        let index = Index::after(&head, &head, AnnouncedBy::Sweep, NOW).unwrap_or(head.index);
        prop_assert_eq!(index.due_at.is_none(), head.is_final(), "{:?}", head);
        prop_assert_eq!(head.claimable_at().is_none(), head.is_final());
    }

    #[test]
    fn the_history_has_every_attempt_once(events in histories()) {
        let mut before = head();
        for event in events {
            let after = step(&before, event);
            let recorded = after.delivery.attempt_count - before.delivery.attempt_count;
            prop_assert_eq!(recorded, u32::from(after.attempts != before.attempts && !is_erased_between(&before, &after)));
            prop_assert!(after.schedule_base <= after.delivery.attempt_count);
            prop_assert!(!after.has_large_attempts(), "these attempts are small");
            before = after;
        }
    }

    #[test]
    fn an_erased_delivery_stays_erased_and_is_not_sent_again(events in histories()) {
        let mut head = apply(&head(), Transition::Erase(NOW), NOW);
        for event in events.into_iter().filter(|event| event.kind != 11) {
            head = step(&head, event);
            prop_assert!(head.is_erased() && head.is_final() && head.delivery.subject.is_none());
        }
    }
}

fn is_erased_between(before: &Head, after: &Head) -> bool {
    !before.is_erased() && after.is_erased()
}
