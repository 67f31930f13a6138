//! How much a webhook that hangs costs another one, measured: for a machine that does nothing else meanwhile.

use std::{sync::Arc, time::Duration};

use crate::{
    harness::{Entity, Settings, Suite, tests},
    isolation::{Neighbours, percentile},
};

tests![on demand: the_latency_beside_a_webhook_that_hangs_is_at_most_twice_that_without];

const EVENTS: usize = 1_000;
const A_SECOND: u32 = 50;
/// One pause of the machine spoils one slice, and no more.
const SLICE: usize = 100;
/// Below this, twice as much is nothing.
const FLOOR: Duration = Duration::from_millis(20);

/// The median of the slices' 95th percentiles.
fn p95(latencies: &[Duration]) -> Duration {
    let slices: Vec<Duration> = latencies.chunks(SLICE).map(|slice| percentile(slice, 95)).collect();
    percentile(&slices, 50)
}

async fn the_latency_beside_a_webhook_that_hangs_is_at_most_twice_that_without(suite: Arc<Suite>) {
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let neighbours = Neighbours::start(Entity::new(&api, "isolation".to_owned()).await).await;
    let mut told = Vec::new();
    for (run, with_neighbour) in [(0, false), (1, false), (2, true)] {
        // The first run is for what is only done once.
        let latencies = neighbours.latencies(run, EVENTS, A_SECOND, with_neighbour).await;
        let whole = [50, 95, 99].map(|percent| percentile(&latencies, percent));
        println!(
            "neighbour {with_neighbour}: p50, p95, p99 {whole:?}, median of the slices' p95 {:?}",
            p95(&latencies)
        );
        told.push(p95(&latencies));
    }
    println!("{} requests hung", neighbours.hung());
    assert!(neighbours.hung() >= A_SECOND as usize, "the neighbour did not hang");
    let (alone, beside) = (told[1], told[2]);
    assert!(beside <= FLOOR.max(2 * alone), "{beside:?} beside it, {alone:?} without");
    bundle.cut_power().await;
}
