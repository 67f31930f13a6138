//! A round: one invocation of the dispatcher, from its batch until nothing of it is under way.
//!
//! On AWS there are only so many invocations, and each ends with its slowest exchange. So an invocation that has to wait
//! goes on receiving from the queue of its lane and dispatches what it gets: an endpoint that takes 15 s holds one place of
//! many (`places.rs`), and no invocation. A round of quick exchanges is over before it would receive.
//!
//! What a round has received by itself it deletes by itself. If it dies, its messages come again after their visibility
//! time-out, like those of its batch, and the sweep is sooner.

use std::{sync::Arc, time::Duration};

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    select,
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};

use super::{
    dispatch::{DispatchError, Dispatcher, Tried},
    places::Places,
    queue::{Inbox, Lane, Notice, Received, Whose},
};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, logging, random};
use storage::table::TableError;

/// After this long a round that is not over begins to receive by itself.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the attempts that ended meanwhile are counted.
const BEAT: Duration = Duration::from_secs(1);
/// For how long a round receives: at least, and how much more at most. So rounds that began together do not end together,
/// and at any time most of those under way still take what comes. An exchange and its record later the function's time limit is
/// still far away.
const RECEIVING: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(40));
/// The pause after a receive that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a delivery without a place waits on the queue: at least, and how much more at most. The first time it is short,
/// since another round may have a place: receivers that wait do not share evenly what comes.
const SENT_BACK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(1));
const SENT_BACK_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

type Outcome = Result<Option<Tried>, DispatchError>;

/// An event in a round.
enum Step {
    /// A message of the batch was dealt with.
    Handed(String, Outcome),
    /// A message that the round had received was.
    Received(Outcome),
    /// Something was counted.
    Counted,
}

/// One invocation.
struct Round<'a> {
    dispatcher: &'a Dispatcher,
    inbox: &'a Inbox,
    places: Places,
}

impl Dispatcher {
    /// Deals with a batch of messages, and with what comes while it has to wait for that; says which messages of the batch
    /// have to come again.
    pub async fn dispatch(self: Arc<Self>, batch: SqsEvent) -> SqsBatchResponse {
        let arn = batch.records.first().and_then(|message| message.event_source_arn.as_deref()).unwrap_or_default();
        let [quick, slow] = &self.inboxes;
        let inbox = if slow.is_of(arn) { slow } else { quick };
        Round { dispatcher: &self, inbox, places: Places::new(inbox.lane()) }.run(&batch.records).await
    }
}

