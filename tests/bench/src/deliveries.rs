//! Throughput, latency and CPU time of publishing and delivering.
//!
//! The deployed functions, the AWS emulators, the publishers and the endpoint share one machine.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    bundle::{Bundle, BundleSettings},
    counting_proxy::{Counted, CountingProxy},
    endpoint::Endpoint,
    load::Publisher,
    report,
    run::{CALM, ENDPOINTS, FULL, Load, MOST_EVENTS, Run, SIZE, WARM_UP},
    stages::Stages,
    usage::{OURS, Usage, resident},
};

/// The maximum duration of publishing at full load.
const LIMIT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(10);
/// The number of deliveries of each kind to count.
const COUNTED: usize = 100;
const COUNTED_AT_ONCE: usize = 2_000;
/// The time allowed for the writes that follow an arrival.
const SETTLING: Duration = Duration::from_secs(1);
/// The load for runs whose stages are measured.
const STAGED: Load = Load::Full(1_000, LIMIT);
/// Three retries, each as early as the contract allows.
const RETRIES: &str = "0s,1s,1s,1s";

/// A run, and the processor time that each process used during it.
pub struct Measured {
    pub run: Run,
    pub usage: Usage,
}

/// A run's stages, and a second run without the stages' log lines, which provides the functions' processor time.
pub struct Staged<'a> {
    pub deliveries: usize,
    pub stages: Stages,
    pub whole: &'a Measured,
}

/// The requests to the table for a given number of deliveries.
pub struct Requests {
    /// The kind of delivery.
    pub title: String,
    pub deliveries: usize,
    pub counted: Counted,
}

/// Measures and prints this part.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let [calm, full] = measure_speed().await?;
    measure_stages(&calm, &full).await?;
    measure_requests().await
}

/// Returns the runs at the calm rate, and those at full load.
async fn measure_speed() -> Result<[Vec<Measured>; 2], Box<dyn Error>> {
    let bundle = Bundle::start(BundleSettings { release: &OURS, ..BundleSettings::default() }).await?;
    let bench = Bench::start(&bundle).await?;
    bench.run(1, WARM_UP).await?;
    let mut calm = Vec::new();
    for endpoints in ENDPOINTS {
        calm.push(bench.run(endpoints, CALM).await?);
    }
    let mut full = Vec::new();
    for endpoints in ENDPOINTS {
        full.push(bench.run(endpoints, FULL).await?);
    }
    sleep(3 * SETTLING).await;
    let before = Usage::of(bundle.process_id)?;
    sleep(IDLE).await;
    let idle = Usage::of(bundle.process_id)?.since(&before);
    report::speed(&calm, &full);
    report::usage(&full, &idle, IDLE, &resident(bundle.process_id)?);
    Ok([calm, full])
}

/// Measures the stages of the functions that log them. Logging takes time too, so the processor time of whole functions
/// comes from runs without these log lines.
async fn measure_stages(calm: &[Measured], full: &[Measured]) -> Result<(), Box<dyn Error>> {
    let variables = &[("LOG_LEVEL", "trace")];
    let bundle = Bundle::start(BundleSettings { release: &OURS, variables, ..BundleSettings::default() }).await?;
    let bench = Bench::start(&bundle).await?;
    bench.run(1, WARM_UP).await?;
    let mut staged = Vec::new();
    for (load, whole) in [(CALM, calm), (STAGED, full)] {
        for (endpoints, whole) in ENDPOINTS.into_iter().zip(whole) {
            sleep(SETTLING).await;
            let before = Stages::of(&bundle.logs())?;
            let run = bench.run(endpoints, load).await?.run;
            sleep(SETTLING).await;
            let stages = Stages::of(&bundle.logs())?.since(&before);
            staged.push(Staged { deliveries: run.deliveries(), stages, whole });
        }
    }
    report::stages(&staged);
    Ok(())
}

async fn measure_requests() -> Result<(), Box<dyn Error>> {
    let proxy = CountingProxy::start().await?;
    let bundle = Bundle::start(BundleSettings {
        release: &OURS,
        // These settings count only requests for deliveries, and prevent breakers from pausing webhooks whose
        // deliveries fail.
        variables: &[("RETRY_SCHEDULE", RETRIES), ("SWEEP_INTERVAL", "1h"), ("BREAKER_THRESHOLD", "1000000")],
        proxy: Some(&proxy),
        ..BundleSettings::default()
    })
    .await?;
    let bench = Bench::start(&bundle).await?;
    bench.run(1, WARM_UP).await?;
    sleep(SETTLING).await;
    proxy.take();
    let mut counted = Vec::new();
    for (size, name) in [(1_000, "1 KB"), (10_000, "10 KB")] {
        for failures in [0, 3] {
            bench.endpoint.fail(failures);
            bench.run_with(1, Load::Calm(COUNTED), size).await?;
            sleep(SETTLING).await;
            let title = format!("{name}, {failures} retries");
            counted.push(Requests { title, deliveries: COUNTED, counted: proxy.take() });
        }
    }
    bench.endpoint.fail(0);
    bench.run_with(1, Load::Full(COUNTED_AT_ONCE, LIMIT), 1_000).await?;
    sleep(SETTLING).await;
    let title = "1 KB, 0 retries, full load".to_owned();
    counted.push(Requests { title, deliveries: COUNTED_AT_ONCE, counted: proxy.take() });
    report::requests(&counted);
    Ok(())
}

/// The webhooks, and their endpoint.
struct Bench<'a> {
    bundle: &'a Bundle,
    endpoint: Endpoint,
    next: Arc<AtomicUsize>,
}

impl<'a> Bench<'a> {
    /// Creates a managing entity for each number of webhooks.
    async fn start(bundle: &'a Bundle) -> Result<Self, Box<dyn Error>> {
        let most = ENDPOINTS.into_iter().max().unwrap_or_default();
        let endpoint = Endpoint::start(most, ENDPOINTS.len() * MOST_EVENTS).await?;
        for webhooks in ENDPOINTS {
            for path in 0..webhooks {
                bundle.hook(&entity(webhooks), &format!("{}/{path}", endpoint.address)).await?;
            }
        }
        Ok(Self { bundle, endpoint, next: Arc::default() })
    }

    async fn run(&self, endpoints: usize, load: Load) -> Result<Measured, Box<dyn Error>> {
        self.run_with(endpoints, load, SIZE).await
    }

    async fn run_with(&self, endpoints: usize, load: Load, size: usize) -> Result<Measured, Box<dyn Error>> {
        let publisher = Publisher::new(self.bundle.target(&entity(endpoints)), size, &self.next);
        let before = Usage::of(self.bundle.process_id)?;
        let run = Run::of(&publisher, &self.endpoint, endpoints, load).await?;
        Ok(Measured { run, usage: Usage::of(self.bundle.process_id)?.since(&before) })
    }
}

fn entity(webhooks: usize) -> String {
    format!("bench-{webhooks}")
}
