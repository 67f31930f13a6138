//! The feed of a webhook that is pulled: its subscriber asks for events instead of being called.
//!
//! The dispatcher puts a delivery into the feed (`IndexGroup::Unread`) instead of sending it. A reader gets the oldest
//! deliveries, each with a lease for the visibility time that it asked for, and a receipt that names the lease. The
//! reader's answer is recorded as an attempt on condition of the lease, like the answer of an endpoint. After the lease
//! another reader gets the delivery, and the attempt without an answer is recorded as `unconfirmed`.

pub mod acknowledge;
mod find;
pub(crate) mod outcome;
pub mod read;
mod receipt;

use crate::{
    deliveries::{
        dispatch::schedule::{RetrySchedule, ScheduleSettings},
        store::{Deliveries, held::Ended, item::HeadItem},
    },
    subscriptions::{
        Webhook, Webhooks, announcing::Announcer, breaker::BreakerSettings, health_tracker::HealthTracker,
        request_limits::RequestLimits, stats::Stats,
    },
};
use base::{SharedClock, SharedRandom, Time};
use outcome::OutcomeRecorder;
use storage::Table;

/// The most deliveries that a reader gets unless it says otherwise.
const DEFAULT_LIMIT: usize = 10;
/// The most deliveries that one request reads or answers.
pub(crate) const MAX_AT_ONCE: usize = 100;
/// How many deliveries of a request are read, handed out or recorded at once.
const PARALLEL: usize = 16;

/// Reads feeds, and records the answers of their readers.
pub struct Feeds {
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

impl Feeds {
    /// The feeds of the webhooks in this table.
    pub fn new(
        table: &Table,
        (schedule, breaker): (ScheduleSettings, BreakerSettings),
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
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

    /// Puts the delivery that is held by `last`, which is final, into the feed.
    async fn wake_next(&self, last: &HeadItem, webhook: &Webhook, now: Time) {
        // The sweep announces a delivery of a webhook that is disabled or was changed meanwhile.
        let _woken = self.deliveries.wake_next_or_log(Ended::attempted(last), webhook, now).await;
    }

    fn recorder(&self) -> OutcomeRecorder<'_> {
        OutcomeRecorder {
            deliveries: &self.deliveries,
            announcer: &self.announcer,
            schedule: &self.schedule,
            random: &*self.random,
        }
    }
}
