//! The current replay of a webhook, and its progress. A webhook has one at a time. A replay adds a delivery only where
//! the webhook has none, so processing a part of the range again changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::deliveries::queries::{
    by_webhook::INDEX_LAG,
    range::{KeyRange, ListPosition},
};
use base::Time;

/// The age at which events are replayed: by then, the index of events shows even those that were published slowly.
const SETTLED: Duration = INDEX_LAG.saturating_add(Duration::from_secs(30));

/// The events that a replay includes, as requested: of these types, published at or after `since` and before `until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayScope {
    /// The first moment.
    pub since: Time,
    /// The exclusive end; `None` for the time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The types and groups of types; empty for every type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

/// The webhook already has a replay with a different scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a replay of the events from {since} until {until} is under way")]
pub struct ReplayUnderWay {
    /// The first moment of the current replay.
    pub since: Time,
    /// Its exclusive end.
    pub until: Time,
}

/// A replay, and its remaining part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::deliveries) struct Replay {
    pub(in crate::deliveries) scope: ReplayScope,
    /// The version of the webhook that the remaining events are compared with.
    webhook_version: u64,
    /// The exclusive end of the events.
    pub(in crate::deliveries) until: Time,
    left: KeyRange,
}

/// The next step of a replay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Work on this part.
    Work(KeyRange),
    /// Wait until the last events of the range are in the index.
    Wait(Time),
    /// The replay is done.
    Over,
}

impl Replay {
    /// A new replay, requested at this time. It covers only stored events, and ends now at the latest.
    pub(in crate::deliveries) fn new(scope: ReplayScope, webhook_version: u64, retention: Duration, now: Time) -> Self {
        let until = scope.until.map_or(now, |until| until.min(now));
        let since = scope.since.max(now - retention).min(until);
        Self { scope, webhook_version, until, left: KeyRange::between(since, until) }
    }

