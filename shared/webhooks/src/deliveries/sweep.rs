//! The sweep, which runs every minute. It opens the deliveries of new events (`store::open`), announces overdue
//! deliveries, publishes the outbox and works on jobs.
//!
//! A delivery is overdue if its message was lost, its worker died, or its wait exceeds the longest delay of a message.
//! Before the sweep announces a delivery, it postpones the due time, for twice as long each time, so that repeated
//! announcements do not add to a backlog on the queue. While the queue is crowded, a delivery probably still has a
//! message on it: the sweep opens it much later, or postpones it much further and sends no message yet.
//!
//! A failing delivery does not end its page or shard: one throttled delivery must not block the ones after it. The
//! sweep returns its first error at the end.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{join_all, ready},
    stream,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::timeout,
};

use crate::{
    deliveries::{
        jobs::Worker,
        queue::{
            Lane, Queue,
            message::{AttemptMessage, DeliveryOwner},
        },
        state::times::{CROWDED_OPENS_AFTER, GRACE, OPENS_AFTER},
        store::{
            Deliveries,
            attributes::{DUE_SHARDS, DueEntry},
            skip_unreadable,
            sweep_positions::Look,
        },
    },
    events::{
        outbox::{Outbox, OutboxError},
        publish::Publisher,
        store::{EventItem, SHARDS},
    },
    subscriptions::{Webhook, Webhooks},
};
use auth::{AuthorizedEntity, EntityId};
use base::metric::{Longest, Metrics, Name, Number};
use base::{SharedClock, Time, WebhookId, ids::body_at, logging};
use storage::{TableError, Written};

/// The longest pause between two announcements of the same delivery.
const MAX_PAUSE: Duration = Duration::from_secs(10 * 60);
/// The number of messages at which the queue counts as crowded. Each may announce four attempts.
const CROWDED_FROM: usize = 250;
/// A crowded queue counts as this many earlier announcements, which makes the first pause 160 s.
const CROWDED_SWEEPS: u32 = 4;
/// How many entries of a shard are read per call.
const PAGE: i32 = 200;
/// How many entries of a shard are announced together, in shared calls.
const AT_ONCE: usize = 50;
/// Time limit for looking up a delivery's lane: a tenant whose partition is throttled must not slow down the sweep.
const LANE_LIMIT: Duration = Duration::from_millis(200);
/// The time after which the sweep announces no more. The next sweep continues, and the two never overlap.
const TIME_LIMIT: Duration = Duration::from_secs(45);
/// The time after which the sweep begins no new page of a job, so that it can still announce the deliveries that jobs
/// made due.
const JOB_LIMIT: Duration = Duration::from_secs(30);

/// Number of errors after which a sweep skips a webhook's remaining overdue deliveries, or an entity's remaining new
/// events: each error takes all retries of a call to the table.
const MAX_ERRORS: usize = 3;

/// Opens new deliveries, announces overdue ones, publishes the outbox, and works on jobs.
pub struct Sweeper {
    /// The events that have yet to be published.
    pub outbox: Outbox,
    /// Publishes them.
    pub publisher: Publisher,
    /// The deliveries to open and to announce.
    pub deliveries: Deliveries,
    /// Works on the jobs.
    pub worker: Worker,
    /// The webhooks, which determine their deliveries' lanes.
    pub webhooks: Webhooks,
    /// Where overdue deliveries are announced.
    pub queue: Queue,
    /// The clock that determines which deliveries are overdue.
    pub clock: SharedClock,
    /// The deployment's name, for the metrics.
    pub environment: String,
}

/// The age at which the sweep checks an event once more. No later write can arrive: the publisher is no longer waiting,
/// and the SDK ends calls after a few seconds.
const LOOKS_AGAIN_AFTER: Duration = Duration::from_secs(5 * 60);
/// How long a sweep opens deliveries. The next sweep continues.
const OPENING_LIMIT: Duration = Duration::from_secs(25);
/// How many events of a shard are read per call. Each may have 200 targets.
const EVENTS_AT_ONCE: i32 = 50;
/// How many deliveries of new events are in memory at once.
const ROOM: usize = 2_000;
/// Time limit for opening one event's deliveries, whose partition may be throttled.
const EVENT_LIMIT: Duration = Duration::from_secs(5);

/// How one sweep opens new events.
struct Opening {
    /// Events that were published after this time are not opened yet.
    before: Time,
    until: Time,
    /// Room for deliveries in memory.
    room: Semaphore,
    /// How many of each entity's events could not be opened.
    errors: Errors<EntityId>,
}

