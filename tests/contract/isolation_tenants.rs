//! Isolation of tenants within the limits in template.yaml: regardless of one tenant's endpoints, another tenant's
//! events arrive without waiting for that tenant's attempts.
//!
//! The latencies themselves depend on the machine; `isolation_measured` measures them on demand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use contract_test::contract_test;
use futures::{StreamExt, future::join_all, join, stream};
use serde_json::json;
use tokio::{
    net::TcpListener,
    select,
    time::{MissedTickBehavior, interval},
};

use crate::{
    addresses,
    harness::{Api, Behaviour, Entity, Hook, LONG, Receiver, Settings, Suite, now, until},
    isolation::percentile,
};

/// The quiet tenant's events per second in both measurements.
const QUIET_A_SECOND: u32 = 10;
/// The number of connections used by a tenant that publishes as fast as it can.
const CONNECTIONS: usize = 64;
/// Each tenant's quota per minute in that test: more than the quiet tenant needs, but no more than the noisy tenant
/// publishes in about a second.
const SHARE: usize = 250;
/// The noisy tenant's events in a round: with its 40 webhooks, they cause more attempts than several invocations have
/// permits for.
const BURST: usize = 16;
/// The number of requests to the noisy tenant after which the quiet tenant starts publishing.
const UNDER_WAY: usize = 100;
/// An event that has to wait for one of the noisy tenant's slow attempts, which take at least 14 s, arrives later than
/// this.
const HELD_UP: Duration = Duration::from_secs(10);
/// A machine that stalls for seconds invalidates a round. A missing limit would make every round fail.
const ROUNDS: u32 = 5;

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
    /// Starts the tenant with a webhook that responds immediately.
    pub async fn start(api: &Api) -> Self {
        Self::with(api, Behaviour::status(200)).await
    }

    /// Starts the tenant with a webhook that has this behaviour.
    pub async fn with(api: &Api, behaviour: Behaviour) -> Self {
        let receiver = Receiver::start().await;
        let url = receiver.on("/", [behaviour]);
        Self::at(api, receiver, &url).await
    }

    /// Starts the tenant with a webhook at this host name, which resolves to 127.0.0.1.
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

    /// The time from the start of each publish request to the event's arrival. `run` marks these events.
    pub async fn latencies(&self, run: u32, measured: Duration) -> Vec<Duration> {
        let began =
            publish(&self.entity, measured, QUIET_A_SECOND, |number| json!({ "run": run, "number": number })).await;
        let mut arrived = BTreeMap::new();
        until("every event of the quiet tenant has arrived", 2 * measured + LONG, async || {
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
            // The webhook subscribes to no operational events, not even about itself.
            let hook = json!({ "name": "noisy", "eventUrl": url, "eventList": ["booking.created"] });
            hooks.push(entity.hook_with(hook).await);
        }
        Self { entity, hooks }
    }

    /// Publishes `a_second` events per second, without waiting for responses.
    pub async fn publish(&self, measured: Duration, a_second: u32) {
        publish(&self.entity, measured, a_second, |number| json!({ "number": number })).await;
    }

    /// Publishes a burst of events.
    pub async fn burst(&self) {
        join_all((0..BURST).map(|number| self.entity.publish_of_type("booking.created", json!({ "number": number }))))
            .await;
    }

    /// Repeatedly enables the tenant's webhooks, as fast as the service responds.
    async fn enable_without_end(&self) {
        /// The number of concurrent requests.
        const AT_ONCE: usize = 4;
        let changes = stream::iter(self.hooks.iter().cycle()).map(|hook| {
            let change = self.entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&json!({ "enabled": true }));
            async move { change.expect(200).await }
        });
        changes.buffer_unordered(AT_ONCE).for_each(async |_| ()).await;
    }

    /// Publishes over many connections until the service has refused this many events on each of them. Returns the
    /// number of accepted events, and of those that were published again after a 503.
    async fn publish_until_refused(&self, refusals: usize) -> (usize, usize) {
        let connections = (0..CONNECTIONS).map(async |_| {
            let mut accepted = 0;
            let mut refused = 0;
            let mut repeated = 0;
            while refused < refusals {
                let body = json!({ "type": "booking.created", "data": {} });
                let answer = self.entity.post("/webhook/event").once().json(&body).answered().await;
                repeated += usize::from(answer.is_repetition);
                match answer.status {
                    202 => accepted += 1,
                    429 => refused += 1,
                    _ => panic!("neither accepted nor refused: {}", answer.exchange),
                }
            }
            (accepted, repeated)
        });
        let all = join_all(connections).await.into_iter();
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Publishes over this many connections as fast as the service responds, and continues after refusals. Returns how
    /// many events were accepted, and how many were refused.
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

/// Measures the quiet tenant alone, then alongside the noisy tenant from that tenant's first event on.
pub async fn alone_and_beside(
    quiet: &Quiet,
    noisy: &Noisy,
    measured: Duration,
    a_second: u32,
) -> (Vec<Duration>, Vec<Duration>) {
    let (alone, beside, ()) = alone_and_beside_that(quiet, measured, noisy.publish(measured, a_second)).await;
    (alone, beside)
}

/// Measures the quiet tenant alone, then alongside a tenant that publishes as fast as it can. Also returns how many of
/// that tenant's events were accepted, and how many refused.
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
    // Warm up connections and caches before the measurements.
    quiet.latencies(0, Duration::from_secs(1)).await;
    let alone = quiet.latencies(1, measured).await;
    let (beside, outcome) = join!(quiet.latencies(2, measured), noise);
    (alone, beside, outcome)
}

