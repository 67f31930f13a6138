//! Isolation: a webhook that hangs until the timeout does not delay other webhooks.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use contract_test::contract_test;
use futures::{future::join_all, join};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::harness::{Behaviour, Entity, Receiver, Settings, Suite};

/// The types of the two webhooks.
const HEALTHY: &str = "booking.created";
const HANGING: &str = "booking.cancelled";

/// An entity with a healthy webhook and a hanging one.
pub struct Neighbours {
    entity: Entity,
    receiver: Receiver,
}

impl Neighbours {
    /// Creates both webhooks.
    pub async fn start(entity: Entity) -> Self {
        let receiver = Receiver::start().await;
        for (path, kind, behaviour) in
            [("/healthy", HEALTHY, Behaviour::status(200)), ("/hanging", HANGING, Behaviour::hang())]
        {
            let url = receiver.on(path, [behaviour]);
            entity.hook_with(json!({ "name": kind, "eventUrl": url, "eventList": [kind] })).await;
        }
        Self { entity, receiver }
    }

    /// Publishes `count` events of a type, `a_second` per second, without waiting for the answers. Returns the start of
    /// each publication, in order. `run` marks these events.
    async fn publish(&self, kind: &str, run: u32, count: usize, a_second: u32) -> Vec<Instant> {
        let mut beats = interval(Duration::from_secs(1) / a_second);
        beats.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut publications = Vec::new();
        for number in 0..count {
            beats.tick().await;
            let entity = self.entity.clone();
            let kind = kind.to_owned();
            let data = json!({ "run": run, "number": number });
            publications.push(tokio::spawn(async move {
                let began = Instant::now();
                entity.publish_of_type(&kind, data).await;
                began
            }));
        }
        let publications = join_all(publications).await;
        publications.into_iter().map(|publication| publication.expect("no panic")).collect()
    }

    /// The times from publication to arrival at the healthy webhook, optionally with equal load for the hanging one.
    pub async fn latencies(&self, run: u32, count: usize, a_second: u32, with_neighbour: bool) -> Vec<Duration> {
        let neighbour = async {
            if with_neighbour {
                self.publish(HANGING, run, count, a_second).await;
            }
        };
        let (began, ()) = join!(self.publish(HEALTHY, run, count, a_second), neighbour);
        let before = self.receiver.received("/healthy").len();
        let expected = (run as usize + 1) * count;
        if before < expected {
            self.receiver.until("/healthy", expected).await;
        }
        let mut arrived = BTreeMap::new();
        for request in self.receiver.received("/healthy") {
            let data = &request.json()["data"];
            if data["run"] == run {
                arrived.entry(data["number"].as_u64().unwrap_or_default()).or_insert(request.at);
            }
        }
        assert_eq!(arrived.len(), count, "every event arrives");
        arrived.into_values().zip(began).map(|(arrived, began)| arrived.saturating_duration_since(began)).collect()
    }

    /// The number of requests to the hanging webhook so far.
    pub fn hung(&self) -> usize {
        self.receiver.received("/hanging").len()
    }
}

/// A percentile of the latencies.
pub fn percentile(latencies: &[Duration], percent: usize) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// A machine that stalls for seconds delays some of the events. Deliveries that need a hanging request's permit wait for up
/// to 15 s, and these are most of them.
#[contract_test]
async fn a_webhook_that_hangs_holds_up_no_other(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let neighbours = Neighbours::start(Entity::new(&api, "isolation".to_owned()).await).await;
    let latencies = neighbours.latencies(0, 200, 20, true).await;
    let (median, p95) = (percentile(&latencies, 50), percentile(&latencies, 95));
    println!("beside a webhook with {} hanging requests: median {median:?}, p95 {p95:?}", neighbours.hung());
    assert!(neighbours.hung() > 0);
    assert!(median < Duration::from_secs(1) && p95 < Duration::from_secs(8), "{latencies:?}");
    // At SIGTERM the function would wait for its hanging requests.
    bundle.cut_power().await;
}