/// One sweep's findings about overdue deliveries.
#[derive(Default)]
struct Overdue {
    /// How long the most overdue delivery was overdue.
    longest: Longest,
    /// How many deliveries were announced.
    announced: AtomicUsize,
    /// Whether both lanes together are crowded; read once, if any delivery is overdue.
    crowded: OnceCell<bool>,
    /// How many of each webhook's deliveries could not be postponed.
    errors: Errors<WebhookId>,
}

/// The number of errors for each webhook or entity in one sweep.
type Errors<K> = Mutex<HashMap<K, usize>>;

fn add_error<K: Eq + Hash>(errors: &Errors<K>, of: K) {
    *errors.lock().unwrap_or_else(PoisonError::into_inner).entry(of).or_default() += 1;
}

fn has_too_many_errors<K: Eq + Hash>(errors: &Errors<K>, of: &K) -> bool {
    errors.lock().unwrap_or_else(PoisonError::into_inner).get(of).is_some_and(|errors| *errors >= MAX_ERRORS)
}

/// Why a sweep is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Overdue deliveries could not be announced.
    #[error("overdue deliveries could not be announced; the next sweep will try again")]
    Overdue(#[source] TableError),
    /// Work on a job failed.
    #[error("a job failed; the next sweep will continue it")]
    Job(#[source] TableError),
    /// An event of the outbox could not be published.
    #[error("events remain in the outbox; the next sweep will publish them")]
    Outbox(#[from] OutboxError),
}

impl Sweeper {
    /// Sweeps once. Returns how many events were published and how many deliveries were announced. A failing part does
    /// not affect the others.
    pub async fn sweep(&self) -> Result<usize, SweepError> {
        let overdue = Overdue::default();
        let in_outbox = Longest::default();
        let swept = self.sweep_and_note(&overdue, &in_outbox).await;
        let numbers = [
            Number::seconds(Name::OldestOverdue, overdue.longest.get()),
            Number::count(Name::DeliveriesSwept, overdue.announced.load(Ordering::Relaxed)),
            Number::seconds(Name::OutboxAge, in_outbox.get()),
        ];
        // Zeros are published as well: they end an alarm.
        Metrics { environment: &self.environment, by: &[], numbers: &numbers, at: self.clock.now() }.publish();
        swept
    }

    async fn sweep_and_note(&self, overdue: &Overdue, in_outbox: &Longest) -> Result<usize, SweepError> {
        let began = self.clock.now();
        // Concurrent, so that no part waits for a busy one. Boxed, here and below, since the nested types of futures
        // and streams exceed the compiler's limits.
        let (published, opened, failed, worked) = futures::join!(
            self.outbox.empty(&self.publisher, in_outbox).boxed(),
            self.open_new(began).boxed(),
            self.sweep_shards(began, overdue).boxed(),
            self.worker.work(began + JOB_LIMIT).boxed()
        );
        let failed_again = match (&opened, &worked) {
            (Ok(0), Ok(0)) => None,
            // A part that failed may still have made deliveries due.
            _ => self.sweep_shards(began, overdue).boxed().await,
        };
        let announced = overdue.announced.load(Ordering::Relaxed);
        if announced > 0 {
            tracing::info!(swept = announced, "announced overdue deliveries");
        }
        let failed = opened.err().or(failed).or(failed_again);
        failed.map_or(Ok(()), Err).map_err(SweepError::Overdue)?;
        worked.map_err(SweepError::Job)?;
        Ok(published? + announced)
    }

    /// Opens the deliveries of new events, and of events that an earlier sweep could not see. Returns how many it
    /// opened.
    async fn open_new(&self, began: Time) -> Result<usize, TableError> {
        // First attempts are announced in the quick lane. The lane's length is read first, so that events that are too
        // young are not read.
        let crowded = self.queue.holds(&[Lane::Quick], CROWDED_FROM).await;
        let age = if crowded { CROWDED_OPENS_AFTER } else { OPENS_AFTER };
        let opened = self.open_after(Look::First, age, began).await;
        let opened_again = self.open_after(Look::Second, LOOKS_AGAIN_AFTER, began).await;
        Ok(opened? + opened_again?)
    }

    /// Opens the deliveries of the events that have reached this age since the last pass of this kind. Returns how many
    /// it opened. A failing event does not block the others; the next sweep begins with it.
    async fn open_after(&self, look: Look, age: Duration, began: Time) -> Result<usize, TableError> {
        let mut before = self.deliveries.opened(look).await?;
        if look == Look::Second {
            let oldest = body_at(self.clock.now() - age * 2);
            if before.is_none() {
                // The deployment has had no such pass yet: the pass begins now, not with the oldest stored event.
                (0..SHARDS).for_each(|shard| before.advance(shard, &oldest));
                self.deliveries.keep_opened(look, before.clone()).await?;
            }
            if before.is_past(&oldest) {
                // Each pass over 16 shards costs at least 16 read units, so one covers several minutes.
                return Ok(0);
            }
        }
        let opening = Opening {
            before: self.clock.now() - age,
            until: began + OPENING_LIMIT,
            room: Semaphore::new(ROOM),
            errors: Mutex::default(),
        };
        let shards = (0..SHARDS).map(|shard| self.open_shard(shard, before.of_shard(shard), &opening).boxed());
        let mut positions = before.clone();
        let (mut opened, mut failed) = (0, None);
        for (shard, (position, count, error)) in (0..SHARDS).zip(join_all(shards).await) {
            positions.advance(shard, &position);
            opened += count;
            failed = failed.or(error);
        }
        if positions != before {
            self.deliveries.keep_opened(look, positions).await?;
        }
        failed.map_or(Ok(opened), Err)
    }

    /// Opens the deliveries of a shard's new events. Returns the position up to which all are opened, how many were
    /// opened, and the first error.
    async fn open_shard(&self, shard: u8, after: &str, opening: &Opening) -> (String, usize, Option<TableError>) {
        let before = opening.before;
        let mut position = after.to_owned();
        let (mut count, mut failed, mut start) = (0, None, None);
        loop {
            let page = match self.deliveries.events.of_shard(shard, (after, before), start, EVENTS_AT_ONCE).await {
                Ok(page) => page,
                Err(error) => return (position, count, failed.or(Some(error))),
            };
            let opened = page.entries.into_iter().map(|event| async move {
                let opened = self.open_event(&event, opening).await;
                (event.id().body().to_owned(), opened)
            });
            let mut opened = stream::iter(opened).buffered(AT_ONCE);
            while let Some((body, outcome)) = opened.next().await {
                match outcome {
                    Ok(Some(opened)) => count += opened,
                    // The next sweep continues.
                    Ok(None) => return (position, count, failed),
                    Err(error) => failed = failed.or(Some(error)),
                }
                if failed.is_none() {
                    position = body;
                }
            }
            start = page.next;
            if start.is_none() {
                // The position of an idle shard advances as well, since the oldest position of all shards determines
                // which events count as new.
                let end = if failed.is_none() { position.max(body_at(before)) } else { position };
                return (end, count, failed);
            }
        }
    }

    /// Opens an event's deliveries. Returns how many it opened, or `None` if no time is left. After several errors for
    /// an entity, its other events fail immediately.
    async fn open_event(&self, event: &EventItem, opening: &Opening) -> Result<Option<usize>, TableError> {
        let entity = &event.owner_identifier;
        let late = || TableError::code("opening an event's deliveries", "ThrottlingException");
        if has_too_many_errors(&opening.errors, entity) {
            return Err(late());
        }
        let permits = u32::try_from(event.targets.len().min(ROOM)).unwrap_or(u32::MAX);
        let _room = opening.room.acquire_many(permits).await.map_err(|_| late())?;
        let now = self.clock.now();
        if now >= opening.until {
            return Ok(None);
        }
        let opened = timeout(EVENT_LIMIT, self.deliveries.open_missing(event, now)).await;
        let opened = opened.unwrap_or_else(|_| Err(late()));
        if opened.is_err() {
            add_error(&opening.errors, entity.clone());
        }
        opened.map(Some)
    }

    /// Announces overdue deliveries. Returns the first error, whose delivery is left to the next sweep.
    async fn sweep_shards(&self, began: Time, overdue: &Overdue) -> Option<TableError> {
        let shards = (0..DUE_SHARDS).map(|shard| self.sweep_shard(shard, began, overdue).boxed());
        join_all(shards).await.into_iter().flatten().next()
    }

    async fn sweep_shard(&self, shard: u8, began: Time, overdue: &Overdue) -> Option<TableError> {
        let now = self.clock.now();
        let (mut failed, mut start) = (None, None);
        let is_in_time = || self.clock.now().since(began) <= TIME_LIMIT;
        loop {
            let page = match self.deliveries.due_before(shard, now, PAGE, start).await {
                Ok(page) => page,
                Err(error) => return failed.or(Some(error)),
            };
            // Each call to a throttled table may take seconds.
            let entries = stream::iter(page.entries).take_while(|_| ready(is_in_time()));
            let announced = entries.map(|entry| self.announce(entry, overdue)).buffer_unordered(AT_ONCE);
            failed = announced.fold(failed, async |failed, outcome| failed.or(outcome.err())).await;
            start = page.next;
            if start.is_none() || !is_in_time() {
                return failed;
            }
        }
    }

    /// Announces a delivery, unless its webhook had too many errors in this sweep.
    async fn announce(&self, entry: DueEntry, overdue: &Overdue) -> Result<(), TableError> {
        let webhook = entry.webhook_identifier.clone();
        if has_too_many_errors(&overdue.errors, &webhook) {
            return Ok(());
        }
        self.announce_overdue(entry, overdue).await.inspect_err(|_| add_error(&overdue.errors, webhook))
    }

    async fn announce_overdue(&self, entry: DueEntry, overdue: &Overdue) -> Result<(), TableError> {
        let now = self.clock.now();
        let delivery = &entry.delivery;
        let crowded = self.is_crowded(overdue).await;
        let times = if crowded { entry.sweeps.saturating_add(CROWDED_SWEEPS) } else { entry.sweeps };
        let postponed = self.deliveries.postpone_sweep(&entry, now + pause(times)).await;
        // The index may lag: a delivery that is no longer due has not waited.
        if !matches!(postponed, Ok(Written::Lost(_))) {
            overdue.longest.note(now.since(entry.due_at).saturating_add(waited(entry.sweeps)));
        }
        let consequence = "the delivery is not announced because its item cannot be read";
        let postponed = skip_unreadable(postponed, delivery, consequence)?;
        let Some(head) = postponed.and_then(Written::done) else { return Ok(()) };
        if crowded && entry.sweeps == 0 {
            return Ok(());
        }
        let message = AttemptMessage::of(&head, entry.attempt_count + 1).waiting();
        let (lane, message) = match self.webhook(&DeliveryOwner::of(head.delivery())).await {
            Some(webhook) => (Lane::of(webhook.is_slow(now)), message.since(webhook.last_update)),
            // A dispatcher moves the delivery to the right lane.
            None => (Lane::Quick, message),
        };
        self.queue.announce(lane, message, now, now).await;
        overdue.announced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn is_crowded(&self, overdue: &Overdue) -> bool {
        *overdue.crowded.get_or_init(|| self.queue.holds(&[Lane::Quick, Lane::Slow], CROWDED_FROM)).await
    }

    /// A delivery's webhook; `None` if it was removed or cannot be read in time.
    async fn webhook(&self, owner: &DeliveryOwner) -> Option<Webhook> {
        let entity = AuthorizedEntity::owning_delivery(owner.entity.clone());
        let found = timeout(LANE_LIMIT, self.webhooks.find(&entity, &owner.webhook)).await.ok()?;
        let found = found.inspect_err(|error| {
            tracing::warn!(
                error = %logging::chain(error),
                webhookId = %owner.webhook,
                "a webhook's lane could not be read; the quick lane is used"
            );
        });
        found.ok().flatten().map(|found| found.webhook)
    }
}

/// The pause after announcing a delivery that was announced this many times before.
fn pause(sweeps: u32) -> Duration {
    GRACE.saturating_mul(2u32.saturating_pow(sweeps.min(16))).min(MAX_PAUSE)
}

/// How long a delivery has waited after this many unsuccessful announcements: the sum of its pauses.
fn waited(sweeps: u32) -> Duration {
    /// How many pauses are shorter than the longest one.
    const GROWING: u32 = 6;
    let growing = (0..sweeps.min(GROWING)).map(pause).sum::<Duration>();
    growing.saturating_add(MAX_PAUSE.saturating_mul(sweeps.saturating_sub(GROWING)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_that_was_announced_in_vain_has_waited_for_all_its_pauses() {
        for sweeps in 0..20 {
            assert_eq!(waited(sweeps), (0..sweeps).map(pause).sum::<Duration>(), "{sweeps}");
        }
        assert!(waited(u32::MAX) > Duration::from_secs(1));
    }

    #[test]
    fn the_pause_doubles_up_to_its_limit() {
        let seconds: Vec<_> = (0..8).map(|sweeps| pause(sweeps).as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(pause(u32::MAX), MAX_PAUSE);
    }
}
