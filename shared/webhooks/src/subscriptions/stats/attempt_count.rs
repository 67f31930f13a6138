//! Counts of attempts and successes, and a histogram of response times.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::subscriptions::{
    health::tally::AttemptOutcome,
    stats::histogram::{Histogram, LONGEST},
};

/// An hour of statistics in the table.
#[derive(Debug, Deserialize)]
pub(super) struct HourItem {
    pub(super) sk: String,
    /// All other attributes. [`Count::add`] reads the counts among them.
    #[serde(flatten)]
    pub(super) counts: HashMap<String, Value>,
}

/// The attempts of one batch or of many hours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) attempts: u64,
    pub(super) succeeded: u64,
    pub(super) durations: Histogram,
}

impl Count {
    pub(super) fn of(outcomes: &[AttemptOutcome]) -> Self {
        let mut count = Self::default();
        for outcome in outcomes {
            count.attempts += 1;
            count.succeeded += u64::from(outcome.succeeded());
            if outcome.completed() {
                count.durations.add(u64::try_from(outcome.duration.as_millis()).unwrap_or(LONGEST), 1);
            }
        }
        count
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.succeeded += other.succeeded;
        other.durations.0.iter().for_each(|(least, count)| self.durations.add(*least, *count));
    }

    /// Adds an hour of the table.
    pub(super) fn add(&mut self, hour: &HourItem) {
        for (name, value) in &hour.counts {
            let Some(value) = value.as_u64() else { continue };
            match name.as_str() {
                "attempts" => self.attempts += value,
                "succeeded" => self.succeeded += value,
                _ => {
                    if let Some(least) = name.strip_prefix('d').and_then(|least| least.parse().ok()) {
                        self.durations.add(least, value);
                    }
                }
            }
        }
    }

    /// The additions to the attributes of an hour.
    pub(super) fn additions(&self) -> impl Iterator<Item = (String, u64)> {
        let totals = [("attempts".to_owned(), self.attempts), ("succeeded".to_owned(), self.succeeded)];
        totals.into_iter().chain(self.durations.0.iter().map(|(least, count)| (format!("d{least}"), *count)))
    }
}
