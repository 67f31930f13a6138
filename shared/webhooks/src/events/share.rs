//! Each managing entity's share of publishing over HTTP: a limit on the deliveries per minute that its events may
//! cause, so that an entity that publishes as fast as it can leaves capacity for others. A publication counts once for
//! each webhook that receives its event, multiplied by its size in units of 4 KiB, since each delivery reads and sends
//! the body.
//!
//! | item | pk / sk |
//! |---|---|
//! | publications of a minute | `PUBLISHED#{entity}` / the beginning of the minute, in seconds |
//!
//! A publication is counted by its size before its body is read, and by its webhooks once they are known, before the
//! event is written. It is carried out even if its targets exceed the share.
//!
//! The window is a clock minute, because an item that is only added to needs no condition. So an entity may publish
//! twice its share around the turn of a minute.
//!
//! Each process counts in memory, and adds the counts to the item in steps; the addition returns the total of all
//! processes. An entity that publishes less than a step in a minute costs nothing, and an entity beyond its share is
//! refused without reading the table. Each process may admit one more step and one more publication before it learns of
//! the others. The other allowances are counted in the table for each request; here, that would cost a write for each
//! publication.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use tokio::{join, time::timeout};

use crate::events::counts::{Counts, MINUTE, QuotaDecision};
use auth::{AuthorizedEntity, EntityId};
use base::{Environment, FromEnvironment, SharedClock, environment::AtLeastOne, logging};
use problem::{Problem, ProblemKind, RateLimit};
use storage::table::{Change, Table, TableError, Written};

/// The name of the limit on the wire.
const LIMIT: &str = "published-deliveries";
/// Time limit for counting a step, which runs concurrently with the publication.
const COUNTING_LIMIT: Duration = Duration::from_secs(1);

/// How many bytes of a body count as one unit.
const BYTES_OF_ONE: usize = 4 * 1024;
/// How many of an entity's webhooks count as one delivery even if they do not receive the event: each is still read,
/// and its filter compared.
const WEBHOOKS_OF_ONE: usize = 10;

/// How much each entity may publish over HTTP: `PUBLISH_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// How many deliveries of up to 4 KiB each its events may cause in a minute; 60 000 by default.
    pub per_minute: u32,
}

impl FromEnvironment for ShareSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let per_minute = environment.parsed("PUBLISH_LIMIT", AtLeastOne(60_000));
        Some(Self { per_minute: per_minute?.0 })
    }
}

/// The shares of all entities.
pub struct PublishingShare {
    table: Table,
    clock: SharedClock,
    counts: Mutex<Counts>,
}

/// A publication admitted by its entity's share and counted by its size.
#[derive(Clone, Copy)]
pub struct AdmittedPublication<'a> {
    share: &'a PublishingShare,
    entity: &'a EntityId,
    /// How many times each delivery of the event counts.
    size: u32,
}

/// The entity has used up its share of the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entity has published events for {limit} deliveries in a minute")]
pub struct ShareExceeded {
    limit: u32,
    /// Seconds until the next minute.
    seconds: u64,
}

impl From<ShareExceeded> for Problem {
    fn from(ShareExceeded { limit, seconds }: ShareExceeded) -> Self {
        let detail = format!(
            "The managing entity has reached its limit of {limit} deliveries of up to 4 KiB per minute; try again \
             in {seconds} seconds."
        );
        Self::rate_limited(ProblemKind::TooManyEvents, detail, RateLimit { name: LIMIT, limit, window: 60 }, seconds)
    }
}

/// The item for a minute.
#[derive(Deserialize)]
struct Total {
    count: u32,
}

impl PublishingShare {
    /// Shares that are counted in this table.
    pub fn new(table: Table, clock: SharedClock, settings: ShareSettings) -> Self {
        Self { table, clock, counts: Mutex::new(Counts::new(settings.per_minute)) }
    }

    /// Runs a publication whose body has this many bytes, or refuses it if the entity has used up its share of the
    /// minute. A repeated request counts like any other, since it costs as much.
    ///
    /// If the table cannot count, the publication still runs, and this process counts only its own publications.
    pub async fn within<'a, T, E: From<ShareExceeded>, F: Future<Output = Result<T, E>>>(
        &'a self,
        entity: &'a AuthorizedEntity,
        bytes: usize,
        publication: impl FnOnce(AdmittedPublication<'a>) -> F,
    ) -> Result<T, E> {
        let entity = entity.id();
        let size = size(bytes);
        // The clock is read while the counts are locked, so that no request resets them to the previous minute.
        let decision = {
            let mut counts = self.counts();
            counts.admit(entity, size, self.clock.now())
        };
        if let QuotaDecision::Refused(seconds) = decision {
            return Err(ShareExceeded { limit: self.counts().limit, seconds }.into());
        }
        self.counting(entity, &decision, publication(AdmittedPublication { share: self, entity, size })).await
    }