/// Checks the promise: 95 % of events take at most three times as long as without the noisy tenant, plus `slack`.
pub fn assert_isolated(what: &str, alone: &[Duration], beside: &[Duration], slack: Duration) {
    let percentiles = |latencies: &[Duration]| [50, 95, 99].map(|percent| percentile(latencies, percent));
    println!("{what}: p50, p95, p99 alone {:?}, beside {:?}", percentiles(alone), percentiles(beside));
    let alone = percentile(alone, 95);
    let beside = percentile(beside, 95);
    assert!(beside <= 3 * alone + slack, "{what}: {beside:?} beside, {alone:?} alone");
}

/// Checks that the quiet tenant's events do not wait for attempts of the noisy tenant, which `noise` starts in each
/// round.
pub async fn assert_not_held_up<T>(what: &str, quiet: &Quiet, mut noise: impl AsyncFnMut(u32) -> T) {
    let mut slowest = Vec::new();
    for round in 0..ROUNDS {
        let _noise = noise(round).await;
        let latencies = quiet.latencies(round, Duration::from_secs(1)).await;
        let last = percentile(&latencies, 100);
        slowest.push(last);
        if last < HELD_UP {
            return;
        }
    }
    panic!("{what}: the slowest event of each round took {slowest:?}");
}

/// Tests noisy webhooks that have this behaviour.
async fn holds_up_no_other_tenant(suite: Arc<Suite>, what: &str, behaviour: Behaviour) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [behaviour]);
    let quiet = Quiet::start(&api).await;
    beside_an_endpoint(&api, what, &quiet, &url, || receiver.received("/").len()).await;
    // On SIGTERM, the function would wait for its requests in progress.
    bundle.cut_power().await;
}

/// `requests` is the number of requests to the noisy tenant's endpoint so far.
async fn beside_an_endpoint(api: &Api, what: &str, quiet: &Quiet, url: &str, requests: impl Fn() -> usize) {
    assert_not_held_up(what, quiet, async |_| {
        // Use a different tenant in each round: after 20 attempts without a response, its webhooks are paused.
        let noisy = Noisy::start(api, 40, url).await;
        let before = requests();
        noisy.burst().await;
        until("attempts of the noisy tenant are under way", LONG, async || {
            (requests() >= before + UNDER_WAY).then_some(())
        })
        .await;
        noisy
    })
    .await;
}

