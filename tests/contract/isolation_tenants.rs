//! Isolation of tenants under the limits of template.yaml: regardless of one tenant's endpoints, another tenant's
//! events arrive about as soon as without that tenant.
//!
//! Each test measures both in the same run, and no other test runs meanwhile, so that conditions are equal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use contract_test::contract_test;
use futures::{StreamExt, future::join_all, join, stream};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{MissedTickBehavior, interval},
};

use crate::{
    addresses,
    harness::{Api, Behaviour, Bundle, Entity, Hook, Receiver, Settings, Suite, until},
    isolation::percentile,
};

/// Events per second of the quiet tenant, in both measurements.
const QUIET_A_SECOND: u32 = 10;
/// The duration of each measurement.
pub const MEASURED: Duration = Duration::from_secs(8);
/// The connections of a tenant that publishes as fast as it can.
const CONNECTIONS: usize = 64;
/// The quota of each tenant per minute in that test: more than the quiet tenant needs, and no more than the noisy
/// tenant publishes in about a second.
const SHARE: usize = 250;
/// Events per second of the noisy tenant, to 40 webhooks: with attempts of 14 s, three times the capacity of 50 batches
/// of 10.
pub const NOISY_A_SECOND: u32 = 3;
/// The tolerance on top of the threefold latency. The promise is one second, on an otherwise idle machine.
pub const SLACK: Duration = Duration::from_secs(3);

/// A tenant with one healthy webhook.
pub struct Quiet {
    entity: Entity,
    receiver: Receiver,
}

/// A tenant with many misbehaving webhooks.
pub struct Noisy {
    entity: Entity,
    hooks: Vec<Hook>,
}

impl Quiet {
    /// Starts the tenant with a webhook that answers at once.
    pub async fn start(api: &Api) -> Self {
        Self::with(api, Behaviour::status(200)).await
    }

    /// Starts the tenant with a webhook of this behaviour.
    pub async fn with(api: &Api, behaviour: Behaviour) -> Self {
        let receiver = Receiver::start().await;
        let url = receiver.on("/", [behaviour]);
        Self::at(api, receiver, &url).await
    }

    /// Starts the tenant with a webhook at this name, which resolves to 127.0.0.1.
    pub async fn named(api: &Api, name: &str) -> Self {
        let receiver = Receiver::start().await;
        receiver.on("/", [Behaviour::status(200)]);
        let url = format!("http://{name}:{}/", receiver.address.port());
        Self::at(api, receiver, &url).await
    }

    async fn at(api: &Api, receiver: Receiver, url: &str) -> Self {
        let entity = Entity::new(api, "quiet".to_owned()).await;
        entity.hook(url).await;
        Self { entity, receiver }
    }

    /// The time from the start of each publication to its arrival. `run` marks these events.
    pub async fn latencies(&self, run: u32, measured: Duration) -> Vec<Duration> {
        let began =
            publish(&self.entity, measured, QUIET_A_SECOND, |number| json!({ "run": run, "number": number })).await;
        let mut arrived = BTreeMap::new();
        until("every event of the quiet tenant has arrived", 2 * measured + Duration::from_secs(60), async || {
            for request in self.receiver.received("/") {
                let data = &request.json()["data"];
                if data["run"] == run {
                    arrived.entry(data["number"].as_u64().unwrap_or_default()).or_insert(request.at);
                }
            }
            (arrived.len() >= began.len()).then_some(())
        })
        .await;
        arrived.into_values().zip(began).map(|(arrived, began)| arrived.saturating_duration_since(began)).collect()
    }
}

impl Noisy {
    /// Starts the tenant with this many webhooks at this address.
    pub async fn start(api: &Api, webhooks: usize, url: &str) -> Self {
        Self::at(api, &vec![url.to_owned(); webhooks]).await
    }

    /// Starts the tenant with a webhook at each of these addresses.
    pub async fn at(api: &Api, urls: &[String]) -> Self {
        let entity = Entity::new(api, "noisy".to_owned()).await;
        let mut hooks = Vec::new();
        for url in urls {
            // Without operational events about them.
            let hook = json!({ "name": "noisy", "eventUrl": url, "eventList": ["booking.created"] });
            hooks.push(entity.hook_with(hook).await);
        }
        Self { entity, hooks }
    }

    /// Publishes `a_second` events per second, without waiting for the answers.
    pub async fn publish(&self, measured: Duration, a_second: u32) {
        publish(&self.entity, measured, a_second, |number| json!({ "number": number })).await;
    }

