//! Tests of a queue: visibility, receipts, dead letters, retention, and a random history compared with a simple model.

use proptest::prelude::*;

use super::*;
use crate::{refusal::Kind, settings::Redrive};

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Time {
    Time::from_millis(1_800_000_000_000) + SECOND * u32::try_from(seconds).unwrap()
}

fn queue() -> Queue {
    Queue::new(7, Settings { visibility: 10 * SECOND, ..Settings::default() })
}

fn message(number: Number, group: Option<&str>, sent: Time) -> Message {
    Message {
        id: number.to_string(),
        body: "text".to_owned(),
        md5: String::new(),
        attributes: BTreeMap::new(),
        trace: None,
        group: group.map(Arc::from),
        sent,
    }
}

fn add(queue: &mut Queue, number: Number, delay: u64, now: u64) {
    queue.add(number, message(number, None, at(now)), Duration::from_secs(delay));
}

fn take(queue: &mut Queue, now: u64) -> Vec<Received> {
    queue.take(10, 10 * SECOND, at(now)).received
}

fn ids(received: &[Received]) -> Vec<&str> {
    received.iter().map(|received| received.message.id.as_str()).collect()
}

#[test]
fn a_message_is_hidden_for_its_delay_and_after_each_receive() {
    let mut queue = queue();
    add(&mut queue, 1, 5, 0);
    assert_eq!(queue.next_due(), Some(at(5)));
    assert!(take(&mut queue, 4).is_empty());
    let first = take(&mut queue, 5);
    assert_eq!((first[0].receives, first[0].first_received), (1, at(5)));
    assert!(take(&mut queue, 14).is_empty());
    let second = take(&mut queue, 15);
    assert_eq!((second[0].receives, second[0].first_received), (2, at(5)));
    assert_ne!(first[0].receipt, second[0].receipt);
}

#[test]
fn only_the_receipt_of_the_last_receive_deletes() {
    let mut queue = queue();
    add(&mut queue, 1, 0, 0);
    let first = take(&mut queue, 0).remove(0).receipt;
    let second = take(&mut queue, 10).remove(0).receipt;
    assert_eq!(queue.delete(&first), Ok(()));
    assert_eq!(queue.counts(at(10)).in_flight, 1, "it is not deleted");
    assert_eq!(queue.delete(&second), Ok(()));
    assert_eq!(queue.counts(at(10)), Counts { ready: 0, in_flight: 0, delayed: 0 });
    assert_eq!(queue.delete(&second), Ok(()), "a repetition succeeds");
    assert_eq!(queue.next_due(), None);
}

#[test]
fn a_visible_message_can_be_deleted_by_its_receipt_until_the_next_receive() {
    let mut queue = queue();
    add(&mut queue, 1, 0, 0);
    let receipt = take(&mut queue, 0).remove(0).receipt;
    assert_eq!(queue.counts(at(10)).ready, 1);
    assert_eq!(queue.delete(&receipt), Ok(()));
    assert!(take(&mut queue, 11).is_empty());
}

#[test]
fn a_receipt_of_another_queue_or_run_is_refused() {
    let mut queue = queue();
    let mut other = Queue::new(8, Settings::default());
    add(&mut queue, 1, 0, 0);
    add(&mut other, 1, 0, 0);
    let receipt = take(&mut other, 0).remove(0).receipt;
    assert_eq!(queue.delete(&receipt).unwrap_err().kind, Kind::ReceiptHandleIsInvalid);
}

#[test]
fn a_message_that_was_received_too_often_is_dead_at_the_next_receive() {
    let mut queue = queue();
    let redrive = Redrive { queue: "dead".to_owned(), receives: 2, policy: String::new() };
    queue.settings.redrive = Some(redrive);
    add(&mut queue, 1, 0, 0);
    assert_eq!(ids(&take(&mut queue, 0)), ["1"]);
    assert_eq!(ids(&take(&mut queue, 10)), ["1"]);
    add(&mut queue, 2, 0, 15);
    let taken = queue.take(1, SECOND, at(20));
    assert_eq!(ids(&taken.received), ["2"], "the dead letter takes no visibility");
    let mut dead = Queue::new(9, Settings::default());
    let source: Arc<str> = "arn".into();
    for (number, entry) in taken.dead {
        dead.bury(number, entry, &source);
    }
    let letter = take(&mut dead, 20).remove(0);
    assert_eq!((letter.message.id.as_str(), letter.receives, letter.source), ("1", 3, Some(source)));
    assert_eq!(letter.first_received, at(0));
}

