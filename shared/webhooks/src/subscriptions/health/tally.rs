//! The outcomes of attempts, and their sum.

use std::time::Duration;

/// An attempt's outcome, for its webhook's health and statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// The response status; `None` if the attempt never completed.
    pub http_status: Option<u16>,
    /// Whether a reader of the webhook's feed confirmed it.
    pub confirmed: bool,
    /// Whether a reader of the webhook's feed made it.
    pub of_reader: bool,
    /// Whether its worker died before it recorded the outcome, which says nothing about the endpoint.
    pub interrupted: bool,
    /// Why the attempt never completed: a stable code and a sentence.
    pub error: Option<String>,
    /// The time from its beginning to its end.
    pub duration: Duration,
}

impl AttemptOutcome {
    /// Whether the endpoint accepted the event.
    pub fn succeeded(&self) -> bool {
        self.confirmed || self.http_status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether there was a response, of any status. A feed has no endpoint that could fail to respond, so its reader's
    /// attempt counts as completed and opens no breaker.
    pub const fn completed(&self) -> bool {
        self.of_reader || self.http_status.is_some()
    }
}

/// The sum of consecutive attempts, for a webhook's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Whether one succeeded: earlier failures no longer count.
    pub succeeded: bool,
    /// Whether one completed: earlier incomplete attempts no longer count, and the breaker closes.
    pub completed: bool,
    /// Attempts that failed after the last success.
    pub failures: u32,
    /// Attempts that never completed, after the last one that did.
    pub incomplete: u32,
}

impl Tally {
    /// Counts attempts in their order.
    pub fn of(outcomes: &[AttemptOutcome]) -> Self {
        let mut tally = Self { succeeded: false, completed: false, failures: 0, incomplete: 0 };
        for outcome in outcomes {
            if outcome.completed() {
                tally.completed = true;
                tally.incomplete = 0;
            } else {
                tally.incomplete += 1;
            }
            if outcome.succeeded() {
                tally.succeeded = true;
                tally.failures = 0;
            } else {
                tally.failures += 1;
            }
        }
        tally
    }

    /// Whether the tally ends without failures.
    pub const fn is_clean(&self) -> bool {
        self.failures == 0
    }
}
