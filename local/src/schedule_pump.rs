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

/// Invokes one function at an interval, with no overlap between invocations.
pub struct SchedulePump {
    pub function: String,
    /// The schedule's input from the template, if any.
    pub input: Option<Value>,
    /// When the first event is sent, and the interval between events, which grows while the function is slow.
    pub pace: Pace,
    pub invoker: Invoker,
    pub clock: SharedClock,
    pub random: SharedRandom,
}

impl SchedulePump {
    /// Invokes the function at each interval until the process ends.
    pub async fn run(self) {
        // tokio refuses a zero interval; this is the closest possible one.
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

    /// The scheduler's default event, for a schedule without an input.
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
