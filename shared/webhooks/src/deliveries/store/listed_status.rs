//! The state of a delivery as the index `byOwner` tells it.
//!
//! A delivery comes into the index as `new`, and one that arrives at its first attempt stays so: most deliveries are written
//! to the index once and never again. So the head decides what a `new` one is. Every other state is told, also that a
//! delivery is still pending when its attempt is put off, or when the sweep announces it. So one that has been `new` for an
//! hour has arrived, while the sweep works. While it does not, the heads of all `new` ones are read.

use std::time::Duration;

use crate::deliveries::delivery::Status;
use storage::table::{Condition, is};

/// The attribute of the head that the index has.
pub const LISTED: &str = "listedStatus";
/// A delivery whose first attempt is made soon, or was and has arrived.
pub const NEW: &str = "new";
/// A delivery that was overdue for so long, of any entity, shows that the sweep is down or late.
pub(crate) const SWEPT_WITHIN: Duration = Duration::from_secs(10 * 60);
/// A delivery that is older and not told otherwise has arrived, unless the sweep is late: many times as long as the sweep
/// leaves one alone.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(60 * 60);

/// The state, if the index has to be told of it that told another so far.
pub(crate) fn to_list(status: Status, so_far: &str) -> Option<Status> {
    let has_arrived_at_once = status == Status::Delivered && so_far == NEW;
    (!has_arrived_at_once && so_far != status.as_str()).then_some(status)
}

/// Whether what may be in one of these states depends on the age of what is new.
pub(crate) fn is_by_age(statuses: &[Status]) -> bool {
    statuses.contains(&Status::Pending) && !statuses.contains(&Status::Delivered)
}

/// The entries of the index whose deliveries may be in one of these states, among those that may be pending though they are
/// `new`, or those that are older; `None` for all.
pub(crate) fn may_be_in(statuses: &[Status], may_be_pending: bool) -> Option<Condition> {
    let told = statuses.iter().map(|status| is(LISTED, status.as_str())).reduce(Condition::or)?;
    Some(if statuses.contains(&Status::Delivered) {
        // The sweep may tell that one is pending while its attempt is under way, whose record does not know of it.
        told.or(is(LISTED, NEW)).or(is(LISTED, Status::Pending.as_str()))
    } else if may_be_pending && statuses.contains(&Status::Pending) {
        told.or(is(LISTED, NEW))
    } else {
        told
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Cancelled, Delivered, Failed, Pending, Retrying};

    fn tells(so_far: &str, status: Status) -> bool {
        to_list(status, so_far).is_some()
    }

    #[test]
    fn the_index_is_told_every_state_but_the_arrival_at_the_first_attempt() {
        assert!(!tells(NEW, Delivered));
        for status in [Pending, Retrying, Failed, Cancelled] {
            assert!(tells(NEW, status), "{status:?}");
            assert!(tells(status.as_str(), Delivered), "{status:?}: it would be listed as such");
            assert!(!tells(status.as_str(), status), "{status:?}: the index says so");
        }
    }

    #[test]
    fn what_the_index_does_not_tell_is_looked_at_where_it_may_be_wanted() {
        let wants = |statuses: &[Status], may_be_pending, what: &str| {
            format!("{:?}", may_be_in(statuses, may_be_pending).expect("a filter")).contains(what)
        };
        assert!(may_be_in(&[], true).is_none());
        for may_be_pending in [true, false] {
            assert!(wants(&[Delivered, Pending], may_be_pending, "\"new\""));
            assert_eq!(wants(&[Pending, Retrying], may_be_pending, "\"new\""), may_be_pending);
            assert!(!wants(&[Failed, Retrying], may_be_pending, "\"new\""));
            assert!(wants(&[Delivered], may_be_pending, "\"pending\""), "it may have arrived since the sweep told so");
        }
        assert!(is_by_age(&[Pending, Retrying]) && !is_by_age(&[Pending, Delivered]) && !is_by_age(&[Failed]));
    }
}