    /// Runs the work, and concurrently adds to the table's count the steps that this decision completes. The addition
    /// begins first, so that it is under way if the work blocks this thread.
    async fn counting<T>(&self, entity: &EntityId, decision: &QuotaDecision, work: impl Future<Output = T>) -> T {
        match *decision {
            QuotaDecision::EndsSteps { minute, publications } => {
                join!(self.count(entity, minute, publications), work).1
            }
            QuotaDecision::Admitted | QuotaDecision::Refused(_) => work.await,
        }
    }

    async fn count(&self, entity: &EntityId, minute: i64, publications: u32) {
        match timeout(COUNTING_LIMIT, self.add(entity, minute, publications)).await {
            Ok(Ok(total)) => self.counts().learn(entity, minute, total),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    "publications were not counted, so the entity may exceed its share"
                );
            }
            Err(late) => {
                tracing::warn!(
                    error = %late,
                    "publications were not counted in time, so the entity may exceed its share"
                );
            }
        }
    }

    async fn add(&self, entity: &EntityId, minute: i64, publications: u32) -> Result<u32, TableError> {
        const DOING: &str = "counting publications";
        let key = (format!("PUBLISHED#{entity}"), format!("{:010}", minute * MINUTE));
        // A minute after the end of the counted minute, for processes whose clocks are slow.
        let change = Change::of(key).set("expiresAt", (minute + 2) * MINUTE).add("count", publications);
        match self.table.write_and_read(change, DOING).await? {
            Written::Done(Total { count }) => Ok(count),
            Written::Lost(_) => Err(TableError::Missing("the outcome of an addition without a condition")),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // The counts of a poisoned lock are still valid.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmittedPublication<'_> {
    /// Counts the publication's targets among its entity's webhooks, and runs the rest of it.
    pub(super) async fn counted_for<T>(&self, targets: usize, webhooks: usize, rest: impl Future<Output = T>) -> T {
        let more = self.size.saturating_mul(fan_out(targets, webhooks) - 1);
        let decision = {
            let mut counts = self.share.counts();
            counts.add(self.entity, more, self.share.clock.now())
        };
        self.share.counting(self.entity, &decision, rest).await
    }
}

/// How many times each delivery of a body this long counts.
fn size(bytes: usize) -> u32 {
    bytes.div_ceil(BYTES_OF_ONE).max(1).try_into().unwrap_or(u32::MAX)
}

/// The number of deliveries that an event to `targets` of its entity's `webhooks` counts as: at least one.
fn fan_out(targets: usize, webhooks: usize) -> u32 {
    targets.max(webhooks.div_ceil(WEBHOOKS_OF_ONE)).max(1).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment::read_from;

    #[test]
    fn a_publication_counts_by_its_size_in_units_of_4_kib_rounded_up() {
        let counted = [0, 1, 4 * 1024, 4 * 1024 + 1, 256 * 1024].map(size);
        assert_eq!(counted, [1, 1, 1, 2, 64]);
    }

    #[test]
    fn a_publication_counts_once_for_each_target_or_ten_webhooks() {
        for (targets, webhooks, counted) in
            [(0, 0, 1), (0, 10, 1), (1, 1, 1), (2, 2, 2), (1, 11, 2), (0, 200, 20), (30, 200, 30), (200, 200, 200)]
        {
            assert_eq!(fan_out(targets, webhooks), counted, "{targets} of {webhooks}");
        }
    }

    #[test]
    fn the_share_is_60_000_events_by_default_and_at_least_one() {
        assert_eq!(read_from::<ShareSettings>(|_| None).expect("the default").per_minute, 60_000);
        assert_eq!(read_from::<ShareSettings>(|_| Some("1".into())).expect("set").per_minute, 1);
        let bad: [fn(&str) -> Option<String>; 3] =
            [|_| Some("0".into()), |_| Some("many".into()), |_| Some("4294967296".into())];
        for variable in bad {
            let error = read_from::<ShareSettings>(variable).expect_err("refused").0;
            assert!(error.len() == 1 && error[0].starts_with("PUBLISH_LIMIT"), "{error:?}");
        }
    }
}
