//! Each managing entity's share of publishing over HTTP: so many publications in a minute, so that
//! an entity that publishes as fast as it can leaves the others theirs.
//!
//! | item | pk / sk |
//! |---|---|
//! | publications of a minute | `PUBLISHED#{entity}` / the beginning of the minute, in seconds |
//!
//! Every process counts in memory, and adds a step of publications to the item at once; the answer
//! says how many there are in all processes. An entity that publishes less than a step in a minute
//! costs nothing, and one that has had its share is refused from memory. Each process may let one
//! step more pass before it learns of the others.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use auth::entity::{AuthorizedEntity, EntityId};
use base::{
    clock::{SharedClock, Time},
    environment::{AtLeastOne, Environment, FromEnvironment},
    logging,
};
use problem::{Problem, ProblemKind};
use serde::Deserialize;
use storage::table::{Change, Table, TableError, Written};
use tokio::{join, time::timeout};

/// The longest step: one write unit for so many publications.
const LONGEST_STEP: u32 = 20;
/// The longest that a publication waits for its step to be counted, beside which it is made.
const COUNTING_LIMIT: Duration = Duration::from_secs(1);
/// The minute, in seconds.
const MINUTE: i64 = 60;

/// How much each entity may publish over HTTP: `PUBLISH_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// Publications in a minute; 60 000 unless set.
    pub per_minute: u32,
}

impl Default for ShareSettings {
    fn default() -> Self {
        Self { per_minute: 60_000 }
    }
}

impl FromEnvironment for ShareSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let per_minute = environment.parsed("PUBLISH_LIMIT", AtLeastOne(Self::default().per_minute));
        Some(Self { per_minute: per_minute?.0 })
    }
}

/// The shares of all entities.
pub struct PublishingShare {
    table: Table,
    clock: SharedClock,
    counts: Mutex<Counts>,
}

/// The publications of the present minute, as far as this process knows. Those of an earlier minute
/// are dropped.
struct Counts {
    limit: u32,
    step: u32,
    /// Minutes since the epoch.
    minute: i64,
    entities: HashMap<EntityId, Count>,
}

/// The publications of one entity in the present minute.
#[derive(Debug, Default)]
struct Count {
    /// In this process.
    here: u32,
    /// In other processes, when this one asked last.
    elsewhere: u32,
}

/// The entity has published as many events as it may in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entity has published {limit} events in a minute")]
pub struct ShareExceeded {
    limit: u32,
    /// The next minute begins in so many seconds.
    seconds: u64,
}

impl From<ShareExceeded> for Problem {
    fn from(ShareExceeded { limit, seconds }: ShareExceeded) -> Self {
        let detail =
            format!("A managing entity may publish {limit} events in a minute; try again in {seconds} seconds.");
        Self::new(ProblemKind::TooManyEvents, detail).with_property("limit", limit).with_retry_after(seconds)
    }
}

/// Whether a publication is admitted.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// It is made.
    Admitted,
    /// It is made, and ends a step, which is to be counted for this minute.
    EndsStep(i64),
    /// The entity has had its share; the next minute begins in so many seconds.
    Refused(u64),
}

/// What the item of a minute says.
#[derive(Deserialize)]
struct Total {
    count: u32,
}

impl PublishingShare {
    /// The shares that are counted in this table.
    pub fn new(table: Table, clock: SharedClock, settings: ShareSettings) -> Self {
        Self { table, clock, counts: Mutex::new(Counts::new(settings)) }
    }

    /// Makes a publication, or refuses it when the entity has had its share of the minute. A
    /// repetition counts like any other request, since it costs as much.
    ///
    /// Where the table does not count, the publication is made all the same: this process then
    /// knows of its own only.
    pub async fn within<T, E: From<ShareExceeded>>(
        &self,
        entity: &AuthorizedEntity,
        publication: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.admit(entity.id()) {
            Turn::Admitted => publication.await,
            Turn::EndsStep(minute) => join!(publication, self.count(entity.id(), minute)).0,
            Turn::Refused(seconds) => Err(ShareExceeded { limit: self.counts().limit, seconds }.into()),
        }
    }

    fn admit(&self, entity: &EntityId) -> Turn {
        let mut counts = self.counts();
        // Read while the counts are held, so that no request takes them back to the minute before.
        counts.admit(entity, self.clock.now())
    }

