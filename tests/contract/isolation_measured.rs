//! Measures how much hanging and slow webhooks delay others. This needs an otherwise idle machine.

use std::{sync::Arc, time::Duration};

use crate::{
    harness::{Behaviour, Entity, Receiver, Settings, Suite},
    isolation::{Neighbours, percentile},
    isolation_tenants::{Noisy, Quiet, alone_and_beside, alone_and_beside_a_flood, assert_isolated},
};
use contract_test::contract_test;

const EVENTS: usize = 1_000;
const A_SECOND: u32 = 50;
/// The size of a slice, chosen so that a brief stall affects only one slice.
const SLICE: usize = 100;
/// Latencies below this value are not compared.
const FLOOR: Duration = Duration::from_millis(20);

/// The median of the slices' 95th percentiles.
fn p95(latencies: &[Duration]) -> Duration {
    let slices: Vec<Duration> = latencies.chunks(SLICE).map(|slice| percentile(slice, 95)).collect();
    percentile(&slices, 50)
}

#[contract_test(on_demand)]
async fn the_latency_beside_a_webhook_that_hangs_is_at_most_twice_that_without(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let neighbours = Neighbours::start(Entity::new(&api, "isolation".to_owned()).await).await;
    let mut p95s = Vec::new();
    for (run, with_neighbour) in [(0, false), (1, false), (2, true)] {
        // The first run warms up connections and caches.
        let latencies = neighbours.latencies(run, EVENTS, A_SECOND, with_neighbour).await;
        let whole = [50, 95, 99].map(|percent| percentile(&latencies, percent));
        println!(
            "neighbour {with_neighbour}: p50, p95, p99 {whole:?}, median of the slices' p95 {:?}",
            p95(&latencies)
        );
        p95s.push(p95(&latencies));
    }
    println!("{} requests hung", neighbours.hung());
    assert!(neighbours.hung() >= A_SECOND as usize, "the neighbour did not hang");
    let alone = p95s[1];
    let beside = p95s[2];
    assert!(beside <= FLOOR.max(2 * alone), "{beside:?} beside it, {alone:?} without");
    bundle.cut_power().await;
}

/// Long enough for the noisy tenant's backlog to delay others, if it can.
const AT_LENGTH: Duration = Duration::from_secs(60);

/// 40 webhooks respond after 14 s, and each receives 20 events a second.
#[contract_test(on_demand)]
async fn the_latency_beside_800_slow_deliveries_a_second_of_another_tenant(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200).after(Duration::from_secs(14))]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 40, &url).await;
    let (alone, beside) = alone_and_beside(&quiet, &noisy, AT_LENGTH, 20).await;
    println!("{} attempts at the slow webhooks", receiver.received("/").len());
    assert_isolated("800 slow deliveries a second", &alone, &beside, Duration::from_secs(1));
    bundle.cut_power().await;
}

/// The noisy tenant has two fast webhooks and publishes more events than the machine can process. A machine with two
/// cores publishes a few hundred events a second alongside the tests, so a quota of 600 a minute leaves room for
/// others. The quiet tenant needs 410 events a minute. For a few seconds of each minute, until the quota is used up,
/// the machine is as busy as without a limit, so the test compares medians.
#[contract_test(on_demand)]
async fn the_latency_beside_a_tenant_that_publishes_as_fast_as_it_can(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("PUBLISH_LIMIT", "600")).await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let quiet = Quiet::start(&api).await;
    let noisy = Noisy::start(&api, 2, &url).await;
    let (alone, beside, (accepted, refused)) = alone_and_beside_a_flood(&quiet, &noisy, Duration::from_secs(20)).await;
    let attempts = receiver.received("/").len();
    println!("{accepted} events of the other tenant accepted, {refused} refused, {attempts} attempts at its webhooks");
    assert_isolated("as fast as it can", &alone, &beside, Duration::from_secs(3));
    let [alone, beside] = [alone, beside].map(|latencies| percentile(&latencies, 50));
    assert!(beside <= 3 * alone + Duration::from_millis(500), "the median: {beside:?} beside, {alone:?} alone");
    bundle.cut_power().await;
}
