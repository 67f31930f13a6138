//! The listed status: the state of a delivery in the index `byOwner`.
//!
//! A delivery enters the index as `new`, and stays `new` if it arrives at its first attempt: most deliveries are
//! written to the index only once. So for `new` entries the status is read from the head. The index has every other
//! state, including `pending` when the attempt is put off or the sweep announces the delivery. So while the sweep
//! works, a delivery that has been `new` for an hour has arrived. While the sweep is late, the heads of all `new`
//! entries are read.

use std::time::Duration;

use crate::deliveries::delivery::Status;
use storage::table::{Condition, is};

/// The attribute of the head with the listed status.
pub const LISTED: &str = "listedStatus";
/// The listed status of a delivery whose first attempt is due, or has succeeded.
pub const NEW: &str = "new";
/// If any delivery has been overdue for longer, the sweep is down or late.
pub(crate) const SWEPT_WITHIN: Duration = Duration::from_secs(10 * 60);
/// Older `new` deliveries have arrived, unless the sweep is late. The time is many times as long as the sweep leaves a
/// delivery alone.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(60 * 60);

/// The new listed status of a delivery in this state; `None` if the index keeps the present one.
pub(crate) fn to_list(status: Status, so_far: &str) -> Option<Status> {
    let has_arrived_at_once = status == Status::Delivered && so_far == NEW;
    (!has_arrived_at_once && so_far != status.as_str()).then_some(status)
}

/// Whether a filter for these statuses depends on the age of `new` entries.
pub(crate) fn is_by_age(statuses: &[Status]) -> bool {
    statuses.contains(&Status::Pending) && !statuses.contains(&Status::Delivered)
}

/// Index filter for these statuses; `None` means no filter. `may_be_pending` says whether `new` entries of the range
/// may be pending.
pub(crate) fn may_be_in(statuses: &[Status], may_be_pending: bool) -> Option<Condition> {
    let listed = statuses.iter().map(|status| is(LISTED, status.as_str())).reduce(Condition::or)?;
    Some(if statuses.contains(&Status::Delivered) {
        // The sweep may list a delivery as pending while its attempt is under way, whose record does not see that.
        listed.or(is(LISTED, NEW)).or(is(LISTED, Status::Pending.as_str()))
    } else if may_be_pending && statuses.contains(&Status::Pending) {
        listed.or(is(LISTED, NEW))
    } else {
        listed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Cancelled, Delivered, Failed, Pending, Retrying};

    fn lists(so_far: &str, status: Status) -> bool {
        to_list(status, so_far).is_some()
    }

    #[test]
    fn the_index_has_every_state_but_the_arrival_at_the_first_attempt() {
        assert!(!lists(NEW, Delivered));
        for status in [Pending, Retrying, Failed, Cancelled] {
            assert!(lists(NEW, status), "{status:?}");
            assert!(lists(status.as_str(), Delivered), "{status:?}: it would be listed as such");
            assert!(!lists(status.as_str(), status), "{status:?}: the index says so");
        }
    }

    #[test]
    fn entries_with_an_unknown_state_are_read_where_they_may_match() {
        let wants = |statuses: &[Status], may_be_pending, what: &str| {
            format!("{:?}", may_be_in(statuses, may_be_pending).expect("a filter")).contains(what)
        };
        assert!(may_be_in(&[], true).is_none());
        for may_be_pending in [true, false] {
            assert!(wants(&[Delivered, Pending], may_be_pending, "\"new\""));
            assert_eq!(wants(&[Pending, Retrying], may_be_pending, "\"new\""), may_be_pending);
            assert!(!wants(&[Failed, Retrying], may_be_pending, "\"new\""));
            assert!(
                wants(&[Delivered], may_be_pending, "\"pending\""),
                "it may have arrived since the sweep listed it as pending"
            );
        }
        assert!(is_by_age(&[Pending, Retrying]) && !is_by_age(&[Pending, Delivered]) && !is_by_age(&[Failed]));
    }
}
