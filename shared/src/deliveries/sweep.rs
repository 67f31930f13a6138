//! Sweeping: what is overdue is announced again, whether its message was lost, its worker died or its wait was long; and
//! what stands in the outbox is published.
//!
//! Before it is announced its due time is moved ahead, by twice as long each time, so that a backlog in the queue is
//! not made longer by announcing the same thing again and again.

use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};

use super::{
    Deliveries, GRACE,
    item::{DUE_SHARDS, DueEntry},
    queue::{DueMessage, Queue},
};
use crate::{
    clock::{SharedClock, Time},
    events::{
        outbox::{Outbox, OutboxError},
        publish::Publisher,
    },
    logging,
    table::TableError,
};

/// The longest pause between two announcements of the same delivery.
const MAX_PAUSE: Duration = Duration::from_secs(10 * 60);
/// How many entries of a shard are read at once.
const PAGE: i32 = 200;
/// How many entries of a shard are announced at once.
const AT_ONCE: usize = 10;
/// After this long no new page is begun: the next sweep goes on, and never meets this one.
const TIME_LIMIT: Duration = Duration::from_secs(45);

/// Everything that sweeping needs.
pub struct Sweeper {
    /// What is still to be published.
    pub outbox: Outbox,
    /// What publishes it.
    pub publisher: Publisher,
    /// What may be overdue.
    pub deliveries: Deliveries,
    /// Where it is announced.
    pub queue: Queue,
    /// The clock.
    pub clock: SharedClock,
}

/// Why a sweep did not do everything.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Something overdue could not be announced.
    #[error("what is overdue could not be announced")]
    Overdue(#[from] TableError),
    /// Something could not be published.
    #[error("the outbox could not be emptied")]
    Outbox(#[from] OutboxError),
}

impl Sweeper {
    /// Publishes the outbox and announces everything that is overdue; gives the number. Each part that fails leaves the
    /// others alone.
    pub async fn sweep(&self) -> Result<usize, SweepError> {
        let began = self.clock.now();
        // First, so that what it opens is announced by the publishing itself and not found overdue.
        // Boxed, here and below: a future of futures of streams is more than the compiler follows.
        let published = self.outbox.empty(&self.publisher).boxed().await;
        let outcomes =
            futures::future::join_all((0..DUE_SHARDS).map(|shard| self.sweep_shard(shard, began).boxed())).await;
        let swept: usize = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().sum();
        if swept > 0 {
            tracing::info!(swept, "announced what was overdue");
        }
        Ok(published? + swept)
    }

    async fn sweep_shard(&self, shard: u8, began: Time) -> Result<usize, TableError> {
        let (mut swept, mut start) = (0, None);
        loop {
            let (page, next) = self.deliveries.due_before(shard, began, PAGE, start).await?;
            let announced = stream::iter(page).map(|entry| self.announce(entry)).buffer_unordered(AT_ONCE);
            // All are announced before the first error is told.
            for outcome in announced.collect::<Vec<_>>().await {
                swept += usize::from(outcome?);
            }
            start = next;
            if start.is_none() || self.clock.now().since(began) > TIME_LIMIT {
                return Ok(swept);
            }
        }
    }

    async fn announce(&self, entry: DueEntry) -> Result<bool, TableError> {
        let now = self.clock.now();
        let Some(delivery) = entry.delivery() else {
            return Ok(false);
        };
        if !self.deliveries.postpone(&entry, now + pause(entry.sweeps)).await? {
            return Ok(false);
        }
        let message = DueMessage { delivery, attempt: entry.attempt_count + 1 };
        if let Err(error) = self.queue.announce(&entry.owner_identifier, [message], now, now).await {
            tracing::warn!(error = %logging::chain(&error), "not announced; a later sweep will find it");
        }
        Ok(true)
    }
}

/// How long a delivery is left alone after it was announced so many times before.
fn pause(sweeps: u32) -> Duration {
    GRACE.saturating_mul(2u32.saturating_pow(sweeps.min(16))).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_limit() {
        let seconds: Vec<_> = (0..8).map(|sweeps| pause(sweeps).as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(pause(u32::MAX), MAX_PAUSE);
    }
}
