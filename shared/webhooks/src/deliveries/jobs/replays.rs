//! The replays of a webhook that are under way, and the progress of each. A replay adds a delivery only where the
//! webhook has none, so working through a part of a range again changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::deliveries::queries::{
    by_webhook::INDEX_LAG,
    range::{KeyRange, ListPosition},
};
use base::Time;

/// How many replays of a webhook may be under way. Ranges of the same types that touch are one replay.
pub const MAX_REPLAYS: usize = 10;
/// The age at which events are looked at: the index of events shows them by then, including those of publications that
/// took long.
pub const SETTLED: Duration = INDEX_LAG.saturating_add(Duration::from_secs(30));

/// The events that a replay includes: of these types, published from `since` on and before `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayScope {
    /// The first moment.
    pub since: Time,
    /// The moment after the last.
    pub until: Time,
    /// The types and groups of types; empty for every type.
    pub types: Vec<String>,
}

/// The replays of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays(Vec<Replay>);

/// The webhook has `MAX_REPLAYS` replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_REPLAYS} replays already")]
pub struct TooManyReplays;

/// A replay, and its rest that is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replay {
    since: Time,
    until: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) types: Vec<String>,
    left: KeyRange,
}

/// The next step of a webhook's replays.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Work on this part of a replay.
    Work(Replay, KeyRange),
    /// Wait for the last events of the ranges.
    Wait(Time),
    /// All replays are done.
    Over,
}

impl Replay {
    /// The part whose events the index shows by now.
    fn settled(&self, now: Time) -> KeyRange {
        self.left.clone().within(KeyRange::between(Time::from_millis(0), now - SETTLED))
    }

    fn touches(&self, scope: &ReplayScope) -> bool {
        self.types == scope.types && self.since <= scope.until && scope.since <= self.until
    }
}

impl Replays {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a scope. It is worked through from its beginning even if a replay under way has passed a part of it: the
    /// webhook may have been changed since.
    pub(super) fn ask(&mut self, scope: ReplayScope) -> Result<(), TooManyReplays> {
        let ReplayScope { since, until, .. } = scope;
        if since >= until {
            return Ok(());
        }
        if let Some(replay) = self.0.iter_mut().find(|replay| replay.touches(&scope)) {
            replay.since = replay.since.min(since);
            replay.until = replay.until.max(until);
            replay.left = replay.left.clone().extended(since, until);
            return Ok(());
        }
        if self.0.len() >= MAX_REPLAYS {
            return Err(TooManyReplays);
        }
        self.0.push(Replay { since, until, types: scope.types, left: KeyRange::between(since, until) });
        Ok(())
    }

    /// The next step at this time.
    pub(super) fn step(&self, now: Time) -> Step {
        let settled = self.0.iter().map(|replay| (replay, replay.settled(now))).find(|(_, part)| !part.is_empty());
        if let Some((replay, part)) = settled {
            return Step::Work(replay.clone(), part);
        }
        self.0.iter().map(|replay| replay.until + SETTLED).min().map_or(Step::Over, Step::Wait)
    }

    /// Records that a part of a replay was worked on up to a position, or to its end. Has no effect on a replay that
    /// was requested again in the meantime: it begins again.
    pub(super) fn done(&mut self, worked_on: &Replay, part: &KeyRange, position: Option<&ListPosition>) {
        for replay in self.0.iter_mut().filter(|replay| *replay == worked_on) {
            replay.left = match position {
                Some(position) => replay.left.clone().after(position),
                None => replay.left.clone().after_end_of(part),
            };
        }
        self.0.retain(|replay| !replay.left.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::tests::position_at;
    use base::testing::CountingRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn scope(since: u64, until: u64, types: &[&str]) -> ReplayScope {
        let ago = |seconds| NOW - Duration::from_secs(seconds);
        let types = types.iter().map(|kind| (*kind).to_owned()).collect();
        ReplayScope { since: ago(since), until: ago(until), types }
    }

    fn replays(scopes: &[ReplayScope]) -> Replays {
        let mut replays = Replays::default();
        scopes.iter().for_each(|scope| replays.ask(scope.clone()).expect("few"));
        replays
    }

    /// Works through everything that is settled, a whole part at a time.
    fn worked(mut replays: Replays, now: Time) -> Replays {
        while let Step::Work(replay, part) = replays.step(now) {
            replays.done(&replay, &part, None);
        }
        replays
    }

    #[test]
    fn the_newest_events_are_looked_at_when_the_index_must_show_them() {
        let mut recent = replays(&[scope(600, 0, &[])]);
        let Step::Work(replay, part) = recent.step(NOW) else { panic!("older events are settled") };
        let random = CountingRandom::default();
        let at = |ago| position_at((NOW - Duration::from_secs(ago)).as_millis(), &random);
        assert!(part.holds(at(91).delivery()) && !part.holds(at(89).delivery()));
        recent.done(&replay, &part, None);
        assert_eq!(recent.step(NOW), Step::Wait(NOW + SETTLED));
        assert_eq!(worked(recent, NOW + SETTLED).step(NOW + SETTLED), Step::Over);
    }

    #[test]
    fn a_replay_continues_after_the_last_event_of_a_page() {
        let mut begun = replays(&[scope(6_000, 3_000, &[])]);
        let Step::Work(replay, part) = begun.step(NOW) else { panic!("it is settled") };
        let position = position_at((NOW - Duration::from_secs(4_000)).as_millis(), &CountingRandom::default());
        begun.done(&replay, &part, Some(&position));
        let Step::Work(_, rest) = begun.step(NOW) else { panic!("a rest is left") };
        assert!(!rest.holds(position.delivery()) && rest == part.after(&position));
        assert_eq!(worked(begun, NOW).step(NOW), Step::Over);
    }

    #[test]
    fn a_request_for_a_range_under_way_begins_it_again() {
        let whole = scope(6_000, 3_000, &["booking.*"]);
        let mut begun = replays(std::slice::from_ref(&whole));
        let Step::Work(replay, part) = begun.step(NOW) else { panic!("it is settled") };
        begun.ask(scope(3_500, 2_000, &["booking.*"])).expect("it extends the range");
        begun.done(&replay, &part, None);
        let Step::Work(_, left) = begun.step(NOW) else { panic!("the progress does not count") };
        assert_eq!(left, KeyRange::between(whole.since, NOW - Duration::from_secs(2_000)));
        assert_eq!(worked(begun, NOW), Replays::default(), "it is one replay");
    }

    #[test]
    fn other_types_and_separate_ranges_are_separate_replays_up_to_the_limit() {
        let mut many = replays(&[scope(60, 50, &[]), scope(60, 50, &["booking.*"]), scope(40, 30, &[])]);
        for number in 3..u64::try_from(MAX_REPLAYS).expect("few") {
            many.ask(scope(1_000 * number + 1, 1_000 * number, &[])).expect("within the limit");
        }
        assert_eq!(many.ask(scope(999_999, 999_998, &[])), Err(TooManyReplays));
        assert_eq!(many.ask(scope(60, 40, &[])), Ok(()), "no further replay");
        assert_eq!(replays(&[scope(50, 60, &[])]), Replays::default(), "an empty range");
    }
}
