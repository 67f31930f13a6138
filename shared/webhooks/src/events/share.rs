//! Each managing entity's share of publishing over HTTP: a limit of publications per minute, so that an entity that
//! publishes as fast as it can leaves capacity to others. A publication counts once for each 4 KiB of its body begun.
//!
//! | item | pk / sk |
//! |---|---|
//! | publications of a minute | `PUBLISHED#{entity}` / the beginning of the minute, in seconds |
//!
//! Each process counts in memory, and adds publications to the item in steps; the addition returns the total of all
//! processes. An entity that publishes less than a step in a minute costs nothing, and an entity beyond its share is
//! refused from memory. Each process may admit one step more before it learns of the others.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use tokio::{join, time::timeout};

use crate::events::counts::{Counts, MINUTE, QuotaDecision};
use auth::{AuthorizedEntity, EntityId};
use base::{Environment, FromEnvironment, SharedClock, environment::AtLeastOne, logging};
use problem::{Problem, ProblemKind};
use storage::table::{Change, Table, TableError, Written};

/// Time limit for counting a step, which runs concurrently with the publication.
const COUNTING_LIMIT: Duration = Duration::from_secs(1);

/// The bytes of a body that count as one publication.
const BYTES_OF_ONE: usize = 4 * 1024;

/// How much each entity may publish over HTTP: `PUBLISH_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// Publications of up to 4 KiB in a minute; 60 000 unless set.
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

/// The entity has used up its share of the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entity has published {limit} events in a minute")]
pub struct ShareExceeded {
    limit: u32,
    /// Seconds until the next minute.
    seconds: u64,
}

impl From<ShareExceeded> for Problem {
    fn from(ShareExceeded { limit, seconds }: ShareExceeded) -> Self {
        let detail = format!(
            "A managing entity may publish {limit} events of up to 4 KiB in a minute; try again in {seconds} seconds."
        );
        Self::new(ProblemKind::TooManyEvents, detail).with_property("limit", limit).with_retry_after(seconds)
    }
}

/// The item of a minute.
#[derive(Deserialize)]
struct Total {
    count: u32,
}

impl PublishingShare {
    /// The shares that are counted in this table.
    pub fn new(table: Table, clock: SharedClock, settings: ShareSettings) -> Self {
        Self { table, clock, counts: Mutex::new(Counts::new(settings.per_minute)) }
    }

    /// Runs a publication of a body of this many bytes, or refuses it if the entity has used up its share of the
    /// minute. A repetition counts like any other request, since it costs as much.
    ///
    /// If the table cannot count, the publication still runs, and this process counts only its own.
    pub async fn within<T, E: From<ShareExceeded>>(
        &self,
        entity: &AuthorizedEntity,
        bytes: usize,
        publication: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.admit(entity.id(), times(bytes)) {
            QuotaDecision::Admitted => publication.await,
            QuotaDecision::EndsSteps { minute, publications } => {
                join!(publication, self.count(entity.id(), minute, publications)).0
            }
            QuotaDecision::Refused(seconds) => Err(ShareExceeded { limit: self.counts().limit, seconds }.into()),
        }
    }

    fn admit(&self, entity: &EntityId, times: u32) -> QuotaDecision {
        let mut counts = self.counts();
        // The clock is read while the counts are locked, so that no request resets them to the minute before.
        counts.admit(entity, times, self.clock.now())
    }

    async fn count(&self, entity: &EntityId, minute: i64, publications: u32) {
        match timeout(COUNTING_LIMIT, self.add(entity, minute, publications)).await {
            Ok(Ok(total)) => self.counts().learn(entity, minute, total),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    "publications were not counted; the entity may publish more than its share"
                );
            }
            Err(late) => {
                tracing::warn!(
                    error = %late,
                    "publications were not counted in time; the entity may publish more than its share"
                );
            }
        }
    }

    async fn add(&self, entity: &EntityId, minute: i64, publications: u32) -> Result<u32, TableError> {
        const DOING: &str = "counting publications";
        let key = (format!("PUBLISHED#{entity}"), format!("{:010}", minute * MINUTE));
        // One minute after its end, for processes whose clocks are behind.
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

/// How many times a publication of a body of this many bytes counts.
fn times(bytes: usize) -> u32 {
    bytes.div_ceil(BYTES_OF_ONE).max(1).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment::read_from;

    #[test]
    fn a_publication_counts_once_for_each_4_kib_of_its_body_begun() {
        let counted = [0, 1, 4 * 1024, 4 * 1024 + 1, 256 * 1024].map(times);
        assert_eq!(counted, [1, 1, 1, 2, 64]);
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