    /// The remaining part.
    pub(in crate::deliveries) fn left(&self) -> &KeyRange {
        &self.left
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether the index may not show its last events yet.
    pub(in crate::deliveries) fn ends_recently(&self, now: Time) -> bool {
        !self.is_done() && now.since(self.until) < SETTLED
    }

    /// Adds a requested replay. During a replay, only the same scope is accepted; without `until`, its end moves to the
    /// time of the request. The replay starts over only if the webhook was changed, since it may now match events that
    /// were skipped.
    pub(super) fn ask(&mut self, asked: &Self) -> Result<(), ReplayUnderWay> {
        if self.is_done() || self.scope == asked.scope && self.webhook_version != asked.webhook_version {
            *self = asked.clone();
            return Ok(());
        }
        if self.scope != asked.scope {
            return Err(ReplayUnderWay { since: self.scope.since, until: self.until });
        }
        self.until = self.until.max(asked.until);
        self.left = self.left.clone().until(self.until);
        Ok(())
    }

    /// The next step at this time.
    pub(super) fn step(&self, now: Time) -> Step {
        if self.is_done() {
            return Step::Over;
        }
        let settled = self.left.clone().within(KeyRange::between(Time::from_millis(0), now - SETTLED));
        if settled.is_empty() { Step::Wait(self.until + SETTLED) } else { Step::Work(settled) }
    }

    /// Records that a part was processed up to a position, or to its end. Has no effect if the replay started over in
    /// the meantime.
    pub(super) fn done(&mut self, worked_on: &Self, part: &KeyRange, position: Option<&ListPosition>) {
        if self.scope != worked_on.scope || self.webhook_version != worked_on.webhook_version {
            return;
        }
        self.left = match position {
            Some(position) => self.left.clone().after(position),
            None => self.left.clone().after_end_of(part),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::tests::position_at;
    use base::testing::CountingRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_000);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const VERSION: u64 = 7;

    fn ago(seconds: u64) -> Time {
        NOW - Duration::from_secs(seconds)
    }

    fn scope(since: u64, until: Option<u64>) -> ReplayScope {
        ReplayScope { since: ago(since), until: until.map(ago), types: vec!["booking.*".to_owned()] }
    }

    /// A replay of a webhook with this version, requested at this time.
    fn asked(scope: ReplayScope, webhook_version: u64, now: Time) -> Replay {
        Replay::new(scope, webhook_version, DAY, now)
    }

    fn replay(since: u64, until: Option<u64>) -> Replay {
        asked(scope(since, until), VERSION, NOW)
    }

    /// The remaining part that is settled.
    fn part(replay: &Replay, now: Time) -> KeyRange {
        match replay.step(now) {
            Step::Work(part) => part,
            other => panic!("{other:?}"),
        }
    }

    fn at(seconds: u64) -> ListPosition {
        position_at(ago(seconds).as_millis(), &CountingRandom::default())
    }

    #[test]
    fn the_newest_events_are_looked_at_when_the_index_must_show_them() {
        let mut recent = replay(600, None);
        let settled = part(&recent, NOW);
        assert!(settled.holds(at(91).delivery()) && !settled.holds(at(89).delivery()));
        recent.done(&recent.clone(), &settled, None);
        assert_eq!(recent.step(NOW), Step::Wait(NOW + SETTLED));
        let last = part(&recent, NOW + SETTLED);
        recent.done(&recent.clone(), &last, None);
        assert_eq!(recent.step(NOW + SETTLED), Step::Over);
    }

    #[test]
    fn a_replay_continues_after_the_last_event_of_a_page() {
        let mut begun = replay(6_000, Some(3_000));
        let whole = part(&begun, NOW);
        begun.done(&begun.clone(), &whole, Some(&at(4_000)));
        assert_eq!(part(&begun, NOW), whole.after(&at(4_000)));
    }

    #[test]
    fn the_same_request_continues_the_replay_under_way() {
        let mut begun = replay(6_000, None);
        let read = begun.clone();
        let whole = part(&begun, NOW);
        let later = NOW + Duration::from_secs(60);
        assert_eq!(begun.ask(&asked(scope(6_000, None), VERSION, later)), Ok(()));
        begun.done(&read, &whole, Some(&at(4_000)));
        let expected = KeyRange::between(ago(6_000), later - SETTLED).after(&at(4_000));
        assert_eq!(part(&begun, later), expected, "its progress counts, and it ends later");

        let mut ended = replay(6_000, Some(3_000));
        let settled = part(&ended, NOW);
        ended.done(&ended.clone(), &settled, Some(&at(4_000)));
        let before = ended.clone();
        assert_eq!(ended.ask(&replay(6_000, Some(3_000))), Ok(()));
        assert_eq!(ended, before, "nothing is added");
    }

    #[test]
    fn the_same_request_begins_again_after_a_change_of_the_webhook() {
        let mut begun = replay(6_000, Some(3_000));
        let read = begun.clone();
        let whole = part(&begun, NOW);
        assert_eq!(begun.ask(&asked(scope(6_000, Some(3_000)), VERSION + 1, NOW)), Ok(()));
        begun.done(&read, &whole, None);
        assert_eq!(part(&begun, NOW), whole, "progress with the webhook as it was does not count");
    }

    #[test]
    fn another_request_is_refused_until_the_replay_is_done() {
        let mut begun = replay(6_000, Some(3_000));
        let other_types = ReplayScope { types: Vec::new(), ..scope(6_000, Some(3_000)) };
        let refused = Err(ReplayUnderWay { since: ago(6_000), until: ago(3_000) });
        for other in [scope(6_000, Some(2_000)), scope(5_000, Some(3_000)), scope(6_000, None), other_types] {
            for version in [VERSION, VERSION + 1] {
                assert_eq!(begun.ask(&asked(other.clone(), version, NOW)), refused, "{other:?}");
            }
        }
        let whole = part(&begun, NOW);
        begun.done(&begun.clone(), &whole, None);
        assert_eq!(begun.ask(&replay(600, None)), Ok(()));
        assert_eq!(begun, replay(600, None), "the job of the last replay may not be removed yet");
    }

    #[test]
    fn a_replay_begins_with_the_kept_events_and_ends_now_at_the_latest() {
        let hour = Duration::from_secs(3_600);
        let range = |since, until| {
            let scope = ReplayScope { since, until, types: Vec::new() };
            Replay::new(scope, VERSION, DAY, NOW).left
        };
        let later = Some(NOW + hour);
        assert_eq!(range(NOW - hour, None), KeyRange::between(NOW - hour, NOW));
        assert_eq!(range(NOW - hour, later), KeyRange::between(NOW - hour, NOW));
        assert_eq!(range(NOW - DAY - hour, None), KeyRange::between(NOW - DAY, NOW));
        assert!(range(NOW - DAY - hour, Some(NOW - DAY)).is_empty());
        assert!(range(NOW + hour, later).is_empty(), "the range is in the future");
    }
}