impl Round<'_> {
    async fn run(&self, batch: &[SqsMessage]) -> SqsBatchResponse {
        let began = Instant::now();
        let (least, more) = RECEIVING;
        let receiving_ends = began + least + more.mul_f64(random::unit(&*self.dispatcher.random));
        let mut beats = interval_at(began + PATIENCE, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);

        let mut under_way: FuturesUnordered<BoxFuture<'_, Step>> =
            batch.iter().map(|message| self.handed(message).boxed()).collect();
        // Never dropped before its end: what it has received by then would be lost for as long as the visibility time-out.
        let mut receiving: Option<BoxFuture<'_, Vec<Received>>> = None;
        let (mut waits, mut messages, mut tried) = (false, batch.len(), Vec::new());
        let mut response = SqsBatchResponse::default();
        while !under_way.is_empty() || receiving.is_some() {
            if receiving.is_none() && waits && messages > 0 && Instant::now() < receiving_ends {
                let free = self.places.free();
                receiving = (free > 0).then(|| self.receive(free).boxed());
            }
            let received = async {
                match &mut receiving {
                    Some(receiving) => receiving.await,
                    None => std::future::pending().await,
                }
            };
            select! {
                Some(step) = under_way.next() => match step {
                    Step::Handed(message_id, outcome) => {
                        messages -= 1;
                        match outcome {
                            Ok(attempt) => tried.extend(attempt),
                            Err(error) => response.batch_item_failures.push(comes_again(message_id, &error)),
                        }
                    }
                    Step::Received(outcome) => {
                        messages -= 1;
                        match outcome {
                            Ok(attempt) => tried.extend(attempt),
                            Err(error) => tracing::error!(error = %logging::chain(&error), "a message has to come again"),
                        }
                    }
                    Step::Counted => {}
                },
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
        response
    }

    async fn receive(&self, most: usize) -> Vec<Received> {
        match self.inbox.receive(most).await {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(error = %logging::chain(&error), "nothing could be received");
                sleep(PAUSE).await;
                Vec::new()
            }
        }
    }

    async fn handed(&self, message: &SqsMessage) -> Step {
        let attribute = |name: &str| message.message_attributes.get(name)?.string_value.as_deref();
        let notice = Notice::read(message.body.as_deref().unwrap_or_default(), attribute);
        Step::Handed(message.message_id.clone().unwrap_or_default(), self.deal_with(notice).await)
    }

    async fn received(&self, Received { notice, receipt }: Received) -> Step {
        let outcome = self.deal_with(notice).await;
        if outcome.is_ok()
            && let Err(error) = self.inbox.delete(receipt).await
        {
            tracing::warn!(error = %logging::chain(&error), "a handled message could not be deleted and comes again");
        }
        Step::Received(outcome)
    }

    /// Has the attempt made that a message announces, if there is a place for it here; else the delivery waits, without a
    /// claim and so with everything as it was.
    async fn deal_with(&self, notice: Result<Notice, serde_json::Error>) -> Outcome {
        let notice = notice.map_err(DispatchError::Message)?;
        let whose = match &notice.whose {
            Some(whose) => Some(whose.clone()),
            // Of an earlier version.
            None => self.dispatcher.deliveries.whose(&notice.message.delivery).await?,
        };
        let Some(whose) = whose else { return Ok(None) };
        let Some(_place) = self.places.take(&whose, notice.has_waited) else {
            self.wait(notice, whose).await;
            return Ok(None);
        };
        let entity = AuthorizedEntity::owning_delivery(whose.entity.clone());
        let webhook = match self.dispatcher.webhooks.find(&entity, &whose.webhook).await {
            Ok(found) => found,
            Err(error @ TableError::Unavailable { .. }) => return Err(error.into()),
            // It stays like that: the dispatcher finds the same under its claim, and lets the delivery wait.
            Err(_) => None,
        };
        let now = self.dispatcher.clock.now();
        if self.inbox.lane() == Lane::Quick && webhook.as_ref().is_some_and(|found| found.webhook.is_slow(now)) {
            self.send(notice, whose, now, now).await;
            return Ok(None);
        }
        self.dispatcher.one(&notice.message, webhook).await
    }

    /// What finds no place in the quick lane goes to the slow one; there it comes back after a moment, later after some
    /// seconds, and when many of its entity do already, the sweep brings it back.
    async fn wait(&self, notice: Notice, whose: Whose) {
        let now = self.dispatcher.clock.now();
        if self.inbox.lane() == Lane::Quick {
            return self.send(notice, whose, now, now).await;
        }
        if self.places.send_back(&whose.entity) {
            let (least, more) = if notice.has_waited { SENT_BACK_AGAIN } else { SENT_BACK };
            let then = now + least + more.mul_f64(random::unit(&*self.dispatcher.random));
            return self.send(notice.waiting(), whose, then, now).await;
        }
        tracing::debug!(deliveryId = %notice.message.delivery, "no place for it now; the sweep will find it");
    }

    async fn send(&self, notice: Notice, whose: Whose, due: Time, now: Time) {
        let notice = Notice { whose: Some(whose), ..notice };
        if let Err(error) = self.dispatcher.queue.announce(Lane::Slow, notice, due, now).await {
            tracing::warn!(error = %logging::chain(&error), "not announced; the sweep will find it");
        }
    }
}

fn comes_again(message_id: String, error: &DispatchError) -> BatchItemFailure {
    tracing::error!(error = %logging::chain(error), messageId = message_id, "a message has to come again");
    let mut failure = BatchItemFailure::default();
    failure.item_identifier = message_id;
    failure
}
