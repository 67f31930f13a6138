//! The filters of an entity's webhooks, compared with one event. All filters together share a limit on steps:
//! otherwise, two hundred of the most expensive filters would take minutes for the largest event.
//!
//! A filter that needs more steps lets the event pass, with a warning: a missing event is worse than one too many. Such
//! filters are not refused when they are created, since even the most expensive ones are harmless for ordinary events.

use std::collections::{BTreeSet, HashMap};

use super::{
    EventFilter,
    data::EventData,
    matching::{FilterOutcome, Steps},
};

/// The maximum number of steps for comparing an event with all of an entity's filters, about 60 ms of processor time. A
/// step compares one value in the data with one in a filter.
pub const MAX_STEPS: u32 = 10_000_000;

/// The outcomes of an entity's filters for one event.
pub struct FilterOutcomes<'f>(HashMap<&'f EventFilter, FilterOutcome>);

impl<'f> FilterOutcomes<'f> {
    /// Compares the event that has this body with each of these filters: equal ones once, and each with an equal share
    /// of the remaining steps, so that an expensive filter leaves enough for the others.
    pub fn of(filters: impl Iterator<Item = &'f EventFilter>, body: &str) -> Self {
        Self::within(Steps(MAX_STEPS), filters, body)
    }

    pub(super) fn within(mut left: Steps, filters: impl Iterator<Item = &'f EventFilter>, body: &str) -> Self {
        let filters: BTreeSet<_> = filters.collect();
        if filters.is_empty() {
            return Self(HashMap::new());
        }
        let data = EventData::of_body(body);
        let remaining = (1..=u32::try_from(filters.len()).unwrap_or(u32::MAX)).rev();
        let outcomes = filters.into_iter().zip(remaining).map(|(filter, remaining)| {
            let part = Steps(left.0 / remaining);
            let mut unused = part;
            let outcome = filter.compare(&data, &mut unused);
            left.0 -= part.0 - unused.0;
            (filter, outcome)
        });
        Self(outcomes.collect())
    }

    /// The outcome of a filter, which must be one of those compared.
    pub fn get(&self, filter: &EventFilter) -> FilterOutcome {
        self.0[filter]
    }
}
