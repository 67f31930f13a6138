//! The messages of one queue: which are visible, and whose turn it is.
//!
//! Turns are those of SQS's fair queues: a group of which much is in somebody's hand lets the others go first.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use shared::clock::Time;
use tokio::time::Instant;

use super::Message;

/// How a queue treats its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a message that was received is hidden from others.
    pub visibility: Duration,
    /// How long a message is hidden at first.
    pub delay: Duration,
    /// How long a message is kept.
    pub retention: Duration,
    /// The most bytes of a message with its attributes.
    pub largest: usize,
    /// The queue of what could not be handled, by name, and after how many receives it goes there.
    pub dead_letters: Option<(String, u64)>,
}

impl Default for Settings {
    /// As SQS has them.
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            delay: Duration::ZERO,
            retention: Duration::from_secs(4 * 24 * 60 * 60),
            largest: 1024 * 1024,
            dead_letters: None,
        }
    }
}

impl Settings {
    /// These attributes over the defaults, as `CreateQueue` has them. What has no meaning here is ignored, as is what
    /// cannot be read: cfn-lint has looked at the template.
    pub fn with<'a>(mut self, attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (name, value) in attributes {
            let Ok(number) = value.parse() else { continue };
            match name {
                "VisibilityTimeout" => self.visibility = Duration::from_secs(number),
                "DelaySeconds" => self.delay = Duration::from_secs(number),
                "MessageRetentionPeriod" => self.retention = Duration::from_secs(number),
                "MaximumMessageSize" => self.largest = number.try_into().unwrap_or(usize::MAX),
                _ => {}
            }
        }
        self
    }
}

/// A message that was sent.
pub struct Sent {
    /// Its identifier.
    pub id: String,
    /// What was sent.
    pub message: Message,
    /// When.
    pub at: Time,
    /// When it is thrown away.
    pub expires: Instant,
}

/// A message in somebody's hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Its identifier.
    pub id: String,
    /// What it says.
    pub body: String,
    /// Attributes that its sender gave it.
    pub attributes: Option<serde_json::Value>,
    /// Its group.
    pub group: Option<String>,
    /// With which it can be deleted.
    pub receipt: String,
    /// When it was sent.
    pub sent: Time,
    /// When it was first received.
    pub first_received: Time,
    /// How often it was received, this time included.
    pub receives: u64,
}

/// By when it was sent.
type Number = u64;

/// All messages of a queue.
#[derive(Default)]
pub struct Messages {
    last: Number,
    all: HashMap<Number, Kept>,
    /// What may be received, by group.
    visible: HashMap<Option<String>, VecDeque<Number>>,
    /// What may not be received before then.
    hidden: BTreeSet<(Instant, Number)>,
    /// How much of each group is in somebody's hand.
    in_hand: BTreeMap<Option<String>, usize>,
}

struct Kept {
    sent: Sent,
    receives: u64,
    first_received: Option<Time>,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Visible,
    Delayed(Instant),
    InHand(Instant),
}

impl Messages {
    /// Adds a message that is visible from then on.
    pub fn add(&mut self, sent: Sent, visible: Instant) {
        self.last += 1;
        self.hidden.insert((visible, self.last));
        let place = Place::Delayed(visible);
        self.all.insert(self.last, Kept { sent, receives: 0, first_received: None, place });
    }

    /// Makes visible what is so now; gives those messages that were received `limit` times, which are gone from here.
    pub fn wake(&mut self, now: Instant, limit: u64) -> Vec<Message> {
        let mut dead = Vec::new();
        while let Some((at, number)) = self.hidden.first().copied().filter(|(at, _)| *at <= now) {
            self.hidden.remove(&(at, number));
            self.put_down(number);
            let Some(kept) = self.all.get_mut(&number) else { continue };
            if kept.receives >= limit || kept.sent.expires <= now {
                let expired = kept.sent.expires <= now;
                let kept = self.all.remove(&number);
                dead.extend(kept.filter(|_| !expired).map(|kept| Message { delay: None, ..kept.sent.message }));
                continue;
            }
            kept.place = Place::Visible;
            self.visible.entry(kept.sent.message.group.clone()).or_default().push_back(number);
        }
        dead
    }

