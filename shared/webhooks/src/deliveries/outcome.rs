//! The outcome of an attempt that no dispatcher saw end: a reader answered or did not, or the worker that sent the
//! request died. It is recorded as an attempt.

use std::time::Duration;

use crate::{
    deliveries::{
        dispatch::exchange::{exhausted, log},
        state::{
            Unknown,
            attempt::{Attempt, ErrorCode},
            schedule::{Next, RetrySchedule},
        },
        store::{Deliveries, claim::Claimed},
    },
    subscriptions::health::{announcing::Announcer, tally::AttemptOutcome},
};
use base::{Random, Time, random};
use storage::TableError;

/// The longest wait during which a failed delivery stays in the feed. For a longer wait, the delivery leaves the feed,
/// so that readers need not skip it; the sweep puts it back.
const STAYS_IN_FEED: Duration = Duration::from_secs(60);

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The reader confirmed the delivery.
    Confirmed,
    /// The reader reported a failure, for this reason.
    Reported(String),
    /// Unknown: the reader did not answer in time, or the worker that sent a request died.
    Unknown {
        /// Whether the delivery stays in the feed for the next reader. If not, a dispatcher decides what happens to it.
        in_feed: bool,
        /// Whether its webhook was removed or disabled, so that the next claim cancels the delivery.
        webhook_ended: bool,
    },
}

impl Outcome {
    /// The code and the sentence of a reader's attempt, unless the reader confirmed the delivery.
    fn error(&self) -> Option<String> {
        match self {
            Self::Confirmed => None,
            Self::Reported(reason) => Some(format!("{}: {reason}", ErrorCode::Reported.as_str())),
            Self::Unknown { .. } => {
                let code = ErrorCode::Unconfirmed.as_str();
                Some(format!(
                    "{code}: no answer came within the visibility timeout; the response may not have reached a reader"
                ))
            }
        }
    }
}

/// Records outcomes.
pub(crate) struct OutcomeRecorder<'a> {
    pub(crate) deliveries: &'a Deliveries,
    pub(crate) announcer: &'a Announcer,
    /// The webhook's schedule.
    pub(crate) schedule: RetrySchedule,
    pub(crate) random: &'a dyn Random,
}

impl OutcomeRecorder<'_> {
    /// Records an attempt, and returns it with the next step; `None` if the lease was lost.
    pub(crate) async fn record(
        &self,
        claimed: &Claimed,
        outcome: &Outcome,
        now: Time,
    ) -> Result<Option<(AttemptOutcome, Next)>, TableError> {
        let attempt = match claimed.unknown() {
            Some(Unknown::Worker(claimed_at)) => Attempt::interrupted(claimed.attempt(), claimed_at),
            Some(Unknown::Reader(began)) => Attempt::of_reader(claimed.attempt(), began, now, outcome.error()),
            None => Attempt::of_reader(claimed.attempt(), now, now, outcome.error()),
        };
        let next = self.next(claimed, outcome, now);
        log(claimed, &attempt, next);
        let along = match exhausted(claimed, &attempt, next, now, self.random) {
            Some(event) => self.announcer.writes(&claimed.delivery().webhook_identifier, &event, now).await?,
            None => Vec::new(),
        };
        let counted = attempt.outcome();
        let recorded = self.deliveries.record(claimed, &attempt, next, now, along).await?;
        Ok(recorded.map(|next| (counted, next)))
    }

    /// Decides on the next step. A delivery reported as failed waits according to the retry schedule. A delivery
    /// without a known outcome is due again immediately if the attempt does not use up the schedule, or if its webhook
    /// was removed or disabled.
    fn next(&self, claimed: &Claimed, outcome: &Outcome, now: Time) -> Next {
        if *outcome == Outcome::Confirmed {
            return Next::Delivered;
        }
        let is_repeated = matches!(outcome, Outcome::Unknown { webhook_ended, .. } if *webhook_ended || claimed.head().spares_schedule());
        let dice = random::unit(self.random);
        let scheduled = self.schedule.after_failure(claimed.attempt_in_schedule(), Duration::ZERO, now, dice);
        let repeated = Next::RetryAt(now);
        let next = claimed.limited(if is_repeated { repeated } else { scheduled }, Duration::ZERO, now);
        // At once, even if the attempt was requested manually.
        let next = if is_repeated && next.retry_at().is_some() { repeated } else { next };
        match (next, outcome) {
            (_, Outcome::Unknown { in_feed: false, .. }) => next,
            (Next::RetryAt(time), _) if time.since(now) <= STAYS_IN_FEED => Next::ReadFrom(time),
            _ => next,
        }
    }
}
