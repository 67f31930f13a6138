//! All queues, and the receivers waiting for their messages.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use base::{Random, SharedClock, SharedRandom, random};
use tokio::sync::Notify;

use crate::{
    message::{Message, NewMessage},
    queue::{Queue, ReceiveResult, Received},
    ready::Number,
    refusal::{Kind, Refusal},
    settings::{self, Settings},
    timer::{SystemTimer, Timer},
};

/// The maximum length of a queue's name.
const MAX_NAME: usize = 80;

/// All queues of a run. Clones share the queues.
#[derive(Clone)]
pub struct Queues(Arc<Shared>);

struct Shared {
    namespace: Namespace,
    timer: Box<dyn Timer>,
    random: SharedRandom,
    /// All queues share one lock: an operation takes microseconds, and a dead letter moves between two queues.
    state: Mutex<State>,
}

/// The common parts of the queues' URLs and ARNs.
struct Namespace {
    address: String,
    region: String,
    account: String,
}

#[derive(Default)]
struct State {
    queues: HashMap<String, Named>,
    /// The number of the last message.
    number: Number,
}

/// A queue with its ARN and creation time.
struct Named {
    queue: Queue,
    arn: Arc<str>,
    created: i64,
    /// Wakes a waiting receiver.
    bell: Arc<Notify>,
}

/// The options for a receive.
#[derive(Debug, Clone, Copy)]
pub struct Receive {
    /// The maximum number of messages.
    pub most: usize,
    /// The visibility timeout, by default the queue's.
    pub visibility: Option<Duration>,
    /// How long to wait for the first message, by default as long as the queue's setting says.
    pub wait: Option<Duration>,
}

