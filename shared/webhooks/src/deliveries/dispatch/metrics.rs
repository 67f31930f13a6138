//! The dispatcher's metrics, counted in memory until a run ends. Each run writes one log line, so a delivery adds only
//! a few characters to the log, and costs no read or write of the table.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::deliveries::{queue::Lane, state::schedule::Next, store::claim::Claimed};
use base::Time;
use base::metric::{Metrics, Name, Number};

/// Counts the attempts of all runs in this process. A run that ends also publishes the counts of concurrent runs; the
/// total is unaffected.
#[derive(Debug)]
pub(crate) struct Meter {
    environment: String,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    attempted: usize,
    succeeded: usize,
    exhausted: usize,
    breakers_opened: usize,
    first_attempts: Vec<Duration>,
    arrivals: Vec<Duration>,
}

/// An attempt that was made and recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptMetric {
    published: Time,
    is_first: bool,
    /// Whether the delivery is in its first schedule. A delivery that was resent manually, or replayed, has no
    /// meaningful latency.
    is_in_first_schedule: bool,
    began: Time,
    ended: Time,
    next: Next,
}

impl AttemptMetric {
    pub(crate) fn of(claimed: &Claimed, began: Time, ended: Time, next: Next) -> Self {
        let was_requested = claimed.head().out_of_turn || claimed.is_in_between();
        Self {
            published: claimed.delivery().created_date,
            is_first: claimed.attempt() == 1 && !was_requested,
            is_in_first_schedule: claimed.attempt_in_schedule() == claimed.attempt() && !was_requested,
            began,
            ended,
            next,
        }
    }
}

impl Meter {
    pub(crate) fn new(environment: String) -> Self {
        Self { environment, counted: Mutex::default() }
    }

    pub(crate) fn attempted(&self, attempt: AttemptMetric) {
        let mut counted = self.counted();
        counted.attempted += 1;
        if attempt.is_first {
            counted.first_attempts.push(attempt.began.since(attempt.published));
        }
        match attempt.next {
            Next::Delivered => {
                counted.succeeded += 1;
                if attempt.is_in_first_schedule {
                    counted.arrivals.push(attempt.ended.since(attempt.published));
                }
            }
            Next::Exhausted => counted.exhausted += 1,
            Next::RetryAt(_) | Next::ReadFrom(_) | Next::Gone | Next::Cancelled => {}
        }
    }

    pub(crate) fn breakers_opened(&self, opened: usize) {
        self.counted().breakers_opened += opened;
    }

    /// Publishes the numbers at the end of a run of this lane, including the run's highest number of concurrent
    /// attempts, and resets them.
    pub(crate) fn publish(&self, lane: Lane, in_flight: usize, at: Time) {
        let counted = mem::take(&mut *self.counted());
        Metrics { environment: &self.environment, by: &[], numbers: &counted.numbers(lane, in_flight), at }.publish();
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// The numbers that are not zero; empty for a run without attempts.
    fn numbers(&self, lane: Lane, in_flight: usize) -> Vec<Number> {
        if self.attempted + self.breakers_opened == 0 {
            return Vec::new();
        }
        let in_lane = match lane {
            Lane::Quick => Name::InFlightQuick,
            Lane::Slow => Name::InFlightSlow,
        };
        let counts = [
            (Name::DeliveriesAttempted, self.attempted),
            (Name::DeliveriesSucceeded, self.succeeded),
            (Name::DeliveriesFailed, self.attempted - self.succeeded),
            (Name::DeliveriesExhausted, self.exhausted),
            (Name::BreakersOpened, self.breakers_opened),
            (in_lane, in_flight),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let durations = [(Name::FirstAttemptAfter, &self.first_attempts), (Name::ArrivalAfter, &self.arrivals)];
        counts
            .map(|(name, count)| Number::count(name, count))
            .chain(durations.map(|(name, durations)| Number::millis(name, durations)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: Time = Time::from_millis(1_795_167_900_000);

    fn attempt(next: Next) -> AttemptMetric {
        let began = PUBLISHED + Duration::from_millis(40);
        let ended = PUBLISHED + Duration::from_millis(100);
        AttemptMetric { published: PUBLISHED, is_first: true, is_in_first_schedule: true, began, ended, next }
    }

    fn published(meter: &Meter, lane: Lane, in_flight: usize) -> String {
        let counted = mem::take(&mut *meter.counted());
        let numbers = counted.numbers(lane, in_flight);
        Metrics { environment: "production", by: &[], numbers: &numbers, at: PUBLISHED }.texts().join("\n")
    }

    fn values(line: &str) -> serde_json::Value {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let members = line.as_object_mut().expect("an object");
        members.remove("_aws");
        members.remove("Environment");
        line
    }

    #[test]
    fn a_run_reports_its_attempts_and_their_outcomes_in_one_line() {
        let meter = Meter::new("production".to_owned());
        meter.attempted(attempt(Next::Delivered));
        meter.attempted(AttemptMetric { is_first: false, ..attempt(Next::RetryAt(PUBLISHED)) });
        meter.attempted(AttemptMetric { is_first: false, ..attempt(Next::Exhausted) });
        meter.attempted(AttemptMetric { is_first: false, ..attempt(Next::Gone) });
        meter.breakers_opened(1);
        let line = published(&meter, Lane::Slow, 3);
        let expected = serde_json::json!({
            "DeliveriesAttempted": 4, "DeliveriesSucceeded": 1, "DeliveriesFailed": 3, "DeliveriesExhausted": 1,
            "BreakersOpened": 1, "InFlightSlow": 3, "FirstAttemptAfter": 40, "ArrivalAfter": 100,
        });
        assert_eq!(values(&line), expected);
        assert_eq!(published(&meter, Lane::Slow, 3), "", "the next run starts at zero");
    }

    #[test]
    fn a_delivery_that_is_sent_again_by_hand_has_no_latency() {
        let meter = Meter::new("production".to_owned());
        meter.attempted(AttemptMetric { is_first: false, is_in_first_schedule: false, ..attempt(Next::Delivered) });
        let expected = serde_json::json!({ "DeliveriesAttempted": 1, "DeliveriesSucceeded": 1, "InFlightQuick": 1 });
        assert_eq!(values(&published(&meter, Lane::Quick, 1)), expected);
    }

    #[test]
    fn a_delivery_costs_few_characters_of_the_log() {
        let length = |deliveries: usize| {
            let meter = Meter::new("production".to_owned());
            for _ in 0..deliveries {
                meter.attempted(attempt(Next::Delivered));
            }
            published(&meter, Lane::Quick, 10).len()
        };
        assert!(length(1) < 600, "{}", length(1));
        assert!((length(100) - length(10)) / 90 < 10, "{} and {}", length(10), length(100));
    }
}
