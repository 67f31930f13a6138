//! EventBridge Scheduler: invokes a function at an interval, with the scheduler's event.

use std::time::Duration;

use base::{SharedClock, SharedRandom, logging};
use serde_json::{Value, json};
use tokio::time::{self, Instant, MissedTickBehavior};

use crate::{
    aws::{ACCOUNT, REGION},
    invoke::Invoker,
    settings::Pace,
};

/// Invokes one function at an interval, never concurrently.
pub struct SchedulePump {
    pub function: String,
    /// The schedule's input in the template, if any.
    pub input: Option<Value>,
    /// When the first event comes, and the interval, which is longer while the function is slow.
    pub pace: Pace,
    pub invoker: Invoker,
    pub clock: SharedClock,
    pub random: SharedRandom,
}

impl SchedulePump {
    /// Invokes until the process ends.
    pub async fn run(self) {
        // tokio refuses an interval of zero; the shortest possible one is closest to it.
        let every = self.pace.every.max(Duration::from_millis(1));
        let mut ticks = time::interval_at(Instant::now() + self.pace.first, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let event = self.input.clone().unwrap_or_else(|| self.scheduled_event());
            if let Err(error) = self.invoker.invoke(&self.function, event.to_string()).await {
                tracing::warn!("{}: {}", self.function, logging::chain(&error));
            }
        }
    }

    /// The scheduler's own event, for a schedule without an input.
    fn scheduled_event(&self) -> Value {
        json!({
            "version": "0",
            "id": base::random::uuid(self.random.as_ref()),
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": ACCOUNT,
            "time": self.clock.now().to_string(),
            "region": REGION,
            "resources": [format!("arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/{}", self.function)],
            "detail": "{}",
        })
    }
}
