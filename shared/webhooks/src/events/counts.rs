//! The current minute's publications, as far as one process knows them.

use std::collections::HashMap;

use auth::EntityId;
use base::Time;

/// The longest step: one write unit counts this many publications.
const LONGEST_STEP: u32 = 20;
/// A minute in seconds.
pub(super) const MINUTE: i64 = 60;

/// The current minute's publications. Counts from an earlier minute are dropped.
pub(super) struct Counts {
    pub(super) limit: u32,
    /// How many publications are added to the table's count in one step.
    pub(super) step: u32,
    /// Minutes since the epoch.
    minute: i64,
    entities: HashMap<EntityId, Count>,
}

/// One entity's publications in the current minute.
#[derive(Debug, Default)]
struct Count {
    /// Publications in this process.
    here: u32,
    /// Publications in other processes, as of this process's last addition.
    elsewhere: u32,
}

/// Whether a publication is admitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QuotaDecision {
    /// The publication is admitted.
    Admitted,
    /// The publication is admitted and completes steps that must be counted for this minute.
    EndsSteps {
        /// Minutes since the epoch.
        minute: i64,
        /// The publications in these steps.
        publications: u32,
    },
    /// The entity has used up its share; the next minute begins in this many seconds.
    Refused(u64),
}

impl Counts {
    pub(super) fn new(per_minute: u32) -> Self {
        // A hundredth of the limit, so that many processes together exceed a small limit only slightly.
        let step = (per_minute / 100).clamp(1, LONGEST_STEP);
        Self { limit: per_minute, step, minute: 0, entities: HashMap::new() }
    }

    /// Admits a publication that counts `times` times, unless the entity has used up its share. The last publication
    /// admitted may exceed the share, so that a large event fits into a small share.
    pub(super) fn admit(&mut self, entity: &EntityId, times: u32, now: Time) -> QuotaDecision {
        let count = self.count_of(entity, now);
        if count.here.saturating_add(count.elsewhere) >= self.limit {
            let end = Time::from_millis((self.minute + 1) * MINUTE * 1000);
            return QuotaDecision::Refused(end.since(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX));
        }
        self.add(entity, times, now)
    }

    /// Counts an admitted publication another `times` times.
    pub(super) fn add(&mut self, entity: &EntityId, times: u32, now: Time) -> QuotaDecision {
        let step = self.step;
        let count = self.count_of(entity, now);
        let steps_before = count.here / step;
        count.here = count.here.saturating_add(times);
        match (count.here / step - steps_before) * step {
            0 => QuotaDecision::Admitted,
            publications => QuotaDecision::EndsSteps { minute: self.minute, publications },
        }
    }

    /// The count of an entity in this minute.
    fn count_of(&mut self, entity: &EntityId, now: Time) -> &mut Count {
        let minute = now.as_seconds().div_euclid(MINUTE);
        if minute != self.minute {
            self.minute = minute;
            self.entities = HashMap::new();
        }
        self.entities.entry(entity.clone()).or_default()
    }