    /// Takes up to `most` visible messages, hidden from others until then.
    pub fn take(&mut self, most: usize, now: Time, until: Instant) -> Vec<Received> {
        let mut taken = Vec::new();
        while taken.len() < most {
            // Of the groups with the least in hand, the one that has waited longest.
            let turn = |(group, waiting): &(&Option<String>, &VecDeque<Number>)| {
                (self.in_hand.get(*group).copied().unwrap_or(0), waiting.front().copied())
            };
            let Some(group) = self.visible.iter().min_by_key(turn).map(|(group, _)| group.clone()) else { break };
            let Some(waiting) = self.visible.get_mut(&group) else { break };
            let number = waiting.pop_front();
            if waiting.is_empty() {
                self.visible.remove(&group);
            }
            let Some((number, kept)) = number.and_then(|number| Some((number, self.all.get_mut(&number)?))) else {
                continue;
            };
            kept.receives += 1;
            kept.place = Place::InHand(until);
            self.hidden.insert((until, number));
            taken.push(Received {
                id: kept.sent.id.clone(),
                body: kept.sent.message.body.clone(),
                attributes: kept.sent.message.attributes.clone(),
                group: group.clone(),
                receipt: format!("{number}-{}", kept.receives),
                sent: kept.sent.at,
                first_received: *kept.first_received.get_or_insert(now),
                receives: kept.receives,
            });
            *self.in_hand.entry(group).or_default() += 1;
        }
        taken
    }

    /// Whether something could be received at once.
    pub fn any_visible(&self) -> bool {
        !self.visible.is_empty()
    }

    /// When the next message becomes visible, if no more come.
    pub fn next_visible(&self) -> Option<Instant> {
        self.hidden.first().map(|(at, _)| *at)
    }

    /// Deletes what the receipt stands for.
    pub fn delete(&mut self, receipt: &str) {
        let Some(number) = self.of_receipt(receipt) else { return };
        let place = self.all.get(&number).map(|kept| kept.place);
        self.put_down(number);
        if let Some(kept) = self.all.remove(&number) {
            match place {
                Some(Place::InHand(at) | Place::Delayed(at)) => drop(self.hidden.remove(&(at, number))),
                _ => self.forget_visible(&kept.sent.message.group, number),
            }
        }
    }

    /// Hides what the receipt stands for until then; whether somebody has it in hand.
    pub fn hide(&mut self, receipt: &str, until: Instant) -> bool {
        let Some(number) = self.of_receipt(receipt) else { return false };
        let Some(kept) = self.all.get_mut(&number) else { return false };
        let Place::InHand(at) = kept.place else { return false };
        kept.place = Place::InHand(until);
        self.hidden.remove(&(at, number));
        self.hidden.insert((until, number));
        true
    }

    /// How many are visible, in hand, and delayed.
    pub fn counts(&self) -> [usize; 3] {
        let visible = self.visible.values().map(VecDeque::len).sum();
        let in_hand = self.in_hand.values().sum();
        [visible, in_hand, self.all.len() - visible - in_hand]
    }

    /// The message of a receipt, unless it has been received again since.
    fn of_receipt(&self, receipt: &str) -> Option<Number> {
        let (number, receives) = receipt.split_once('-')?;
        let number = number.parse().ok()?;
        (self.all.get(&number)?.receives.to_string() == receives).then_some(number)
    }

    /// Nobody has this message in hand any more.
    fn put_down(&mut self, number: Number) {
        let Some(kept) = self.all.get(&number) else { return };
        if let (Place::InHand(_), Some(count)) = (kept.place, self.in_hand.get_mut(&kept.sent.message.group)) {
            *count -= 1;
            if *count == 0 {
                self.in_hand.remove(&kept.sent.message.group);
            }
        }
    }

