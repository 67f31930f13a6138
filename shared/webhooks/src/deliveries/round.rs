//! A round: one invocation of the dispatcher, from its batch until none of its work is under way.
//!
//! AWS runs only so many invocations at once, and each ends with its slowest exchange. So an invocation that has to
//! wait goes on receiving from the queue of its lane and dispatches what it gets: an endpoint that takes 15 s holds one
//! slot of many (`slots.rs`), and no invocation. A round of quick exchanges is over before it would receive. A round of the
//! quick lane in which deliveries wait for a slot leaves the others on the queue.
//!
//! A round deletes the messages that it received by itself. If it dies, its messages come again after their visibility
//! time-out, as those of its batch do, and the sweep is sooner.

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    select,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    counting::Tried,
    dispatch::{DispatchError, Dispatcher},
    inbox::{Handed, Inbox, Received},
    notice::{DeliveryOwner, MalformedMessage, Notice},
    queue::{Lane, MESSAGES_AT_ONCE},
    slots::{Slot, Slots, Waiting},
};
use base::{Time, logging, pause, random};

/// After this long a round that is not over begins to receive by itself.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the attempts that ended meanwhile are counted.
const BEAT: Duration = Duration::from_secs(1);
/// For how long a round receives: at least, and how much more at most. So rounds that began together do not end
/// together, and most rounds under way still receive. The function's time limit leaves an exchange and its record after
/// that.
const RECEIVING: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(40));
/// Logged with the error of a message.
const AGAIN: &str = "a message has to come again";
/// The pause after a receive that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a delivery without a slot waits on the queue: at least, and how much more at most. The first wait is
/// short, since another round may have a slot: the queue does not spread messages evenly over waiting receivers.
const SENT_BACK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(1));
const SENT_BACK_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// How long a delivery of the quick lane waits here for a slot: where exchanges are quick it gets one, and else it goes to
/// the slow lane.
const SLOT_PATIENCE: Duration = Duration::from_secs(1);
/// While so many deliveries wait here for a slot, a round receives no more, unless it has room.
const MOST_WAITING: usize = MESSAGES_AT_ONCE / 2;

/// The attempt that a message led to, if any.
type Handled = Result<Option<Tried>, DispatchError>;

/// The end of one piece of work of a round.
enum Step {
    /// A message of the batch, with its identifier, was handled.
    Handed(String, Handled),
    /// A message that the round had received was handled.
    Received(Handled),
    /// Attempts were counted.
    Counted,
}

/// One invocation.
struct Round<'a> {
    dispatcher: &'a Dispatcher,
    inbox: &'a Inbox,
    slots: Slots,
}

impl Dispatcher {
    /// The lane whose queue has this ARN.
    pub fn lane(&self, queue_arn: &str) -> Lane {
        let [_, slow] = &self.inboxes;
        Lane::of(slow.is_of(queue_arn))
    }

    /// Handles a batch of messages of a lane, and the messages that come while it waits for their exchanges. Returns
    /// the identifiers of the messages of the batch that must come again.
    pub async fn dispatch(&self, lane: Lane, batch: Vec<Handed>) -> Vec<String> {
        let [quick, slow] = &self.inboxes;
        let inbox = match lane {
            Lane::Quick => quick,
            Lane::Slow => slow,
        };
        Round { dispatcher: self, inbox, slots: Slots::new(lane) }.run(batch).await
    }
}

