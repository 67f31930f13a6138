//! The order of receiving messages: oldest first, except that noisy groups' messages come last.
//!
//! SQS orders the messages of standard queues with message groups in this way. A group is noisy while it has at least
//! 30 messages in flight and more than a tenth of all messages in flight; each message without a group counts as its
//! own group.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html>
//!
//! Among noisy groups, the group with the fewest messages in flight comes first; SQS does not document this order. SQS
//! also considers how long messages take to process; here, only the number in flight counts.
//!
//! A group's share is computed only when one of its messages changes, so it may be slightly out of date. This keeps
//! each operation logarithmic in the number of waiting messages.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// A message's number, in the order of sending.
pub(crate) type Number = u64;
/// A group's position in the order: its noise (0 if it is not noisy), then its oldest message.
type Turn = (usize, Number);

/// The minimum number of messages that a noisy group has in flight.
const NOISY: usize = 30;
/// A noisy group has more than one in this many of all messages in flight.
const NOISY_PART: usize = 10;

/// Messages that can be received.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    /// Each group's oldest message, with the group's name, and every message without a group.
    turns: BTreeMap<Turn, Option<Arc<str>>>,
    groups: HashMap<Arc<str>, Group>,
    /// The number of messages in flight, with and without a group.
    in_flight: usize,
    count: usize,
}

/// A group with messages that can be received or are in flight.
#[derive(Debug, Default)]
struct Group {
    waiting: BTreeSet<Number>,
    in_flight: usize,
    turn: Option<Turn>,
}

impl Ready {
    /// The number of receivable messages.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The number of messages in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds a receivable message.
    pub fn add(&mut self, number: Number, group: Option<&Arc<str>>) {
        self.count += 1;
        let Some(name) = group else {
            self.turns.insert((0, number), None);
            return;
        };
        self.groups.entry(Arc::clone(name)).or_default().waiting.insert(number);
        self.update_turn(name);
    }

    /// Removes a receivable message.
    pub fn remove(&mut self, number: Number, group: Option<&Arc<str>>) {
        self.count -= 1;
        let Some(name) = group else {
            self.turns.remove(&(0, number));
            return;
        };
        if let Some(group) = self.groups.get_mut(name) {
            group.waiting.remove(&number);
        }
        self.update_turn(name);
    }

    /// The next message.
    pub fn first(&self) -> Option<Number> {
        self.turns.keys().next().map(|(_, number)| *number)
    }

    /// Counts a message as in flight.
    pub fn began(&mut self, group: Option<&Arc<str>>) {
        self.in_flight += 1;
        let Some(name) = group else { return };
        self.groups.entry(Arc::clone(name)).or_default().in_flight += 1;
        self.update_turn(name);
    }

    /// Counts a message as no longer in flight.
    pub fn ended(&mut self, group: Option<&Arc<str>>) {
        self.in_flight -= 1;
        let Some(name) = group else { return };
        if let Some(group) = self.groups.get_mut(name) {
            group.in_flight -= 1;
        }
        self.update_turn(name);
    }

    /// Updates a group's turn, and removes a group without messages.
    fn update_turn(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get_mut(name) else { return };
        let is_noisy = group.in_flight >= NOISY && group.in_flight * NOISY_PART > self.in_flight;
        let noise = if is_noisy { group.in_flight } else { 0 };
        let turn = group.waiting.first().map(|oldest| (noise, *oldest));
        if turn != group.turn {
            if let Some(former) = group.turn {
                self.turns.remove(&former);
            }
            if let Some(turn) = turn {
                self.turns.insert(turn, Some(Arc::clone(name)));
            }
            group.turn = turn;
        }
        if group.waiting.is_empty() && group.in_flight == 0 {
            self.groups.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(ready: &mut Ready, groups: &dyn Fn(Number) -> Option<Arc<str>>) -> Option<Number> {
        let number = ready.first()?;
        let group = groups(number);
        ready.remove(number, group.as_ref());
        ready.began(group.as_ref());
        Some(number)
    }

    #[test]
    fn the_oldest_message_comes_first_in_any_group() {
        let mut ready = Ready::default();
        let groups = |number: Number| (!number.is_multiple_of(3)).then(|| Arc::from(format!("g{}", number % 3)));
        for number in [5, 3, 4, 1, 2, 0] {
            ready.add(number, groups(number).as_ref());
        }
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut ready, &groups)).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5]);
        assert_eq!((ready.len(), ready.in_flight()), (0, 6));
    }

    /// The noisy group sent a thousand messages before the quiet groups sent theirs.
    #[test]
    fn a_long_backlog_of_one_group_does_not_hold_up_the_others() {
        let mut ready = Ready::default();
        let groups = |number: Number| match number {
            0..1000 => Some(Arc::from("loud")),
            1000..1010 => Some(Arc::from("quiet")),
            _ => None,
        };
        (0..1020).for_each(|number| ready.add(number, groups(number).as_ref()));
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut ready, &groups)).take(60).collect();
        assert!(taken[..30].iter().all(|number| *number < 1000), "30 in flight are not noisy");
        assert_eq!(taken[30..50], (1000..1020).collect::<Vec<_>>());
        assert_eq!(taken[50..], (30..40).collect::<Vec<_>>(), "and then the loud group continues");
        for number in taken.into_iter().filter(|number| *number < 1000) {
            ready.ended(groups(number).as_ref());
        }
        ready.add(2000, None);
        assert_eq!(take(&mut ready, &groups), Some(40), "a group is noisy only while its messages are in flight");
    }

    #[test]
    fn noisy_groups_take_turns_among_themselves() {
        let mut ready = Ready::default();
        let groups = |number: Number| Some(Arc::from(if number < 1000 { "first" } else { "second" }));
        (0..2000).for_each(|number| ready.add(number, groups(number).as_ref()));
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut ready, &groups)).take(400).collect();
        let of_first = taken.iter().filter(|number| **number < 1000).count();
        assert_eq!(of_first, 200);
    }

    #[test]
    fn groups_without_messages_are_forgotten() {
        let mut ready = Ready::default();
        let groups = |number: Number| Some(Arc::from(number.to_string()));
        (0..100).for_each(|number| ready.add(number, groups(number).as_ref()));
        while let Some(number) = take(&mut ready, &groups) {
            ready.ended(groups(number).as_ref());
        }
        assert!(ready.groups.is_empty() && ready.turns.is_empty());
        assert_eq!((ready.len(), ready.in_flight()), (0, 0));
    }
}