    /// Enables its webhooks again and again, as fast as the service answers; returns the number of calls.
    async fn enable(&self, measured: Duration) -> usize {
        /// The number of concurrent requests.
        const AT_ONCE: usize = 4;
        let ends = Instant::now() + measured;
        let hooks = self.hooks.iter().cycle().take_while(|_| Instant::now() < ends);
        let changes = stream::iter(hooks).map(|hook| {
            let change = self.entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&json!({ "enabled": true }));
            async move { change.expect(200).await }
        });
        changes.buffer_unordered(AT_ONCE).count().await
    }

    /// Publishes over this many connections as fast as the service answers, and continues after refusals. Returns the
    /// numbers of accepted and refused events.
    pub async fn publish_as_fast_as_it_can(&self, measured: Duration, connections: usize) -> (usize, usize) {
        let end = Instant::now() + measured;
        let connections = (0..connections).map(|_| {
            let entity = self.entity.clone();
            tokio::spawn(async move {
                let mut accepted = 0;
                let mut refused = 0;
                while Instant::now() < end {
                    let body = json!({ "type": "booking.created", "data": {} });
                    let answer = entity.post("/webhook/event").json(&body).send().await;
                    match answer.status {
                        202 => accepted += 1,
                        429 => refused += 1,
                        _ => panic!("neither accepted nor refused: {}", answer.exchange),
                    }
                }
                (accepted, refused)
            })
        });
        let ended = join_all(connections).await.into_iter().map(|ended| ended.expect("no panic"));
        ended.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

async fn publish(
    entity: &Entity,
    measured: Duration,
    a_second: u32,
    data: impl Fn(usize) -> serde_json::Value,
) -> Vec<Instant> {
    let mut beats = interval(Duration::from_secs(1) / a_second);
    beats.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let count = usize::try_from(measured.as_secs()).expect("seconds") * a_second as usize;
    let mut publications = Vec::new();
    for number in 0..count {
        beats.tick().await;
        let entity = entity.clone();
        let data = data(number);
        publications.push(tokio::spawn(async move {
            let began = Instant::now();
            entity.publish_of_type("booking.created", data).await;
            began
        }));
    }
    join_all(publications).await.into_iter().map(|publication| publication.expect("no panic")).collect()
}

/// Measures the quiet tenant alone, and beside the noisy tenant from its first event on.
pub async fn alone_and_beside(
    quiet: &Quiet,
    noisy: &Noisy,
    measured: Duration,
    a_second: u32,
) -> (Vec<Duration>, Vec<Duration>) {
    let (alone, beside, ()) = alone_and_beside_that(quiet, measured, noisy.publish(measured, a_second)).await;
    (alone, beside)
}

/// Measures the quiet tenant alone, and beside a tenant that publishes as fast as it can. Also returns the numbers of
/// that tenant's accepted and refused events.
pub async fn alone_and_beside_a_flood(
    quiet: &Quiet,
    noisy: &Noisy,
    measured: Duration,
) -> (Vec<Duration>, Vec<Duration>, (usize, usize)) {
    let noise = noisy.publish_as_fast_as_it_can(measured, CONNECTIONS);
    alone_and_beside_that(quiet, measured, noise).await
}

async fn alone_and_beside_that<T>(
    quiet: &Quiet,
    measured: Duration,
    noise: impl Future<Output = T>,
) -> (Vec<Duration>, Vec<Duration>, T) {
    // Warms up connections and caches before the measurements.
    quiet.latencies(0, Duration::from_secs(1)).await;
    let alone = quiet.latencies(1, measured).await;
    let (beside, outcome) = join!(quiet.latencies(2, measured), noise);
    (alone, beside, outcome)
}

/// Checks the promise: in 95 % of cases, at most three times as long as alone plus `slack`.
pub fn assert_isolated(what: &str, alone: &[Duration], beside: &[Duration], slack: Duration) {
    let percentiles = |latencies: &[Duration]| [50, 95, 99].map(|percent| percentile(latencies, percent));
    println!("{what}: p50, p95, p99 alone {:?}, beside {:?}", percentiles(alone), percentiles(beside));
    let alone = percentile(alone, 95);
    let beside = percentile(beside, 95);
    assert!(beside <= 3 * alone + slack, "{what}: {beside:?} beside, {alone:?} alone");
}

/// Tests with noisy webhooks of this behaviour: within the first second they cause more slow attempts than there are
/// invocations.
async fn holds_up_no_other_tenant(suite: Arc<Suite>, what: &str, behaviour: Behaviour) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [behaviour]);
    beside_an_endpoint(&bundle, &api, what, &url).await;
    assert!(receiver.received("/").len() >= 100, "{} came to the noisy tenant", receiver.received("/").len());
}

