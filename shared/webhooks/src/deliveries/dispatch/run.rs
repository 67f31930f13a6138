//! A dispatch run: one invocation of the dispatcher, from its batch until all of its work is done.
//!
//! AWS limits how many invocations run at once, and each lasts as long as its slowest exchange. So an invocation
//! waiting for an endpoint continues to receive from its lane's queue: an endpoint that takes 15 s holds one of many
//! permits (`limiter.rs`) instead of a whole invocation. A run whose exchanges are fast ends before it would receive.
//! While several deliveries are waiting for a permit, a run leaves other messages on the queue. A run of the slow lane
//! that has sent deliveries back receives more slowly. A run deletes the messages that it received itself. If it dies,
//! these messages become visible again after their visibility timeout, like those of its batch; the sweep announces
//! their deliveries sooner.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use tokio::{
    select,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::deliveries::{
    dispatch::{
        counting::RecordedAttempt,
        dispatcher::{DispatchError, Dispatcher},
        limiter::{ConcurrencyLimiter, Permit, Waiting},
    },
    queue::{
        Lane, MESSAGES_AT_ONCE,
        inbox::{BatchMessage, Inbox, Received},
        message::{ATTEMPTS_AT_ONCE, AttemptMessage, DeliveryOwner, MalformedMessage},
    },
};
use base::{Random, Time, logging, pause, random};

/// The age at which a run begins to receive.
const RECEIVES_AFTER: Duration = Duration::from_millis(250);
/// How often the recorded attempts are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a run receives. The time is random, so that runs that began together do not end together. The function's
/// timeout leaves enough time for a last exchange and its record.
const RECEIVING: Spread = Spread { least: Duration::from_secs(40), more: Duration::from_secs(40) };
const NOT_HANDLED: &str = "a message was not handled; the queue will deliver it again";
/// The pause after a failed receive call.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);
/// How long a slow-lane delivery without a permit waits on the queue. The time is short because another run may have a
/// free permit: the queue does not spread messages evenly across its receivers.
const RETURNS_AFTER: Spread = Spread { least: Duration::from_millis(500), more: Duration::from_secs(1) };
/// How long a run that has sent deliveries back pauses before it receives again. It then passes at most 50 messages a
/// second, which is enough to find those of other webhooks soon.
const PAUSE_AFTER_SENDING_BACK: Duration = Duration::from_millis(200);
/// How long a delivery of the quick lane waits in memory for a permit. If exchanges are fast, it gets one; otherwise,
/// it moves to the slow lane.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How many deliveries may wait in memory before a run stops receiving, unless it has room.
const MAX_WAITING: usize = MESSAGES_AT_ONCE / 2;

/// The result of handling a message. After an error, the queue delivers the message again, and attempts that were
/// already made are skipped.
type Handled = Result<(), DispatchError>;

/// A random duration between `least` and `least + more`.
struct Spread {
    least: Duration,
    more: Duration,
}

impl Spread {
    fn draw(&self, random: &dyn Random) -> Duration {
        self.least + self.more.mul_f64(random::unit(random))
    }
}

/// A completed step of a run.
enum Step {
    /// A message of the batch, with this identifier, was handled.
    BatchMessage(String, Handled),
    /// A message that the run itself received was handled.
    Received(Handled),
    Counted,
}

impl Step {
    /// The identifier of a batch message that was not handled. An error in handling any message is logged.
    fn not_handled(self) -> Option<String> {
        let (message_id, handled) = match self {
            Self::BatchMessage(message_id, handled) => (Some(message_id), handled),
            Self::Received(handled) => (None, handled),
            Self::Counted => return None,
        };
        let error = handled.err()?;
        tracing::error!(error = %logging::chain(&error), messageId = message_id, "{NOT_HANDLED}");
        message_id
    }
}

/// One invocation of the dispatcher.
struct DispatchRun<'a> {
    dispatcher: &'a Dispatcher,
    inbox: &'a Inbox,
    limiter: ConcurrencyLimiter,
    /// Recorded attempts that have yet to be counted. They do not wait for slower attempts from the same message.
    recorded: Mutex<Vec<RecordedAttempt>>,
    /// Whether a delivery was sent back since the last receive call.
    sent_back: AtomicBool,
}

impl Dispatcher {
    /// The lane whose queue has this ARN.
    pub fn lane(&self, queue_arn: &str) -> Lane {
        let [_, slow] = &self.inboxes;
        Lane::of(slow.is_of(queue_arn))
    }

    /// Handles a batch of a lane's messages, and the messages that it receives during their exchanges. Returns the
    /// identifiers of the batch's messages that the queue must deliver again.
    pub async fn dispatch(&self, lane: Lane, batch: Vec<BatchMessage>) -> Vec<String> {
        let [quick, slow] = &self.inboxes;
        let inbox = match lane {
            Lane::Quick => quick,
            Lane::Slow => slow,
        };
        let limiter = ConcurrencyLimiter::new(lane);
        let run = DispatchRun {
            dispatcher: self,
            inbox,
            limiter,
            recorded: Mutex::default(),
            sent_back: AtomicBool::new(false),
        };
        run.run(batch).await
    }
}

/// The receive call in progress; never ready if there is none.
async fn received(receiving: &mut Option<BoxFuture<'_, Vec<Received>>>) -> Vec<Received> {
    match receiving {
        Some(receiving) => receiving.await,
        None => std::future::pending().await,
    }
}