    /// Adopts the total counted by all processes.
    pub(super) fn learn(&mut self, entity: &EntityId, minute: i64, total: u32) {
        let Some(count) = self.entities.get_mut(entity).filter(|_| minute == self.minute) else { return };
        // The total may lack steps of this process that are under way. Subtracting those as well underestimates the
        // other processes, so no entity is refused too early.
        let counted = count.here - count.here % self.step;
        count.elsewhere = count.elsewhere.max(total.saturating_sub(counted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// A time 12.5 s into a minute.
    const NOW: Time = Time::from_millis(1_795_167_912_500);
    const THIS_MINUTE: i64 = 1_795_167_900 / MINUTE;

    fn counts(per_minute: u32) -> Counts {
        Counts::new(per_minute)
    }

    fn ends_step(minute: i64, publications: u32) -> QuotaDecision {
        QuotaDecision::EndsSteps { minute, publications }
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
    fn an_entity_beyond_its_share_is_refused_until_the_minute_ends() {
        let mut counts = counts(3);
        let busy = entity("busy");
        let other = entity("other");
        for _ in 0..3 {
            assert_eq!(counts.admit(&busy, 1, NOW), ends_step(THIS_MINUTE, 1));
        }
        assert_eq!(counts.admit(&busy, 1, NOW), QuotaDecision::Refused(48));
        assert_eq!(counts.admit(&other, 1, NOW), ends_step(THIS_MINUTE, 1));
        let last = NOW + Duration::from_millis(47_499);
        assert_eq!(
            counts.admit(&busy, 1, last),
            QuotaDecision::Refused(1),
            "a client that waits so long is in the next minute"
        );
        let next = NOW + Duration::from_millis(47_500);
        for _ in 0..3 {
            assert_eq!(counts.admit(&busy, 1, next), ends_step(THIS_MINUTE + 1, 1));
        }
        assert_eq!(counts.admit(&busy, 1, next), QuotaDecision::Refused(60));
    }

    #[test]
    fn only_the_end_of_a_step_is_counted_in_the_table() {
        let mut counts = counts(60_000);
        let entity = entity("e");
        let turns = (0..60).filter(|_| counts.admit(&entity, 1, NOW) == ends_step(THIS_MINUTE, 20));
        assert_eq!(turns.count(), 3);
    }

    #[test]
    fn a_large_event_counts_several_times_and_fits_into_any_rest() {
        let mut counts = counts(250);
        let entity = entity("e");
        assert_eq!(counts.step, 2);
        assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Admitted);
        for (counted, here) in [(64, 65), (64, 129), (64, 193), (64, 257)] {
            assert_eq!(counts.admit(&entity, 64, NOW), ends_step(THIS_MINUTE, counted), "{here} so far");
        }
        assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Refused(48));
    }

    #[test]
    fn the_targets_of_an_admitted_publication_count_even_beyond_the_share() {
        let mut counts = counts(100);
        let entity = entity("e");
        assert_eq!(counts.admit(&entity, 1, NOW), ends_step(THIS_MINUTE, 1));
        assert_eq!(counts.add(&entity, 0, NOW), QuotaDecision::Admitted);
        assert_eq!(counts.add(&entity, 199, NOW), ends_step(THIS_MINUTE, 199));
        assert_eq!(counts.add(&entity, 1, NOW), ends_step(THIS_MINUTE, 1));
        assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Refused(48));
    }

    #[test]
    fn publications_of_other_processes_count_as_well() {
        let mut counts = counts(400);
        let entity = entity("e");
        assert_eq!(counts.step, 4);
        for _ in 0..4 {
            counts.admit(&entity, 1, NOW);
        }
        counts.learn(&entity, THIS_MINUTE, 398);
        for _ in 0..2 {
            assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Admitted);
        }
        assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Refused(48));
    }

    #[test]
    fn a_total_that_is_late_or_was_overtaken_takes_nothing_back() {
        let mut counts = counts(3);
        let entity = entity("e");
        counts.admit(&entity, 1, NOW);
        counts.learn(&entity, THIS_MINUTE, 3);
        counts.learn(&entity, THIS_MINUTE, 1);
        assert_eq!(counts.admit(&entity, 1, NOW), QuotaDecision::Refused(48));
        let next = NOW + Duration::from_mins(1);
        assert_eq!(counts.admit(&entity, 1, next), ends_step(THIS_MINUTE + 1, 1));
        counts.learn(&entity, THIS_MINUTE, 9);
        assert_eq!(counts.admit(&entity, 1, next), ends_step(THIS_MINUTE + 1, 1), "that was of the minute before");
    }

    #[test]
    fn without_the_table_a_process_still_counts_its_publications() {
        let mut counts = counts(200);
        let entity = entity("e");
        let admitted = (0..500).filter(|_| counts.admit(&entity, 1, NOW) != QuotaDecision::Refused(48));
        assert_eq!(admitted.count(), 200);
    }

    #[test]
    fn counts_of_a_past_minute_take_no_memory() {
        let mut counts = counts(3);
        for number in 0..10_000 {
            counts.admit(&entity(&format!("e{number}")), 1, NOW);
        }
        counts.admit(&entity("e"), 1, NOW + Duration::from_mins(1));
        assert_eq!((counts.entities.len(), counts.entities.capacity() < 100), (1, true));
    }

    /// The next step of a process: it gets a request, the table counts its step, or it adopts the total.
    fn steps(processes: usize) -> impl Strategy<Value = Vec<(usize, bool)>> {
        proptest::collection::vec((0..processes, any::<bool>()), 0..2_000)
    }

    proptest! {
        /// On Lambda, a process has one request at a time, and may be at any point in that request while others
        /// continue.
        #[test]
        fn an_entity_publishes_its_share_and_at_most_a_step_more_per_process(
            limit in 1_u32..700,
            (processes, turns) in (1_usize..8).prop_flat_map(|processes| (Just(processes), steps(processes))),
        ) {
            let entity = entity("e");
            let mut processes: Vec<_> = (0..processes).map(|_| (counts(limit), None)).collect();
            let step = processes[0].0.step;
            let mut table = 0;
            let mut admitted = 0;
            for (process, continues) in turns {
                let (counts, under_way) = &mut processes[process];
                match under_way.take() {
                    // Its step is waiting for the table, or the total is on its way.
                    Some(waiting) if !continues => *under_way = Some(waiting),
                    Some(None) => {
                        table += step;
                        *under_way = Some(Some(table));
                    }
                    Some(Some(total)) => counts.learn(&entity, THIS_MINUTE, total),
                    None => match counts.admit(&entity, 1, NOW) {
                        QuotaDecision::Admitted => admitted += 1,
                        QuotaDecision::EndsSteps { .. } => {
                            admitted += 1;
                            *under_way = Some(None);
                        }
                        QuotaDecision::Refused(_) => prop_assert!(admitted >= limit, "refused at {admitted} of {limit}"),
                    },
                }
            }
            let most = limit + step * u32::try_from(processes.len()).expect("a few");
            prop_assert!(admitted < most, "{admitted} of {limit} by {} processes", processes.len());
        }
    }
}
