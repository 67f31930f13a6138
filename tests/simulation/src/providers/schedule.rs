//! The schedule on which refresh-connections runs.

use std::{sync::Arc, time::Duration};

use base::{Time, pause};

use crate::{cloud::Cloud, sandbox::Function};

/// The interval set in template.yaml.
const INTERVAL: Duration = Duration::from_secs(60);

impl Cloud {
    /// Refreshes in every minute when a connection is due. Lambda does not retry this schedule's failed invocations.
    pub async fn refresh_on_schedule(self: Arc<Self>) {
        loop {
            let minute = INTERVAL.as_millis() as i64;
            let now = self.world.now();
            let beat = Time::from_millis((now.as_millis() / minute + 1) * minute);
            pause(beat.since(now)).await;
            if self.next_refresh().is_some_and(|due| due <= beat) {
                let cloud = Arc::clone(&self);
                tokio::spawn(async move { cloud.refresh().await });
            }
        }
    }

    async fn refresh(self: &Arc<Self>) {
        let work = |bundle: Arc<crate::bundle::Bundle>| async move { bundle.refresher().run().await };
        if let Some(Err(error)) = self.invoke(Function::RefreshConnections, work).await {
            self.world.note(|| format!("refresh-connections failed: {}", base::logging::chain(&error)));
        }
    }
}