    fn forget_visible(&mut self, group: &Option<String>, number: Number) {
        if let Some(waiting) = self.visible.get_mut(group) {
            waiting.retain(|waiting| *waiting != number);
            if waiting.is_empty() {
                self.visible.remove(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOW: Time = Time::from_millis(0);

    struct Bench {
        messages: Messages,
        start: Instant,
    }

    impl Bench {
        fn new() -> Self {
            Self { messages: Messages::default(), start: Instant::now() }
        }

        fn at(&self, seconds: u32) -> Instant {
            self.start + SECOND * seconds
        }

        fn add(&mut self, body: &str, group: &str, visible: u32) {
            let message = Message { body: body.to_owned(), group: Some(group.to_owned()), ..Message::default() };
            let sent = Sent { id: body.to_owned(), message, at: NOW, expires: self.at(100) };
            self.messages.add(sent, self.at(visible));
        }

        /// What one receives at a second, hidden for ten.
        fn take(&mut self, most: usize, second: u32) -> Vec<Received> {
            self.messages.wake(self.at(second), u64::MAX);
            self.messages.take(most, NOW, self.at(second + 10))
        }
    }

    fn bodies(received: &[Received]) -> Vec<&str> {
        received.iter().map(|received| received.body.as_str()).collect()
    }

    #[test]
    fn a_message_comes_when_it_is_due_and_again_until_it_is_deleted() {
        let mut bench = Bench::new();
        bench.add("now", "a", 0);
        bench.add("later", "a", 5);
        let first = bench.take(10, 0);
        assert_eq!(bodies(&first), ["now"]);
        assert!(bench.take(10, 4).is_empty());
        assert_eq!(bench.messages.counts(), [0, 1, 1]);
        assert_eq!(bodies(&bench.take(10, 5)), ["later"]);
        let again = bench.take(10, 10);
        assert_eq!((again[0].body.as_str(), again[0].receives), ("now", 2));
        // The first receipt is worth nothing any more.
        bench.messages.delete(&first[0].receipt);
        assert_eq!(bench.messages.counts(), [0, 2, 0]);
        bench.messages.delete(&again[0].receipt);
        assert_eq!(bench.messages.counts(), [0, 1, 0]);
        assert_eq!(bodies(&bench.take(10, 30)), ["later"]);
    }

    #[test]
    fn a_group_with_much_in_hand_lets_the_others_go_first() {
        let mut bench = Bench::new();
        for number in 0..20 {
            bench.add(&format!("loud {number}"), "loud", 0);
        }
        assert_eq!(bench.take(10, 0).len(), 10);
        bench.add("quiet 1", "quiet", 1);
        bench.add("quiet 2", "quiet", 1);
        let next = bench.take(3, 1);
        assert_eq!(bodies(&next), ["quiet 1", "quiet 2", "loud 10"]);
    }

    #[test]
    fn groups_of_which_nothing_is_in_hand_are_served_in_the_order_of_their_messages() {
        let mut bench = Bench::new();
        for (body, group) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "c")] {
            bench.add(body, group, 0);
        }
        assert_eq!(bodies(&bench.take(3, 0)), ["1", "2", "4"]);
        assert_eq!(bodies(&bench.take(3, 0)), ["3"]);
    }

    #[test]
    fn what_was_received_too_often_leaves_the_queue_and_what_is_too_old_is_thrown_away() {
        let mut bench = Bench::new();
        bench.add("bad", "a", 0);
        bench.take(1, 0);
        bench.take(1, 10);
        let dead = bench.messages.wake(bench.at(20), 2);
        assert_eq!(dead.len(), 1);
        assert_eq!(bench.messages.counts(), [0, 0, 0]);
        bench.add("old", "a", 100);
        assert!(bench.messages.wake(bench.at(100), 2).is_empty());
        assert_eq!(bench.messages.counts(), [0, 0, 0]);
    }

    #[test]
    fn a_message_in_hand_can_be_given_back_or_kept_for_longer() {
        let mut bench = Bench::new();
        bench.add("a", "a", 0);
        let receipt = bench.take(1, 0)[0].receipt.clone();
        assert!(bench.messages.hide(&receipt, bench.at(30)));
        assert!(bench.take(1, 11).is_empty());
        assert!(bench.messages.hide(&receipt, bench.at(12)));
        assert_eq!(bench.take(1, 12).len(), 1);
        assert!(!bench.messages.hide(&receipt, bench.at(13)));
        assert!(!bench.messages.hide("no receipt", bench.at(13)));
    }
}
