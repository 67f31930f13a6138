//! A webhook's waiting deliveries that a recovery makes due now, and the progress so far.

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    jobs::recover_ranges::Ranges,
    queries::range::{KeyRange, ListPosition},
};
use base::Time;

/// A webhook's waiting deliveries that have yet to be made due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExpeditedRanges {
    /// The ranges named by requests for a recovery.
    pub(super) ranges: Ranges,
    /// The remaining deliveries that are waiting for something other than their schedule, since the breaker was closed
    /// early or the webhook was changed. The dispatcher checks each, and makes it wait again if it must.
    pub(super) put_off: KeyRange,
}

impl ExpeditedRanges {
    /// Whether no delivery is left.
    pub(super) fn is_done(&self) -> bool {
        self.ranges.is_empty() && self.put_off.is_empty()
    }

    /// Adds all deliveries waiting for something other than their schedule, including those on earlier pages, which may
    /// have been postponed again.
    pub(super) fn add_put_off(&mut self) {
        self.put_off = KeyRange::since(Time::from_millis(0));
    }

    /// Records progress on these deliveries, up to a position or to the end. Has no effect if they were requested again
    /// in the meantime.
    pub(super) fn put_off_done(&mut self, worked_on: &KeyRange, position: Option<&ListPosition>) {
        if self.put_off == *worked_on {
            self.put_off = position.map_or_else(KeyRange::nothing, |position| worked_on.clone().after(position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::tests::position_at;
    use base::testing::CountingRandom;

    #[test]
    fn put_off_deliveries_are_worked_on_once_for_each_request() {
        let random = CountingRandom::default();
        let mut left = ExpeditedRanges::default();
        assert!(left.is_done());
        left.add_put_off();
        let whole = left.put_off.clone();
        left.put_off_done(&whole, Some(&position_at(5, &random)));
        let rest = left.put_off.clone();
        assert!(rest != whole && !left.is_done());
        left.add_put_off();
        left.put_off_done(&rest, None);
        assert_eq!(left.put_off, whole, "it begins again");
        left.put_off_done(&whole, None);
        assert!(left.is_done());
    }
}