async fn beside_an_endpoint(bundle: &Bundle, api: &Api, what: &str, url: &str) {
    let quiet = Quiet::start(api).await;
    let noisy = Noisy::start(api, 40, url).await;
    let (alone, beside) = alone_and_beside(&quiet, &noisy, MEASURED, NOISY_A_SECOND).await;
    assert_isolated(what, &alone, &beside, SLACK);
    // At SIGTERM the function would wait for its current requests.
    bundle.cut_power().await;
}

#[contract_test(alone)]
async fn slow_answers_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "slow answers", Behaviour::status(200).after(Duration::from_secs(14))).await;
}

#[contract_test(alone)]
async fn answers_that_never_begin_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "no answers", Behaviour::hang()).await;
}

#[contract_test(alone)]
async fn bodies_that_trickle_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "trickled bodies", Behaviour::trickled_body(200, Duration::from_millis(500))).await;
}

#[contract_test(alone)]
async fn handshakes_that_never_end_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("it listens"));
    let accepting = tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            silent.push(stream);
        }
    });
    beside_an_endpoint(&bundle, &api, "handshakes that never end", &url).await;
    accepting.abort();
}

/// These attempts are quick, so that only their number matters.
#[contract_test(alone)]
async fn endless_bodies_and_redirects_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite.clone(), "endless bodies", Behaviour::endless_body(200)).await;
    holds_up_no_other_tenant(suite, "redirects", Behaviour::answer(302, &[("Location", "/")], "")).await;
}

/// The service refuses its events after about a second. That costs others nothing: none of the quiet tenant's events is
/// refused, and all accepted events of both tenants arrive.
#[contract_test(alone)]
async fn a_tenant_that_publishes_as_fast_as_it_can_holds_up_no_other(suite: Arc<Suite>) {
    let settings = Settings::default().with("PUBLISH_LIMIT", SHARE.to_string());
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 1, &url).await;
    let (alone, beside, (accepted, refused)) = alone_and_beside_a_flood(&quiet, &noisy, MEASURED).await;
    assert_isolated("as fast as it can", &alone, &beside, SLACK);
    println!("as fast as it can: {accepted} accepted, {refused} refused");
    // A new minute may have begun meanwhile.
    assert!((SHARE..=2 * SHARE).contains(&accepted) && refused > accepted, "{accepted}, {refused}");
    let arrived = until("all accepted events have arrived", Duration::from_secs(60), async || {
        let requests = receiver.received("/");
        let events: BTreeSet<String> = requests.iter().map(|request| request.header("webhook-id").to_owned()).collect();
        (events.len() >= accepted).then_some(events)
    });
    assert_eq!(arrived.await.len(), accepted, "no refused event arrived");
    assert!(bundle.stop().await.success());
}

/// By default, the system's resolver waits twice five seconds for each name.
#[contract_test(alone)]
async fn names_that_are_answered_late_or_never_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let test = "isolation_names_alone::names_that_are_answered_late_or_never_hold_up_no_other_name";
    addresses::alone(&suite, "", test).await;
}

/// Each 410 disables its webhook, and each change enables it again.
#[contract_test(alone)]
async fn gone_webhooks_enabled_again_and_again_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(410)]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 40, &url).await;
    // Warms up connections and caches before the measurements.
    quiet.latencies(0, Duration::from_secs(1)).await;
    let alone = quiet.latencies(1, MEASURED).await;
    let (beside, (), enabled) =
        join!(quiet.latencies(2, MEASURED), noisy.publish(MEASURED, NOISY_A_SECOND), noisy.enable(MEASURED));
    assert_isolated("endpoints that are gone", &alone, &beside, SLACK);
    println!("enabled {enabled} times, {} answers of 410", receiver.received("/").len());
    assert!(receiver.received("/").len() >= 100, "{} came to the noisy tenant", receiver.received("/").len());
    bundle.cut_power().await;
}

/// The noisy tenant has more slow attempts than permits in the slow lane.
#[contract_test(alone)]
async fn a_slow_webhook_keeps_its_share_of_the_slow_lane(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200).after(Duration::from_secs(14))]);
    let slow = Quiet::with(&api, Behaviour::status(200).after(Duration::from_millis(1_500))).await;
    let noisy = Noisy::start(&api, 40, &url).await;
    let (alone, beside) = alone_and_beside(&slow, &noisy, 2 * MEASURED, 2 * NOISY_A_SECOND).await;
    assert_isolated("a slow webhook", &alone, &beside, SLACK);
    bundle.cut_power().await;
}
