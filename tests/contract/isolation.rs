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

/// An entity with one healthy and one hanging webhook.
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

    /// Publishes `count` events of a type, `a_second` per second, without waiting for responses. Returns when each
    /// request started, in order. `run` marks these events.
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

    /// The times from publishing to arrival at the healthy webhook, optionally with an equal load on the hanging one.
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

/// A busy machine may invalidate a round. In each round, deliveries that need a hanging request's permit wait up to 15
/// s. `isolation_measured` compares the latencies with and without the hanging webhook.
#[contract_test]
async fn a_webhook_that_hangs_holds_up_no_other(suite: Arc<Suite>) {
    const HELD_UP: Duration = Duration::from_secs(10);
    const ROUNDS: usize = 5;
    const HEALTHY_EVENTS: usize = 20;
    /// Several times the number of attempts that one invocation may have in progress for a webhook.
    const HANGING_EVENTS: usize = 100;
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let mut slowest: Vec<Duration> = Vec::new();
    while slowest.iter().all(|slowest| *slowest >= HELD_UP) {
        assert!(slowest.len() < ROUNDS, "beside a webhook that hangs, the slowest event took {slowest:?}");
        // A hanging webhook is paused after 20 attempts without a response.
        let neighbours = Neighbours::start(Entity::new(&api, format!("isolation-{}", slowest.len())).await).await;
        let entity = &neighbours.entity;
        let publish = |kind: &'static str, count: usize| {
            join_all((0..count).map(move |_| entity.publish_of_type(kind, json!({}))))
        };
        publish(HANGING, HANGING_EVENTS).await;
        neighbours.receiver.until("/hanging", 20).await;
        let began = Instant::now();
        publish(HEALTHY, HEALTHY_EVENTS).await;
        let arrived = neighbours.receiver.until("/healthy", HEALTHY_EVENTS).await;
        let last = arrived.iter().map(|request| request.at).max().expect("all arrived");
        slowest.push(last.saturating_duration_since(began));
    }
    // On SIGTERM, the function would wait for its hanging requests.
    bundle.cut_power().await;
}
