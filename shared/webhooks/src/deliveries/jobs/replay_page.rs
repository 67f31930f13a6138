//! Replays a range of events to a webhook, oldest first. Each event that matches the webhook as it is now, and has no
//! delivery to it, gets one that is due now.

use std::time::Duration;

use futures::{FutureExt, future::join_all};
use tokio::time::Instant;

use crate::deliveries::{
    jobs::{
        job::{JobItem, PAGE, PageResult, Progress},
        replay::{Replay, Step},
        worker::Worker,
    },
    queries::{range::ListPosition, replayable::Wanted},
};
use base::{DeliveryId, WebhookId, pause};
use storage::TableError;

/// How many events are read and given their deliveries concurrently.
const AT_ONCE: usize = 25;
/// How many events are compared with a filter concurrently. Each may have a 256 KiB body, and a sweep works on eight
/// jobs with 256 MB.
const BODIES_AT_ONCE: usize = 5;
/// The minimum time per write unit of an event. All entities publish to the same 16 partitions of events, which accept
/// 16 000 units a second, and a sweep works on eight jobs at once.
const UNIT_TAKES: Duration = Duration::from_millis(1);
/// The time after which a page reads no further events, so that other entities get their turns.
const LIMIT: Duration = Duration::from_secs(1);

impl Worker {
    /// Works through a page of events. Returns its result and how many deliveries it added.
    pub(super) async fn replay_page(
        &self,
        (job, webhook): (&JobItem, &WebhookId),
        replay: &Replay,
    ) -> Result<(PageResult, usize), TableError> {
        let Some(found) = self.enabled_webhook(job, webhook).await? else {
            // A delivery to this webhook would be cancelled.
            tracing::info!(webhookId = %webhook, "the replay stopped: its webhook was removed or disabled");
            return Ok((PageResult::Over, 0));
        };
        let part = match replay.step(self.clock.now()) {
            Step::Work(part) => part,
            Step::Wait(time) => return Ok((PageResult::Wait(Progress::Seen, time), 0)),
            Step::Over => return Ok((PageResult::Over, 0)),
        };
        let began = Instant::now();
        let wanted = Wanted { webhook: &found, types: &replay.scope.types };
        let page = self.deliveries.events_of_types(&job.entity, &part, wanted, PAGE).await?;
        let mut added = 0;
        let mut units = 0;
        let mut up_to = page.end;
        let at_once = if found.event_filter.is_some() { BODIES_AT_ONCE } else { AT_ONCE };
        let mut chunks = page.found.chunks(at_once).peekable();
        while let Some(chunk) = chunks.next() {
            // Boxed, since the nested future types exceed the compiler's limits.
            let additions = chunk.iter().map(|event| self.deliveries.replay(event, wanted, self.clock.now()).boxed());
            for addition in join_all(additions).await {
                let written = addition?;
                added += usize::from(written.is_some());
                units += written.unwrap_or_default();
            }
            pause(pace(units).saturating_sub(began.elapsed())).await;
            if began.elapsed() >= LIMIT && chunks.peek().is_some() {
                up_to = chunk.last().map(|event| ListPosition::of(&DeliveryId::of(event, 0)));
                break;
            }
        }
        tracing::info!(webhookId = %webhook, added, lookedAt = page.looked_at, "replayed one page of events");
        Ok((PageResult::Next(Progress::Replayed { replay: replay.clone(), part, up_to }), added))
    }
}

/// The minimum time for a job to write this many units of events.
fn pace(units: usize) -> Duration {
    UNIT_TAKES.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
}
