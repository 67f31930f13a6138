//! The waiting deliveries of a webhook that are to be attempted now, and how far that has come.

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    jobs::recover_ranges::Ranges,
    queries::by_owner::{KeyRange, ListPosition},
};
use base::Time;

/// The waiting deliveries of a webhook that are yet to become due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExpeditedRanges {
    /// The ranges of those that were asked for.
    pub(super) ranges: Ranges,
    /// The rest of those that wait for the breaker, which was closed before its time.
    pub(super) put_off: KeyRange,
}

impl ExpeditedRanges {
    /// Whether none is left.
    pub(super) fn is_done(&self) -> bool {
        self.ranges.is_empty() && self.put_off.is_empty()
    }

    /// Has all that wait for the breaker become due, also those that were looked at before: they may have been put off
    /// again since.
    pub(super) fn ask_for_put_off(&mut self) {
        self.put_off = KeyRange::since(Time::from_millis(0));
    }

    /// Notes that those that wait for the breaker were worked on up to a position, or to the end. It is nothing when
    /// they were asked for again meanwhile.
    pub(super) fn put_off_done(&mut self, worked_on: &KeyRange, position: Option<&ListPosition>) {
        if self.put_off == *worked_on {
            self.put_off = position.map_or_else(KeyRange::nothing, |position| worked_on.clone().after(position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::by_owner::tests::position_at;
    use base::testing::CountingRandom;

    #[test]
    fn those_that_wait_for_the_breaker_are_worked_through_once_and_anew_when_they_are_asked_for_again() {
        let random = CountingRandom::default();
        let mut left = ExpeditedRanges::default();
        assert!(left.is_done());
        left.ask_for_put_off();
        let whole = left.put_off.clone();
        left.put_off_done(&whole, Some(&position_at(5, &random)));
        let rest = left.put_off.clone();
        assert!(rest != whole && !left.is_done());
        left.ask_for_put_off();
        left.put_off_done(&rest, None);
        assert_eq!(left.put_off, whole, "it begins anew");
        left.put_off_done(&whole, None);
        assert!(left.is_done());
    }
}