impl DispatchRun<'_> {
    /// Handles the batch, and the messages received in the meantime.
    async fn run(&self, batch: Vec<BatchMessage>) -> Vec<String> {
        let began = Instant::now();
        let receiving_ends = began + RECEIVING.draw(&*self.dispatcher.random);
        let mut ticks = interval_at(began + RECEIVES_AFTER, COUNT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);

        let mut receives = false;
        let mut messages = batch.len();
        let mut again = Vec::new();
        let mut under_way: FuturesUnordered<BoxFuture<'_, Step>> =
            batch.into_iter().map(|message| self.handle_of_batch(message).boxed()).collect();
        // Never dropped before it completes: messages already received would stay hidden until their visibility
        // timeout.
        let mut receiving: Option<BoxFuture<'_, Vec<Received>>> = None;
        while !under_way.is_empty() || receiving.is_some() {
            if receiving.is_none() && receives && messages > 0 && Instant::now() < receiving_ends {
                receiving = self.room().map(|messages| self.receive(messages).boxed());
            }
            select! {
                biased; // a fixed order, so that a simulation is repeatable; the rarest first
                _ = ticks.tick() => {
                    receives = true;
                    under_way.extend(self.counting());
                }
                Some(step) = under_way.next() => {
                    messages -= usize::from(!matches!(step, Step::Counted));
                    again.extend(step.not_handled());
                }
                received = received(&mut receiving) => {
                    receiving = None;
                    messages += received.len();
                    under_way.extend(received.into_iter().map(|message| self.handle_received(message).boxed()));
                }
            }
        }
        self.dispatcher.count(self.take_recorded()).await;
        self.dispatcher.meter.publish(self.inbox.lane(), self.limiter.most(), self.dispatcher.clock.now());
        again
    }

    /// Counts the recorded attempts, if there are any.
    fn counting(&self) -> Option<BoxFuture<'_, Step>> {
        let recorded = self.take_recorded();
        (!recorded.is_empty()).then(|| self.dispatcher.count(recorded).map(|()| Step::Counted).boxed())
    }

    /// How many more messages the run may receive; `None` if it has no room.
    fn room(&self) -> Option<usize> {
        let has_room = self.limiter.waiting() < MAX_WAITING || self.limiter.have_room();
        // Each message may announce several attempts.
        let free = self.limiter.free().div_ceil(ATTEMPTS_AT_ONCE);
        (has_room && free > 0).then_some(free)
    }

    fn take_recorded(&self) -> Vec<RecordedAttempt> {
        mem::take(&mut *self.recorded())
    }

    fn recorded(&self) -> MutexGuard<'_, Vec<RecordedAttempt>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn receive(&self, most: usize) -> Vec<Received> {
        if self.sent_back.swap(false, Ordering::Relaxed) {
            pause(PAUSE_AFTER_SENDING_BACK).await;
        }
        match self.inbox.receive(most).await {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(error = %logging::chain(&error), "the queue could not be read; trying again");
                pause(PAUSE_AFTER_ERROR).await;
                Vec::new()
            }
        }
    }

    async fn handle_of_batch(&self, BatchMessage { message_id, attempts }: BatchMessage) -> Step {
        Step::BatchMessage(message_id, self.handle(attempts).await)
    }

    async fn handle_received(&self, Received { attempts, receipt }: Received) -> Step {
        let handled = self.handle(attempts).await;
        if handled.is_ok()
            && let Err(error) = self.inbox.delete(receipt).await
        {
            tracing::warn!(
                error = %logging::chain(&error),
                "a handled message could not be deleted; the queue will deliver it again, and it will be dropped"
            );
        }
        Step::Received(handled)
    }

    /// Makes the attempts that a message announces, concurrently.
    async fn handle(&self, attempts: Result<Vec<AttemptMessage>, MalformedMessage>) -> Handled {
        let attempts = attempts.map_err(DispatchError::Message)?;
        // Every attempt must complete, even if another fails.
        join_all(attempts.into_iter().map(|message| self.handle_one(message))).await.into_iter().collect()
    }

    /// Makes an attempt if it gets a permit. Otherwise the delivery waits, unclaimed and unchanged.
    async fn handle_one(&self, message: AttemptMessage) -> Handled {
        let mut permit = match self.permit(&message.owner(), message.due.has_waited).await {
            Ok(permit) => permit,
            Err(_waiting) => {
                self.wait(message).await;
                return Ok(());
            }
        };
        let recorded = self.dispatcher.one(&message, self.inbox.lane()).await?;
        if recorded.is_some() {
            permit.note_attempt();
        }
        self.recorded().extend(recorded);
        Ok(())
    }

    /// Takes a permit for a delivery. If none is free in time, the delivery counts as waiting in memory until the error
    /// is dropped.
    async fn permit(&self, owner: &DeliveryOwner, has_waited: bool) -> Result<Permit<'_>, Waiting<'_>> {
        let limit = match self.inbox.lane() {
            Lane::Quick => PERMIT_TIMEOUT,
            // Deliveries of slow webhooks wait on the queue.
            Lane::Slow if self.limiter.is_quick(&owner.webhook) => PERMIT_TIMEOUT,
            Lane::Slow => Duration::ZERO,
        };
        self.limiter.take_within(limit, owner, has_waited).await
    }

    /// Makes a delivery without a permit wait. The quick lane passes it to the slow lane. There, its message is sent back
    /// to the queue.
    async fn wait(&self, message: AttemptMessage) {
        let now = self.dispatcher.clock.now();
        let (message, then) = match self.inbox.lane() {
            Lane::Quick => (message, now),
            Lane::Slow => {
                self.sent_back.store(true, Ordering::Relaxed);
                (message.waiting(), now + RETURNS_AFTER.draw(&*self.dispatcher.random))
            }
        };
        self.send(message, then, now).await;
    }

    async fn send(&self, message: AttemptMessage, due: Time, now: Time) {
        self.dispatcher.queue.announce(Lane::Slow, message, due, now).await;
    }
}