    async fn count(&self, entity: &EntityId, minute: i64) {
        let step = self.counts().step;
        match timeout(COUNTING_LIMIT, self.add(entity, minute, step)).await {
            Ok(Ok(total)) => self.counts().learn(entity, minute, total),
            Ok(Err(error)) => tracing::warn!(error = %logging::chain(&error), "publications are not counted"),
            Err(late) => tracing::warn!(error = %late, "publications are perhaps not counted"),
        }
    }

    async fn add(&self, entity: &EntityId, minute: i64, step: u32) -> Result<u32, TableError> {
        const DOING: &str = "counting publications";
        let key = (format!("PUBLISHED#{entity}"), format!("{:010}", minute * MINUTE));
        // A minute later than its end, for processes whose clocks are behind.
        let change = Change::of(key).set("expiresAt", (minute + 2) * MINUTE).add("count", step);
        match self.table.write_and_read(change, DOING).await? {
            Written::Done(Total { count }) => Ok(count),
            Written::Lost(_) => Err(TableError::Missing("the outcome of an addition without a condition")),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // No code panics while it holds them; so they are good enough to go on counting.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn new(ShareSettings { per_minute }: ShareSettings) -> Self {
        // A hundredth of the limit, so that many processes together do not exceed a small one by
        // much.
        let step = (per_minute / 100).clamp(1, LONGEST_STEP);
        Self { limit: per_minute, step, minute: 0, entities: HashMap::new() }
    }

    fn admit(&mut self, entity: &EntityId, now: Time) -> Turn {
        let minute = now.as_seconds().div_euclid(MINUTE);
        if minute != self.minute {
            (self.minute, self.entities) = (minute, HashMap::new());
        }
        let count = self.entities.entry(entity.clone()).or_default();
        if count.here.saturating_add(count.elsewhere) >= self.limit {
            let end = Time::from_millis((minute + 1) * MINUTE * 1000);
            return Turn::Refused(end.since(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX));
        }
        count.here += 1;
        if count.here.is_multiple_of(self.step) { Turn::EndsStep(minute) } else { Turn::Admitted }
    }

    /// Takes note of how many publications all processes have counted.
    fn learn(&mut self, entity: &EntityId, minute: i64, total: u32) {
        let Some(count) = self.entities.get_mut(entity).filter(|_| minute == self.minute) else { return };
        // Steps of this process that are being counted beside this one may be missing in the total:
        // none of them is taken for another's, so that no entity is refused too early.
        let counted = count.here - count.here % self.step;
        count.elsewhere = count.elsewhere.max(total.saturating_sub(counted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment::read_from;
    use proptest::prelude::*;

    /// 12.5 s into a minute.
    const NOW: Time = Time::from_millis(1_795_167_912_500);
    const THIS_MINUTE: i64 = 1_795_167_900 / MINUTE;

    fn counts(per_minute: u32) -> Counts {
        Counts::new(ShareSettings { per_minute })
    }

    fn entity(name: &str) -> EntityId {
        EntityId::parse(name).expect("a good identifier")
    }

    #[test]
    fn a_step_is_a_hundredth_of_the_limit_and_neither_nothing_nor_much() {
        let step = |limit| counts(limit).step;
        assert_eq!([1, 99, 100, 250, 1999, 2000, 60_000, u32::MAX].map(step), [1, 1, 1, 2, 19, 20, 20, 20]);
    }

    #[test]
    fn an_entity_that_has_had_its_share_is_refused_until_the_minute_ends_and_others_are_not() {
        let (mut counts, busy, other) = (counts(3), entity("busy"), entity("other"));
        for _ in 0..3 {
            assert_eq!(counts.admit(&busy, NOW), Turn::EndsStep(THIS_MINUTE));
        }
        assert_eq!(counts.admit(&busy, NOW), Turn::Refused(48));
        assert_eq!(counts.admit(&other, NOW), Turn::EndsStep(THIS_MINUTE));
        let last = NOW + Duration::from_millis(47_499);
        assert_eq!(counts.admit(&busy, last), Turn::Refused(1), "a client that waits so long is in the next minute");
        let next = NOW + Duration::from_millis(47_500);
        for _ in 0..3 {
            assert_eq!(counts.admit(&busy, next), Turn::EndsStep(THIS_MINUTE + 1));
        }
        assert_eq!(counts.admit(&busy, next), Turn::Refused(60));
    }

    #[test]
    fn only_what_ends_a_step_is_counted_in_the_table() {
        let (mut counts, entity) = (counts(60_000), entity("e"));
        let turns = (0..60).filter(|_| counts.admit(&entity, NOW) == Turn::EndsStep(THIS_MINUTE));
        assert_eq!(turns.count(), 3);
    }

    #[test]
    fn what_other_processes_have_published_counts_as_well() {
        let (mut counts, entity) = (counts(400), entity("e"));
        assert_eq!(counts.step, 4);
        for _ in 0..4 {
            counts.admit(&entity, NOW);
        }
        counts.learn(&entity, THIS_MINUTE, 398);
        for _ in 0..2 {
            assert_eq!(counts.admit(&entity, NOW), Turn::Admitted);
        }
        assert_eq!(counts.admit(&entity, NOW), Turn::Refused(48));
    }

    #[test]
    fn an_answer_that_is_late_or_was_overtaken_takes_nothing_back() {
        let (mut counts, entity) = (counts(3), entity("e"));
        counts.admit(&entity, NOW);
        counts.learn(&entity, THIS_MINUTE, 3);
        counts.learn(&entity, THIS_MINUTE, 1);
        assert_eq!(counts.admit(&entity, NOW), Turn::Refused(48));
        let next = NOW + Duration::from_mins(1);
        assert_eq!(counts.admit(&entity, next), Turn::EndsStep(THIS_MINUTE + 1));
        counts.learn(&entity, THIS_MINUTE, 9);
        assert_eq!(counts.admit(&entity, next), Turn::EndsStep(THIS_MINUTE + 1), "that was of the minute before");
    }

    #[test]
    fn where_nothing_is_counted_a_process_still_knows_of_its_own() {
        let (mut counts, entity) = (counts(200), entity("e"));
        let admitted = (0..500).filter(|_| counts.admit(&entity, NOW) != Turn::Refused(48));
        assert_eq!(admitted.count(), 200);
    }

    #[test]
    fn counts_of_a_past_minute_take_no_memory() {
        let mut counts = counts(3);
        for number in 0..10_000 {
            counts.admit(&entity(&format!("e{number}")), NOW);
        }
        counts.admit(&entity("e"), NOW + Duration::from_mins(1));
        assert_eq!((counts.entities.len(), counts.entities.capacity() < 100), (1, true));
    }

    /// What a process does next: it is given a request, its step is counted in the table, it hears
    /// of that.
    fn steps(processes: usize) -> impl Strategy<Value = Vec<(usize, bool)>> {
        proptest::collection::vec((0..processes, any::<bool>()), 0..2_000)
    }

    proptest! {
        /// On Lambda a process has one request at a time, and each may be at any point while others
        /// go on.
        #[test]
        fn however_the_processes_take_turns_an_entity_publishes_its_share_and_at_most_a_step_more_in_each(
            limit in 1_u32..700,
            (processes, turns) in (1_usize..8).prop_flat_map(|processes| (Just(processes), steps(processes))),
        ) {
            let entity = entity("e");
            let mut processes: Vec<_> = (0..processes).map(|_| (counts(limit), None)).collect();
            let step = processes[0].0.step;
            let (mut table, mut admitted) = (0, 0);
            for (process, goes_on) in turns {
                let (counts, under_way) = &mut processes[process];
                match under_way.take() {
                    // Its step waits for the table, or its answer is on the way.
                    Some(waiting) if !goes_on => *under_way = Some(waiting),
                    Some(None) => {
                        table += step;
                        *under_way = Some(Some(table));
                    }
                    Some(Some(total)) => counts.learn(&entity, THIS_MINUTE, total),
                    None => match counts.admit(&entity, NOW) {
                        Turn::Admitted => admitted += 1,
                        Turn::EndsStep(_) => {
                            admitted += 1;
                            *under_way = Some(None);
                        }
                        Turn::Refused(_) => prop_assert!(admitted >= limit, "refused at {admitted} of {limit}"),
                    },
                }
            }
            let most = limit + step * u32::try_from(processes.len()).expect("a few");
            prop_assert!(admitted < most, "{admitted} of {limit} by {} processes", processes.len());
        }
    }

    #[test]
    fn an_entity_may_publish_so_much_unless_something_else_is_set_and_never_nothing() {
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
