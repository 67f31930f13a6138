//! The ranges of a webhook's deliveries that are being recovered, and the progress of each. A range is processed once,
//! from its first moment to its last. A request that is repeated in the meantime adds only the parts that no range
//! contains yet, so that a delivery that failed again after its recovery is not recovered twice.

use serde::{Deserialize, Serialize};

use crate::deliveries::queries::range::{KeyRange, ListPosition};
use base::Time;

/// How many ranges a webhook may have. Extending an existing range does not add one.
pub const MAX_RANGES: usize = 50;

/// A webhook's ranges; no two overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(Vec<Range>);

/// The webhook has `MAX_RANGES` ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_RANGES} ranges already")]
pub struct TooManyRanges;

/// A requested range, and its remaining part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    since: Time,
    until: Time,
    left: KeyRange,
}

impl Range {
    fn new(since: Time, until: Time) -> Self {
        Self { since, until, left: KeyRange::between(since, until) }
    }

    /// The remaining part.
    pub fn left(&self) -> &KeyRange {
        &self.left
    }
}

impl Ranges {
    /// Whether all are done.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The range to work on.
    pub fn first(&self) -> Option<&Range> {
        self.0.first()
    }

    /// Adds the parts that no range contains yet and returns whether there are any.
    pub fn ask(&mut self, since: Time, until: Time) -> Result<bool, TooManyRanges> {
        let new = self.not_covered(since, until);
        let asked = !new.is_empty();
        for (since, until) in new {
            // A part that directly follows a range extends it.
            match self.0.iter_mut().find(|range| range.until == since) {
                Some(range) => {
                    range.left = range.left.clone().until(until);
                    range.until = until;
                }
                None => self.0.push(Range::new(since, until)),
            }
        }
        if self.0.len() > MAX_RANGES { Err(TooManyRanges) } else { Ok(asked) }
    }

    fn not_covered(&self, since: Time, until: Time) -> Vec<(Time, Time)> {
        let mut ranges: Vec<_> = self.0.iter().map(|range| (range.since, range.until)).collect();
        ranges.sort_unstable();
        let mut gaps = Vec::new();
        let mut from = since;
        for (begin, end) in ranges {
            gaps.push((from, begin.min(until)));
            from = from.max(end);
        }
        gaps.push((from, until));
        gaps.retain(|(from, to)| from < to);
        gaps
    }

    /// The remaining parts between two times.
    pub fn left_between(&self, since: Time, until: Time) -> Vec<KeyRange> {
        let asked = KeyRange::between(since, until);
        let left = self.0.iter().map(|range| range.left.clone().within(asked.clone()));
        left.filter(|range| !range.is_empty()).collect()
    }

    /// Records that a range was processed up to a position, or up to the end it had then; it may have been extended
    /// since.
    pub fn done(&mut self, worked_on: &Range, position: Option<&ListPosition>) {
        for range in self.0.iter_mut().filter(|range| range.since == worked_on.since) {
            let left = range.left.clone();
            range.left = match position {
                Some(position) => left.after(position),
                None => left.within(KeyRange::since(worked_on.until)),
            };
        }
        self.0.retain(|range| !range.left.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::tests::position_at;
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    fn at(millis: u8) -> Time {
        Time::from_millis(i64::from(millis))
    }

    fn ranges(asked: &[(u8, u8)]) -> Ranges {
        let mut ranges = Ranges::default();
        for (since, until) in asked {
            ranges.ask(at(*since), at(*until)).expect("few");
        }
        ranges
    }

    fn bounds(ranges: &Ranges) -> Vec<(Time, Time)> {
        ranges.0.iter().map(|range| (range.since, range.until)).collect()
    }

    #[test]
    fn a_repeated_range_adds_nothing_and_a_later_end_extends_it() {
        let mut ranges = ranges(&[(10, 20)]);
        assert_eq!(ranges.ask(at(10), at(20)), Ok(false));
        assert_eq!(ranges.ask(at(12), at(15)), Ok(false));
        assert_eq!(ranges.ask(at(10), at(25)), Ok(true));
        assert_eq!(bounds(&ranges), [(at(10), at(25))]);
        assert_eq!(ranges.ask(at(5), at(30)), Ok(true));
        assert_eq!(bounds(&ranges), [(at(10), at(30)), (at(5), at(10))]);
    }

    #[test]
    fn a_range_is_not_begun_again_while_it_is_worked_on() {
        let mut ranges = ranges(&[(10, 20)]);
        let first = ranges.0[0].clone();
        let position = position_at(14, &CountingRandom::default());
        ranges.done(&first, Some(&position));
        assert_eq!(ranges.ask(at(10), at(20)), Ok(false));
        assert_eq!(ranges.left_between(at(10), at(20)), [KeyRange::between(at(10), at(20)).after(&position)]);
        assert_eq!(ranges.left_between(at(10), at(14)), []);
        ranges.done(&first, None);
        assert!(ranges.is_empty());
        assert_eq!(ranges.ask(at(10), at(20)), Ok(true));
    }

    #[test]
    fn a_range_that_is_extended_while_worked_on_continues() {
        let mut ranges = ranges(&[(10, 20)]);
        let seen = ranges.0[0].clone();
        ranges.ask(at(10), at(30)).expect("few");
        ranges.done(&seen, None);
        assert_eq!(ranges.left_between(at(0), at(99)), [KeyRange::between(at(20), at(30))]);
    }

    #[test]
    fn ranges_are_limited() {
        let mut ranges = Ranges::default();
        for number in 0..50 {
            assert_eq!(ranges.ask(at(number * 4), at(number * 4 + 2)), Ok(true));
        }
        assert_eq!(ranges.clone().ask(at(202), at(203)), Err(TooManyRanges));
        assert_eq!(ranges.ask(at(0), at(2)), Ok(false));
    }

    proptest! {
        #[test]
        fn ranges_cover_each_requested_moment_exactly_once(
            asked in proptest::collection::vec((0u8..40, 0u8..40), 0..12),
        ) {
            let ranges = ranges(&asked);
            for moment in 0u8..40 {
                let position = position_at(i64::from(moment), &CountingRandom::default());
                let wanted = asked.iter().any(|(since, until)| (*since..*until).contains(&moment));
                let times = ranges.0.iter().filter(|range| range.left.holds(position.delivery())).count();
                prop_assert_eq!(times, usize::from(wanted), "at {}", moment);
            }
            // Repeating a range adds nothing.
            let mut again = ranges.clone();
            for (since, until) in asked {
                prop_assert_eq!(again.ask(at(since), at(until)), Ok(false));
            }
            prop_assert_eq!(again, ranges);
        }
    }
}