impl Round<'_> {
    async fn run(&self, batch: Vec<Handed>) -> Vec<String> {
        let began = Instant::now();
        let (least, more) = RECEIVING;
        let receiving_ends = began + least + more.mul_f64(random::unit(&*self.dispatcher.random));
        let mut beats = interval_at(began + PATIENCE, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);

        let (mut waits, mut messages, mut tried, mut again) = (false, batch.len(), Vec::new(), Vec::new());
        let mut under_way: FuturesUnordered<BoxFuture<'_, Step>> =
            batch.into_iter().map(|message| self.handed(message).boxed()).collect();
        // Never dropped before its end: the messages received by then would be hidden until their visibility time-out.
        let mut receiving: Option<BoxFuture<'_, Vec<Received>>> = None;
        while !under_way.is_empty() || receiving.is_some() {
            let may_receive = self.slots.waiting() < MOST_WAITING || self.slots.have_room();
            if receiving.is_none() && waits && may_receive && messages > 0 && Instant::now() < receiving_ends {
                let free = self.slots.free();
                receiving = (free > 0).then(|| self.receive(free).boxed());
            }
            let received = async {
                match &mut receiving {
                    Some(receiving) => receiving.await,
                    None => std::future::pending().await,
                }
            };
            select! {
                Some(step) = under_way.next() => {
                    let (message_id, handled) = match step {
                        Step::Handed(message_id, handled) => (Some(message_id), handled),
                        Step::Received(handled) => (None, handled),
                        Step::Counted => continue,
                    };
                    messages -= 1;
                    match handled {
                        Ok(attempt) => tried.extend(attempt),
                        Err(error) => {
                            tracing::error!(error = %logging::chain(&error), messageId = message_id, "{AGAIN}");
                            again.extend(message_id);
                        }
                    }
                }
                received = received => {
                    receiving = None;
                    messages += received.len();
                    under_way.extend(received.into_iter().map(|message| self.received(message).boxed()));
                }
                _ = beats.tick() => {
                    waits = true;
                    if !tried.is_empty() {
                        let tried = std::mem::take(&mut tried);
                        under_way.push(self.dispatcher.count(tried).map(|()| Step::Counted).boxed());
                    }
                }
            }
        }
        self.dispatcher.count(tried).await;
        self.dispatcher.meter.publish(self.inbox.lane(), self.slots.most(), self.dispatcher.clock.now());
        again
    }

    async fn receive(&self, most: usize) -> Vec<Received> {
        match self.inbox.receive(most).await {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(error = %logging::chain(&error), "nothing could be received");
                pause(PAUSE).await;
                Vec::new()
            }
        }
    }

    async fn handed(&self, Handed { message_id, notice }: Handed) -> Step {
        Step::Handed(message_id, self.handle(notice).await)
    }

    async fn received(&self, Received { notice, receipt }: Received) -> Step {
        let handled = self.handle(notice).await;
        if handled.is_ok()
            && let Err(error) = self.inbox.delete(receipt).await
        {
            tracing::warn!(error = %logging::chain(&error), "a handled message could not be deleted and comes again");
        }
        Step::Received(handled)
    }

    /// Makes the attempt that a message announces, if there is a slot for it here; otherwise the delivery waits,
    /// unclaimed and unchanged.
    async fn handle(&self, notice: Result<Notice, MalformedMessage>) -> Handled {
        let notice = notice.map_err(DispatchError::Message)?;
        let _slot = match self.slot(&notice.owner, notice.has_waited).await {
            Ok(slot) => slot,
            Err(_waiting) => {
                self.wait(notice).await;
                return Ok(None);
            }
        };
        self.dispatcher.one(&notice, self.inbox.lane()).await
    }

    /// A slot for a delivery; an error, which counts it as waiting here, when there is none soon enough.
    async fn slot(&self, owner: &DeliveryOwner, has_waited: bool) -> Result<Slot<'_>, Waiting<'_>> {
        let patience = match self.inbox.lane() {
            Lane::Quick => SLOT_PATIENCE,
            // It waits on the queue.
            Lane::Slow => Duration::ZERO,
        };
        self.slots.take_within(patience, owner, has_waited).await
    }

    /// Lets a delivery without a slot wait. The quick lane hands it to the slow lane; there its message comes back
    /// after a moment, later after some seconds, or with the sweep when many of its entity's come back already.
    async fn wait(&self, notice: Notice) {
        let now = self.dispatcher.clock.now();
        if self.inbox.lane() == Lane::Quick {
            self.send(notice, now, now).await;
        } else if self.slots.send_back(&notice.owner.entity) {
            let (least, more) = if notice.has_waited { SENT_BACK_AGAIN } else { SENT_BACK };
            let then = now + least + more.mul_f64(random::unit(&*self.dispatcher.random));
            self.send(notice.waiting(), then, now).await;
        } else {
            tracing::debug!(deliveryId = %notice.message.delivery, "no slot for it now; the sweep will find it");
        }
    }

    async fn send(&self, notice: Notice, due: Time, now: Time) {
        self.dispatcher.queue.announce(Lane::Slow, notice, due, now).await;
    }
}
