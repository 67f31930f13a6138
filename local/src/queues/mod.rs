//! Queues: what SQS is on AWS, in memory. Messages are hints, and what is lost with them the sweep finds again, so nothing
//! is gained by a disk; but every delivery goes through here, and a queue in another process would cost as much as all of
//! our own functions together.

mod messages;
mod server;

pub use messages::{Received, Settings};
pub use server::{answer, md5, system_attributes};

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, RwLock},
    time::Duration,
};

use messages::{Messages, Sent};
use shared::{
    clock::SharedClock,
    random::{self, SharedRandom},
};
use tokio::{
    sync::Notify,
    time::{self, Instant},
};

/// All queues, by name.
#[derive(Clone)]
pub struct Queues {
    queues: Arc<RwLock<BTreeMap<String, Arc<Queue>>>>,
    clock: SharedClock,
    random: SharedRandom,
}

/// One queue.
pub struct Queue {
    messages: Mutex<Messages>,
    settings: Settings,
    /// Where messages go that were received too often.
    dead_letters: Option<Arc<Queue>>,
    arrived: Notify,
    clock: SharedClock,
    random: SharedRandom,
}

/// A message to send.
#[derive(Debug, Default)]
pub struct Message {
    /// What it says.
    pub body: String,
    /// Attributes that its sender gave it, as JSON.
    pub attributes: Option<serde_json::Value>,
    /// Its group, of which fair queues take care.
    pub group: Option<String>,
    /// How long nobody may receive it; else as the queue says.
    pub delay: Option<Duration>,
}

impl Queues {
    /// No queues.
    pub fn new(clock: SharedClock, random: SharedRandom) -> Self {
        Self { queues: Arc::default(), clock, random }
    }

    /// Makes a queue, or finds the one of that name. Its dead-letter queue must be there before it.
    pub fn create(&self, name: &str, settings: Settings) -> Arc<Queue> {
        let dead_letters = settings.dead_letters.as_ref().and_then(|(queue, _)| self.find(queue));
        let mut queues = self.queues.write().expect("nobody panics while holding it");
        let queue = queues.entry(name.to_owned()).or_insert_with(|| {
            let (clock, random) = (Arc::clone(&self.clock), Arc::clone(&self.random));
            let messages = Mutex::default();
            Arc::new(Queue { messages, settings, dead_letters, arrived: Notify::new(), clock, random })
        });
        Arc::clone(queue)
    }

    /// The queue of that name.
    pub fn find(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.read().expect("nobody panics while holding it").get(name).cloned()
    }

    /// Empties every queue.
    pub fn forget(&self) {
        let queues = self.queues.read().expect("nobody panics while holding it");
        queues.values().for_each(|queue| queue.purge());
    }
}

impl Queue {
    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().expect("nobody panics while holding it")
    }

    /// Sends a message; gives its identifier.
    pub fn send(&self, message: Message) -> String {
        let id = random::uuid(self.random.as_ref());
        let now = Instant::now();
        let visible = now + message.delay.unwrap_or(self.settings.delay);
        self.messages().add(
            Sent { id: id.clone(), message, at: self.clock.now(), expires: now + self.settings.retention },
            visible,
        );
        self.arrived.notify_one();
        id
    }

    /// Takes up to `most` messages, and waits for the first for as long as `wait`. Each comes again unless it is deleted
    /// within `hidden`, by default the queue's visibility time-out.
    pub async fn receive(&self, most: usize, wait: Duration, hidden: Option<Duration>) -> Vec<Received> {
        let deadline = Instant::now() + wait;
        loop {
            let arrived = self.arrived.notified();
            let now = Instant::now();
            let (taken, next) = self.take(most, now, hidden.unwrap_or(self.settings.visibility));
            if !taken.is_empty() || now >= deadline {
                return taken;
            }
            // Whoever waits sees what becomes visible with time as well as what is sent.
            tokio::select! {
                () = arrived => {}
                () = time::sleep_until(next.map_or(deadline, |next| next.min(deadline))) => {}
            }
        }
    }

    fn take(&self, most: usize, now: Instant, hidden: Duration) -> (Vec<Received>, Option<Instant>) {
        let limit = self.settings.dead_letters.as_ref().map_or(u64::MAX, |(_, receives)| *receives);
        let mut messages = self.messages();
        let dead = messages.wake(now, limit);
        let taken = messages.take(most, self.clock.now(), now + hidden);
        let (more, next) = (messages.any_visible(), messages.next_visible());
        drop(messages);
        if more {
            // One notification may stand for several messages: whoever else waits is served as well.
            self.arrived.notify_one();
        }
        if let Some(queue) = &self.dead_letters {
            dead.into_iter().for_each(|message| drop(queue.send(message)));
        }
        (taken, next)
    }

    /// Deletes what this receipt stands for; nothing, if it has been received again since.
    pub fn delete(&self, receipt: &str) {
        self.messages().delete(receipt);
    }

    /// Hides what this receipt stands for from now on for this long; whether it does stand for something.
    pub fn hide(&self, receipt: &str, hidden: Duration) -> bool {
        let known = self.messages().hide(receipt, Instant::now() + hidden);
        self.arrived.notify_one();
        known
    }

    /// Empties the queue.
    pub fn purge(&self) {
        *self.messages() = Messages::default();
    }

    /// How many messages are visible, in somebody's hand, and not visible yet.
    pub fn counts(&self) -> [usize; 3] {
        let mut messages = self.messages();
        messages.wake(Instant::now(), u64::MAX);
        messages.counts()
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