#[test]
fn messages_are_dropped_when_they_are_too_old_wherever_they_are() {
    let mut queue = queue();
    queue.settings.retention = 60 * SECOND;
    add(&mut queue, 1, 0, 0);
    assert_eq!(ids(&queue.take(1, 100 * SECOND, at(0)).received), ["1"]);
    add(&mut queue, 2, 0, 1);
    add(&mut queue, 3, 100, 2);
    assert_eq!(queue.counts(at(59)), Counts { ready: 1, in_flight: 1, delayed: 1 });
    assert_eq!(queue.counts(at(60)), Counts { ready: 1, in_flight: 0, delayed: 1 });
    assert_eq!(queue.counts(at(62)), Counts { ready: 0, in_flight: 0, delayed: 0 });
    assert_eq!(queue.next_due(), None);
}

#[test]
fn a_purged_queue_is_empty_and_its_receipts_do_nothing() {
    let mut queue = queue();
    add(&mut queue, 1, 0, 0);
    add(&mut queue, 2, 9, 0);
    let receipt = take(&mut queue, 0).remove(0).receipt;
    queue.purge();
    assert_eq!(queue.counts(at(20)), Counts { ready: 0, in_flight: 0, delayed: 0 });
    assert_eq!(queue.delete(&receipt), Ok(()));
}

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Send {
        group: u8,
        delay: u64,
    },
    Take {
        most: usize,
        visibility: u64,
    },
    /// Deletes a message by an earlier receipt.
    Delete(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, 0..4_u64).prop_map(|(group, delay)| Step::Send { group, delay }),
        (1..5_usize, 0..5_u64).prop_map(|(most, visibility)| Step::Take { most, visibility }),
        any::<usize>().prop_map(Step::Delete),
        (0..4_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Compares the queue with a simple list that each step searches.
    #[test]
    fn no_message_is_lost_doubled_or_shown_while_it_is_hidden(steps in prop::collection::vec(step(), 1..200)) {
        #[derive(Clone)]
        struct Known { number: Number, hidden_until: u64, receives: u32, in_flight: bool }
        let mut queue = queue();
        let mut known = Vec::<Known>::new();
        let mut now = 0;
        let mut next = 0;
        let mut receipts: Vec<(String, Number, u32)> = Vec::new();
        for step in steps {
            match step {
                Step::Send { group, delay } => {
                    next += 1;
                    let group = (group > 0).then(|| group.to_string());
                    queue.add(next, message(next, group.as_deref(), at(now)), Duration::from_secs(delay));
                    known.push(Known { number: next, hidden_until: now + delay, receives: 0, in_flight: false });
                }
                Step::Take { most, visibility } => {
                    let taken = queue.take(most, Duration::from_secs(visibility), at(now)).received;
                    let mut visible: Vec<_> = known.iter_mut().filter(|known| known.hidden_until <= now).collect();
                    visible.truncate(most);
                    let expected: Vec<_> = visible.iter().map(|known| known.number.to_string()).collect();
                    prop_assert_eq!(ids(&taken), expected, "no group is noisy, so the oldest come first");
                    for (known, received) in visible.into_iter().zip(taken) {
                        known.receives += 1;
                        known.hidden_until = now + visibility;
                        known.in_flight = true;
                        prop_assert_eq!(received.receives, known.receives);
                        receipts.push((received.receipt, known.number, known.receives));
                    }
                }
                Step::Delete(index) if !receipts.is_empty() => {
                    let (receipt, number, receive) = &receipts[index % receipts.len()];
                    prop_assert_eq!(queue.delete(receipt), Ok(()));
                    known.retain(|known| (known.number, known.receives) != (*number, *receive));
                }
                Step::Wait(seconds) => now += seconds,
                Step::Delete(_) => {}
            }
            let hidden = |in_flight: bool| known.iter().filter(|known| {
                known.hidden_until > now && known.in_flight == in_flight
            }).count();
            let ready = known.iter().filter(|known| known.hidden_until <= now).count();
            let counts = Counts { ready, in_flight: hidden(true), delayed: hidden(false) };
            prop_assert_eq!(queue.counts(at(now)), counts);
        }
    }
}
