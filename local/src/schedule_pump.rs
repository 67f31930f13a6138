//! What EventBridge Scheduler does on AWS: invokes a function at an interval, with the event that it would send.

use std::time::Duration;

use base::{clock::SharedClock, logging, random::SharedRandom};
use serde_json::{Value, json};
use tokio::time::{self, Instant, MissedTickBehavior};

use crate::{
    aws::{ACCOUNT, REGION},
    invoke::Invoker,
    settings::Pace,
};

/// Invokes one function, never twice at a time.
pub struct SchedulePump {
    /// The function.
    pub function: String,
    /// The event that the template gives it, if any.
    pub input: Option<Value>,
    /// The first event, and the interval between two beginnings, or a longer one while the function is slow.
    pub pace: Pace,
    /// Who invokes.
    pub invoker: Invoker,
    /// For the event's time.
    pub clock: SharedClock,
    /// For the event's id.
    pub random: SharedRandom,
}

impl SchedulePump {
    /// Invokes until the process ends.
    pub async fn run(self) {
        // An interval of zero is not one; the shortest that there is comes closest to what was meant.
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

    /// What the scheduler sends when a schedule says nothing else.
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