/// A waiting receiver. Dropping it wakes the next receiver: messages may be left, or one may be due sooner than that
/// receiver knows.
struct Waiting(Arc<Notify>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Queues {
    /// An empty set of queues. `address` is the server's address (`http://127.0.0.2:4566`), the beginning of all queue
    /// URLs; a request identifies a queue only by the name at the end of its URL.
    pub fn new(address: &str, region: &str, account: &str, clock: SharedClock, random: SharedRandom) -> Self {
        Self::timed(address, region, account, Box::new(SystemTimer(clock)), random)
    }

    pub(crate) fn timed(
        address: &str,
        region: &str,
        account: &str,
        timer: Box<dyn Timer>,
        random: SharedRandom,
    ) -> Self {
        let [address, region, account] = [address, region, account].map(str::to_owned);
        let namespace = Namespace { address, region, account };
        Self(Arc::new(Shared { namespace, timer, random, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing panics while holding it")
    }

    /// A queue's URL.
    pub fn url(&self, queue: &str) -> String {
        let Namespace { address, account, .. } = &self.0.namespace;
        format!("{address}/{account}/{queue}")
    }

    /// A queue's ARN.
    pub fn arn(&self, queue: &str) -> String {
        let Namespace { region, account, .. } = &self.0.namespace;
        format!("arn:aws:sqs:{region}:{account}:{queue}")
    }

    /// The account that owns all queues.
    pub fn account(&self) -> &str {
        &self.0.namespace.account
    }

    /// Creates a queue unless it already exists with the same attributes.
    ///
    /// # Errors
    ///
    /// Fails if the name or an attribute is invalid, or if the queue exists with a different value for an attribute.
    pub fn create(&self, queue: &str, attributes: &BTreeMap<String, String>) -> Result<(), Refusal> {
        let is_name = (1..=MAX_NAME).contains(&queue.len())
            && queue.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_".contains(&letter));
        if !is_name {
            let rule = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
            return Err(Refusal::invalid(rule));
        }
        let id = u64::from_le_bytes(random::bytes(self.0.random.as_ref() as &dyn Random));
        let now = self.0.timer.now();
        let arn = self.arn(queue);
        let mut state = self.state();
        let prefix = self.arn("");
        let queue_of = |arn: &str| {
            let name = arn.strip_prefix(&prefix).unwrap_or_default();
            state.queues.contains_key(name).then(|| name.to_owned())
        };
        let settings = Settings::read(attributes, queue_of)?;
        if let Some(present) = state.queues.get(queue) {
            let present = present.queue.settings.attributes();
            let Some((name, _)) = attributes.iter().find(|(name, value)| present.get(*name) != Some(value)) else {
                return Ok(());
            };
            let message =
                format!("A queue already exists with the same name and a different value for attribute {name}");
            return Err(Refusal::new(Kind::QueueNameExists, message));
        }
        let named =
            Named { queue: Queue::new(id, settings), arn: arn.into(), created: now.as_seconds(), bell: Arc::default() };
        state.queues.insert(queue.to_owned(), named);
        Ok(())
    }

    /// The names of all queues, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.state().queues.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Refuses a name that no queue has.
    pub(crate) fn require(&self, queue: &str) -> Result<(), Refusal> {
        self.state().get(queue).map(drop)
    }

    /// All attributes of a queue, including SQS's message counts.
    ///
    /// # Errors
    /// Fails if there is no such queue.
    pub fn attributes(&self, queue: &str) -> Result<BTreeMap<String, String>, Refusal> {
        let now = self.0.timer.now();
        let mut state = self.state();
        let named = state.get(queue)?;
        let counts = named.queue.counts(now);
        let mut attributes = named.queue.settings.attributes();
        let others = [
            ("QueueArn", named.arn.to_string()),
            ("CreatedTimestamp", named.created.to_string()),
            ("LastModifiedTimestamp", named.created.to_string()),
            ("ApproximateNumberOfMessages", counts.ready.to_string()),
            ("ApproximateNumberOfMessagesNotVisible", counts.in_flight.to_string()),
            ("ApproximateNumberOfMessagesDelayed", counts.delayed.to_string()),
        ];
        attributes.extend(others.map(|(name, value)| (name.to_owned(), value)));
        Ok(attributes)
    }

    /// Refuses an attribute name that no queue has.
    pub(crate) fn check_attribute(name: &str, present: &BTreeMap<String, String>) -> Result<(), Refusal> {
        if name == "All" || present.contains_key(name) || Settings::is_name(name) {
            return Ok(());
        }
        Err(settings::unknown(name))
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Fails if there is no such queue, or if SQS would refuse the message.
    pub fn send(&self, queue: &str, new: NewMessage) -> Result<Sent, Refusal> {
        let now = self.0.timer.now();
        let id = random::uuid(self.0.random.as_ref() as &dyn Random);
        let max_bytes = self.state().get(queue)?.queue.settings.max_bytes;
        let delay = new.delay;
        // Check and hash the message before taking the lock.
        let message = new.accepted(id, now, max_bytes)?;
        let sent = Sent::of(&message);
        let mut state = self.state();
        let number = state.number + 1;
        let named = state.get(queue)?;
        let delay = delay.unwrap_or(named.queue.settings.delay);
        named.queue.add(number, message, delay);
        named.bell.notify_one();
        state.number = number;
        Ok(sent)
    }

    /// Receives messages as soon as there are any. Dropping the future stops the wait without receiving a message.
    ///
    /// # Errors
    /// Fails if there is no such queue.
    pub async fn receive(&self, queue: &str, receive: Receive) -> Result<Vec<Received>, Refusal> {
        let (bell, wait) = {
            let mut state = self.state();
            let named = state.get(queue)?;
            (Arc::clone(&named.bell), receive.wait.unwrap_or(named.queue.settings.wait))
        };
        let deadline = self.0.timer.now() + wait;
        let waiting = Waiting(bell);
        loop {
            let mut rung = std::pin::pin!(waiting.0.notified());
            // From here on, no notification is missed.
            rung.as_mut().enable();
            let now = self.0.timer.now();
            let (received, next) = self.state().take(queue, receive, now)?;
            if !received.is_empty() || now >= deadline {
                return Ok(received);
            }
            let until = next.map_or(deadline, |next| next.min(deadline));
            tokio::select! {
                biased; // fixed order, so that a simulation can be repeated
                () = rung => {}
                () = self.0.timer.wait(until) => {}
            }
        }
    }

    /// Deletes the message that a receipt belongs to.
    ///
    /// # Errors
    ///
    /// Fails if there is no such queue, or if the queue did not issue this receipt.
    pub fn delete(&self, queue: &str, receipt: &str) -> Result<(), Refusal> {
        self.state().get(queue)?.queue.delete(receipt)
    }

    /// Removes every message from a queue. SQS allows one purge a minute; here, purging is always allowed.
    ///
    /// # Errors
    /// Fails if there is no such queue.
    pub fn purge(&self, queue: &str) -> Result<(), Refusal> {
        self.state().get(queue)?.queue.purge();
        Ok(())
    }
}

/// The result of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The message's identifier.
    pub id: String,
    /// The MD5 hash of the text.
    pub md5: String,
    /// The MD5 hash of the attributes, if there are any.
    pub attributes_md5: Option<String>,
}

impl Sent {
    fn of(message: &Message) -> Self {
        let attributes_md5 = crate::message::attributes_md5(&message.attributes);
        Self { id: message.id.clone(), md5: message.md5.clone(), attributes_md5 }
    }
}

impl State {
    fn get(&mut self, queue: &str) -> Result<&mut Named, Refusal> {
        let absent = || Refusal::new(Kind::QueueDoesNotExist, "The specified queue does not exist.");
        self.queues.get_mut(queue).ok_or_else(absent)
    }

    /// Receives messages, moves dead letters to their queue, and returns when the next hidden message becomes visible.
    fn take(
        &mut self,
        queue: &str,
        Receive { most, visibility, .. }: Receive,
        now: base::Time,
    ) -> Result<(Vec<Received>, Option<base::Time>), Refusal> {
        let named = self.get(queue)?;
        let visibility = visibility.unwrap_or(named.queue.settings.visibility);
        let ReceiveResult { received, dead } = named.queue.take(most, visibility, now);
        let next = named.queue.next_due();
        let source = Arc::clone(&named.arn);
        let letters = named.queue.settings.redrive.as_ref().map(|redrive| redrive.queue.clone());
        if let Some(letters) = letters.filter(|_| !dead.is_empty()).and_then(|name| self.queues.get_mut(&name)) {
            for (number, entry) in dead {
                letters.queue.bury(number, entry, &source);
            }
            letters.bell.notify_one();
        }
        Ok((received, next))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, task::Poll};

    use base::SystemRandom;
    use futures::{FutureExt, future::join_all, poll};

    use super::*;
    use crate::timer::tests::HandTimer;

    const SECOND: Duration = Duration::from_secs(1);
    const LONG: Receive = Receive { most: 10, visibility: None, wait: Some(Duration::from_secs(20)) };

    fn queues() -> (Queues, HandTimer) {
        let timer = HandTimer::new();
        let queues = Queues::timed("http://127.0.0.2:1", "r", "1", Box::new(timer.clone()), Arc::new(SystemRandom));
        queues.create("q", &BTreeMap::new()).unwrap();
        (queues, timer)
    }

    fn send(queues: &Queues, body: &str, delay: u64) {
        let delay = Some(Duration::from_secs(delay));
        queues.send("q", NewMessage { body: body.to_owned(), delay, ..NewMessage::default() }).unwrap();
    }

    fn bodies(received: Result<Vec<Received>, Refusal>) -> Vec<String> {
        received.unwrap().into_iter().map(|received| received.message.body.clone()).collect()
    }

    async fn is_pending(future: impl Future + Unpin) -> bool {
        matches!(poll!(future), Poll::Pending)
    }

    #[tokio::test]
    async fn a_waiting_receiver_is_woken_by_a_send() {
        let (queues, _timer) = queues();
        let mut receiver = Box::pin(queues.receive("q", LONG));
        assert!(is_pending(&mut receiver).await);
        send(&queues, "now", 0);
        assert_eq!(bodies(receiver.await), ["now"]);
    }

    #[tokio::test]
    async fn a_waiting_receiver_is_woken_when_a_delay_ends() {
        let (queues, timer) = queues();
        let mut receiver = Box::pin(queues.receive("q", LONG));
        assert!(is_pending(&mut receiver).await);
        send(&queues, "later", 9);
        send(&queues, "sooner", 3);
        assert!(is_pending(&mut receiver).await);
        timer.pass(2 * SECOND);
        assert!(is_pending(&mut receiver).await);
        timer.pass(SECOND);
        assert_eq!(bodies(receiver.await), ["sooner"]);
    }

    #[tokio::test]
    async fn a_waiting_receiver_is_woken_when_a_message_is_visible_again() {
        let (queues, timer) = queues();
        send(&queues, "text", 0);
        queues.receive("q", LONG).await.unwrap();
        let mut receiver = Box::pin(queues.receive("q", Receive { wait: Some(60 * SECOND), ..LONG }));
        assert!(is_pending(&mut receiver).await);
        timer.pass(30 * SECOND);
        assert_eq!(receiver.await.unwrap()[0].receives, 2);
    }

    #[tokio::test]
    async fn a_receive_ends_without_messages_after_its_wait() {
        let (queues, timer) = queues();
        assert_eq!(queues.receive("q", Receive { wait: None, ..LONG }).now_or_never(), Some(Ok(vec![])));
        let mut receiver = Box::pin(queues.receive("q", LONG));
        assert!(is_pending(&mut receiver).await);
        timer.pass(20 * SECOND);
        assert!(receiver.await.unwrap().is_empty());
    }

    /// The receiver that wakes up takes one message, and must wake another receiver for the next.
    #[tokio::test]
    async fn no_message_waits_while_receivers_wait() {
        let (queues, timer) = queues();
        let one = Receive { most: 1, ..LONG };
        let mut receivers: Vec<_> = (0..5).map(|_| Box::pin(queues.receive("q", one))).collect();
        for receiver in &mut receivers {
            assert!(is_pending(receiver).await);
        }
        (0..2).for_each(|number| send(&queues, &number.to_string(), 0));
        (2..5).for_each(|number| send(&queues, &number.to_string(), 2));
        let mut all = Box::pin(join_all(receivers));
        assert!(is_pending(&mut all).await);
        timer.pass(2 * SECOND);
        let mut received: Vec<_> = all.await.into_iter().flat_map(bodies).collect();
        received.sort();
        assert_eq!(received, ["0", "1", "2", "3", "4"]);
    }

    #[tokio::test]
    async fn a_receiver_that_is_dropped_takes_no_message_and_wakes_the_next() {
        let (queues, timer) = queues();
        let mut first = Box::pin(queues.receive("q", LONG));
        let mut second = Box::pin(queues.receive("q", LONG));
        assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        send(&queues, "soon", 1);
        // Only the first receiver has looked again, so only it knows when the message is due.
        assert!(is_pending(&mut first).await);
        drop(first);
        assert!(is_pending(&mut second).await);
        timer.pass(SECOND);
        assert_eq!(bodies(second.await), ["soon"]);
    }

    #[tokio::test]
    async fn dead_letters_are_received_from_their_queue() {
        let (queues, timer) = queues();
        let arn = queues.arn("q");
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":1}}"#);
        let attributes = [("RedrivePolicy", policy.as_str()), ("VisibilityTimeout", "5")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        queues.create("main", &attributes).unwrap();
        queues.send("main", NewMessage { body: "text".to_owned(), ..NewMessage::default() }).unwrap();
        assert_eq!(bodies(queues.receive("main", LONG).await), ["text"]);
        let mut letters = Box::pin(queues.receive("q", LONG));
        assert!(is_pending(&mut letters).await);
        timer.pass(5 * SECOND);
        assert!(is_pending(Box::pin(queues.receive("main", LONG))).await);
        let letter = letters.await.unwrap().remove(0);
        assert_eq!(letter.source.as_deref(), Some(queues.arn("main").as_str()));
        assert_eq!(letter.receives, 2);
    }

    #[test]
    fn a_queue_is_made_once_and_not_with_other_attributes() {
        let (queues, _timer) = queues();
        let with = |seconds: &str| [("DelaySeconds".to_owned(), seconds.to_owned())].into();
        assert_eq!(queues.create("q", &with("0")), Ok(()));
        assert_eq!(queues.create("q", &with("1")).unwrap_err().kind, Kind::QueueNameExists);
        for name in ["", "a b", "a.fifo", &"a".repeat(81)] {
            assert_eq!(queues.create(name, &BTreeMap::new()).unwrap_err().kind, Kind::InvalidParameterValue, "{name}");
        }
        assert_eq!(queues.send("other", NewMessage::default()).unwrap_err().kind, Kind::QueueDoesNotExist);
        assert_eq!(queues.names(), ["q"]);
    }

    #[test]
    fn a_queue_counts_its_messages() {
        let (queues, _timer) = queues();
        (0..3).for_each(|_| send(&queues, "x", 0));
        send(&queues, "x", 9);
        let received = queues.receive("q", Receive { most: 2, ..LONG }).now_or_never().unwrap().unwrap();
        assert_eq!(received.len(), 2);
        let attributes = queues.attributes("q").unwrap();
        let count = |kind: &str| attributes[&format!("ApproximateNumberOfMessages{kind}")].clone();
        assert_eq!([count(""), count("NotVisible"), count("Delayed")], ["1", "2", "1"]);
        assert_eq!(attributes["QueueArn"], "arn:aws:sqs:r:1:q");
    }
}