#[contract_test]
async fn slow_answers_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "slow answers", Behaviour::status(200).after(Duration::from_secs(14))).await;
}

#[contract_test]
async fn answers_that_never_begin_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "no answers", Behaviour::hang()).await;
}

#[contract_test]
async fn bodies_that_trickle_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite, "trickled bodies", Behaviour::trickled_body(200, Duration::from_millis(500))).await;
}

#[contract_test]
async fn handshakes_that_never_end_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("it listens"));
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    let accepting = tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            silent.push(stream);
            accepted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let quiet = Quiet::start(&api).await;
    let what = "handshakes that never end";
    beside_an_endpoint(&api, what, &quiet, &url, || connections.load(Ordering::Relaxed)).await;
    accepting.abort();
    bundle.cut_power().await;
}

/// These attempts are fast, so only their number matters.
#[contract_test]
async fn endless_bodies_and_redirects_hold_up_no_other_tenant(suite: Arc<Suite>) {
    holds_up_no_other_tenant(suite.clone(), "endless bodies", Behaviour::endless_body(200)).await;
    holds_up_no_other_tenant(suite, "redirects", Behaviour::answer(302, &[("Location", "/")], "")).await;
}

/// The service starts refusing the noisy tenant's events after about a second. This does not affect others: none of the
/// quiet tenant's events are refused, and all accepted events of both tenants arrive.
#[contract_test]
async fn a_tenant_that_publishes_as_fast_as_it_can_holds_up_no_other(suite: Arc<Suite>) {
    let settings = Settings::default().with("PUBLISH_LIMIT", SHARE.to_string());
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 1, &url).await;
    let began = now() / 60;
    let (_, (accepted, repeated)) = join!(quiet.latencies(0, Duration::from_secs(2)), noisy.publish_until_refused(10));
    // Each minute has its own quota.
    let minutes = usize::try_from(now() / 60 - began + 1).expect("time passes");
    assert!(accepted <= minutes * SHARE, "{accepted} accepted in {minutes} minutes");
    // An event that got a 503 may count, although its repetition was refused.
    assert!(accepted >= SHARE || repeated > 0, "{accepted} accepted");
    let arrived = until("all accepted events have arrived", LONG, async || {
        let requests = receiver.received("/");
        let events: BTreeSet<String> = requests.iter().map(|request| request.header("webhook-id").to_owned()).collect();
        (events.len() >= accepted).then_some(events)
    });
    let arrived = arrived.await.len();
    assert!(
        arrived == accepted || repeated > 0 && arrived <= accepted + repeated,
        "a refused event arrived: {arrived}"
    );
    assert!(bundle.stop().await.success());
}

/// By default, the system's resolver tries each name twice, for five seconds each time.
#[contract_test]
async fn names_that_are_answered_late_or_never_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let test = "isolation_names_alone::names_that_are_answered_late_or_never_hold_up_no_other_name";
    addresses::alone(&suite, "", test).await;
}

/// Each 410 disables its webhook, and each change enables it again.
#[contract_test]
async fn gone_webhooks_enabled_again_and_again_hold_up_no_other_tenant(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(410)]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 40, &url).await;
    let rounds = assert_not_held_up("endpoints that are gone", &quiet, async |_| {
        let before = receiver.received("/").len();
        noisy.burst().await;
        until("requests to endpoints that are gone", LONG, async || {
            (receiver.received("/").len() >= before + UNDER_WAY).then_some(())
        })
        .await;
    });
    select! {
        () = rounds => {}
        () = noisy.enable_without_end() => unreachable!("it has no end"),
    }
    bundle.cut_power().await;
}

/// The noisy tenant has more slow attempts than the slow lane has permits.
#[contract_test]
async fn a_slow_webhook_keeps_its_share_of_the_slow_lane(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200).after(Duration::from_secs(14))]);
    let slow = Quiet::with(&api, Behaviour::status(200).after(Duration::from_millis(1_500))).await;
    beside_an_endpoint(&api, "a slow webhook", &slow, &url, || receiver.received("/").len()).await;
    bundle.cut_power().await;
}
