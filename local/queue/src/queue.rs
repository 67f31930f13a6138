//! One queue: its messages and their visibility. The queue has no clock: every operation takes the time as an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use base::Time;

use crate::{
    message::{Message, Receipt},
    ready::{Number, Ready},
    refusal::Refusal,
    settings::Settings,
};

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The queue's number, which its receipts contain.
    id: u64,
    pub settings: Settings,
    /// All messages in the queue, oldest first.
    messages: BTreeMap<Number, Entry>,
    ready: Ready,
    /// The hidden messages, ordered by when they become visible.
    hidden: BTreeSet<(Time, Number)>,
}

/// A message in a queue.
#[derive(Debug)]
pub(crate) struct Entry {
    message: Arc<Message>,
    visibility: Visibility,
    /// The number of receives.
    receives: u32,
    first_received: Option<Time>,
    /// For a dead letter, the ARN of the queue that it came from.
    source: Option<Arc<str>>,
}

/// Whether a message can be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Ready,
    Delayed(Time),
    InFlight(Time),
}

/// A message, as a receiver gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Arc<Message>,
    /// The receipt handle, for deleting the message.
    pub receipt: String,
    /// How often the message has been received, including this time.
    pub receives: u32,
    /// When the message was first received.
    pub first_received: Time,
    /// For a dead letter, the ARN of the source queue.
    pub source: Option<Arc<str>>,
}

impl Received {
    /// The attributes that SQS adds to a message, keyed by name. `account` is the sender's account.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_Message.html>
    pub fn attributes(&self, account: &str) -> BTreeMap<&'static str, String> {
        let message = &self.message;
        let always = [
            ("SenderId", account.to_owned()),
            ("SentTimestamp", message.sent.as_millis().to_string()),
            ("ApproximateReceiveCount", self.receives.to_string()),
            ("ApproximateFirstReceiveTimestamp", self.first_received.as_millis().to_string()),
        ];
        let some = [
            ("MessageGroupId", message.group.as_deref()),
            ("AWSTraceHeader", message.trace.as_deref()),
            ("DeadLetterQueueSourceArn", self.source.as_deref()),
        ];
        let some = some.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned())));
        always.into_iter().chain(some).collect()
    }
}

/// The result of a receive.
#[derive(Debug, Default)]
pub(crate) struct ReceiveResult {
    pub received: Vec<Received>,
    /// Messages that were received too often and belong in the dead-letter queue.
    pub dead: Vec<(Number, Entry)>,
}

/// The number of messages in each state of visibility.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub ready: usize,
    pub in_flight: usize,
    pub delayed: usize,
}

impl Queue {
    pub fn new(id: u64, settings: Settings) -> Self {
        Self { id, settings, messages: BTreeMap::new(), ready: Ready::default(), hidden: BTreeSet::new() }
    }

    /// Adds a message that becomes visible after this delay.
    pub fn add(&mut self, number: Number, message: Message, delay: Duration) {
        let due = message.sent + delay;
        let visibility = if delay.is_zero() { Visibility::Ready } else { Visibility::Delayed(due) };
        self.put(
            number,
            Entry { message: Arc::new(message), visibility, receives: 0, first_received: None, source: None },
        );
    }

    /// Adds a dead letter from the queue with this ARN.
    pub fn bury(&mut self, number: Number, entry: Entry, source: &Arc<str>) {
        self.put(number, Entry { visibility: Visibility::Ready, source: Some(Arc::clone(source)), ..entry });
    }

    fn put(&mut self, number: Number, entry: Entry) {
        match entry.visibility {
            Visibility::Ready => self.ready.add(number, entry.message.group.as_ref()),
            Visibility::Delayed(until) | Visibility::InFlight(until) => {
                self.hidden.insert((until, number));
            }
        }
        self.messages.insert(number, entry);
    }

    /// When the next hidden message becomes visible.
    pub fn next_due(&self) -> Option<Time> {
        self.hidden.first().map(|(due, _)| *due)
    }

    /// Receives up to `most` messages, and hides them for this duration.
    pub fn take(&mut self, most: usize, visibility: Duration, now: Time) -> ReceiveResult {
        self.advance(now);
        let mut taken = ReceiveResult::default();
        while taken.received.len() < most
            && let Some(number) = self.ready.first()
        {
            let Some(entry) = self.messages.get_mut(&number) else { break };
            let group = entry.message.group.clone();
            self.ready.remove(number, group.as_ref());
            let limit = self.settings.redrive.as_ref().map_or(u32::MAX, |redrive| redrive.receives);
            if entry.receives >= limit {
                taken.dead.extend(self.messages.remove_entry(&number));
                continue;
            }
            let until = now + visibility;
            entry.receives += 1;
            entry.visibility = Visibility::InFlight(until);
            let first_received = *entry.first_received.get_or_insert(now);
            self.hidden.insert((until, number));
            self.ready.began(group.as_ref());
            taken.received.push(Received {
                message: Arc::clone(&entry.message),
                receipt: Receipt { queue: self.id, number, receive: entry.receives }.to_string(),
                receives: entry.receives,
                first_received,
                source: entry.source.clone(),
            });
        }
        taken
    }

    /// Deletes the message that a receipt belongs to. If the message is gone or has been received again, the request
    /// succeeds and changes nothing.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html>
    pub fn delete(&mut self, receipt: &str) -> Result<(), Refusal> {
        let Receipt { number, receive, .. } = self.receipt(receipt)?;
        if self.messages.get(&number).is_some_and(|entry| entry.receives == receive) {
            self.remove(number);
        }
        Ok(())
    }

    /// Removes every message.
    pub fn purge(&mut self) {
        *self = Self::new(self.id, self.settings.clone());
    }

    pub fn counts(&mut self, now: Time) -> Counts {
        self.advance(now);
        let ready = self.ready.len();
        let in_flight = self.ready.in_flight();
        Counts { ready, in_flight, delayed: self.messages.len() - ready - in_flight }
    }

    /// Makes due messages visible, and drops messages older than the retention period.
    fn advance(&mut self, now: Time) {
        while let Some((due, number)) = self.hidden.first().copied().filter(|(due, _)| *due <= now) {
            self.hidden.remove(&(due, number));
            let Some(entry) = self.messages.get_mut(&number) else { continue };
            let group = entry.message.group.as_ref();
            if let Visibility::InFlight(_) = entry.visibility {
                self.ready.ended(group);
            }
            entry.visibility = Visibility::Ready;
            self.ready.add(number, group);
        }
        let retention = self.settings.retention;
        let is_old = |entry: &Entry| entry.message.sent + retention <= now;
        while let Some((&number, _)) = self.messages.first_key_value().filter(|(_, entry)| is_old(entry)) {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: Number) {
        let Some(Entry { message, visibility, .. }) = self.messages.remove(&number) else { return };
        let group = message.group.as_ref();
        match visibility {
            Visibility::Ready => self.ready.remove(number, group),
            Visibility::Delayed(until) => {
                self.hidden.remove(&(until, number));
            }
            Visibility::InFlight(until) => {
                self.hidden.remove(&(until, number));
                self.ready.ended(group);
            }
        }
    }

    fn receipt(&self, text: &str) -> Result<Receipt, Refusal> {
        let receipt: Receipt = text.parse()?;
        if receipt.queue == self.id { Ok(receipt) } else { Err(Refusal::receipt()) }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
