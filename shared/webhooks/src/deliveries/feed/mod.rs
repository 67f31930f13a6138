//! A pull webhook's feed: its subscriber fetches events instead of receiving requests.
//!
//! The dispatcher puts a delivery into the feed (`IndexGroup::Unread`) instead of sending it. A reader receives the
//! oldest deliveries, each with a lease for the requested visibility timeout, and a receipt that names the lease. Like
//! an endpoint's response, the reader's answer is recorded as an attempt, on condition that the lease is still valid. A
//! reader can extend its lease. When the lease is over, another reader receives the delivery, and the unanswered
//! attempt is recorded as `unconfirmed`.

pub mod acknowledge;
mod batch;
pub mod extend;
mod find;
mod give;
pub mod read;
mod receipt;

use std::ops::RangeInclusive;

use crate::{
    deliveries::{
        outcome::OutcomeRecorder,
        state::{
            head::Head,
            schedule::{RetrySchedule, ScheduleSettings},
        },
        store::{Deliveries, held::Ended},
    },
    subscriptions::{
        Webhook, Webhooks,
        health::{announcing::Announcer, breaker::BreakerSettings, tracker::HealthTracker},
        request_limits::RequestLimits,
        stats::Stats,
    },
};
use base::{SharedClock, SharedRandom, Time};
use problem::{JsonBody, Rule};
use storage::Table;

/// The default maximum number of deliveries that a reader receives.
const DEFAULT_LIMIT: usize = 10;
/// The maximum number of deliveries that one request reads or answers.
pub(crate) const MAX_AT_ONCE: usize = 100;
/// How many of a request's deliveries are read, handed out or recorded concurrently.
const PARALLEL: usize = 16;
/// The visibility timeouts that a reader may request, in seconds.
const VISIBILITIES: RangeInclusive<u64> = 10..=3_600;

/// Reads feeds, records the answers of their readers, and extends their leases.
pub struct Feeds {
    table: Table,
    deliveries: Deliveries,
    webhooks: Webhooks,
    limits: RequestLimits,
    health_tracker: HealthTracker,
    stats: Stats,
    announcer: Announcer,
    schedule: RetrySchedule,
    clock: SharedClock,
    random: SharedRandom,
}

/// Takes an optional integer in this range from a request's body; `what` describes it in the violation.
fn integer(body: &mut JsonBody<'_>, name: &'static str, range: RangeInclusive<u64>, what: &str) -> Option<u64> {
    let number = body.optional(name, what)?;
    if !range.contains(&number) {
        body.violations.add(name, Rule::OutOfRange, format!("must be {what}"));
    }
    Some(number)
}

impl Feeds {
    /// The feeds of the webhooks in this table.
    pub fn new(
        table: &Table,
        (schedule, breaker): (ScheduleSettings, BreakerSettings),
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
            table: table.clone(),
            deliveries: Deliveries::new(table.clone()),
            webhooks: Webhooks::new(table.clone()),
            limits: RequestLimits::new(table.clone()),
            health_tracker: HealthTracker::new(table.clone(), breaker, random.clone()),
            stats: Stats::new(table.clone()),
            announcer: Announcer::new(table.clone()),
            schedule: schedule.schedule,
            clock,
            random,
        }
    }

    /// Puts the delivery that was held by `last`, now final, into the feed.
    async fn wake_next(&self, last: &Head, webhook: &Webhook, now: Time) {
        // The sweep announces the delivery if its webhook was disabled or changed in the meantime.
        let _woken = self.deliveries.wake_next_or_log(Ended::read(last), webhook, now).await;
    }

    fn recorder(&self, webhook: &Webhook) -> OutcomeRecorder<'_> {
        OutcomeRecorder {
            deliveries: &self.deliveries,
            announcer: &self.announcer,
            schedule: self.schedule.of_webhook(webhook.retries),
            random: &*self.random,
        }
    }
}
