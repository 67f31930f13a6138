//! Publishing and delivering: how many a second, how soon, and at whose expense.
//!
//! Everything shares the machine: the functions as they are deployed, the stand-ins for AWS, the publishers and the
//! endpoint.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    counting_proxy::{Counted, CountingProxy},
    endpoint::Endpoint,
    load::Publisher,
    report,
    run::{CALM, ENDPOINTS, FULL, Load, MOST_EVENTS, Run, SIZE, WARM_UP},
    stand::{Setup, Stand},
    usage::{OURS, Usage, resident},
};

/// The longest that publications at full load go on.
const LIMIT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(10);
/// How many deliveries are counted of each kind.
const COUNTED: usize = 100;
const COUNTED_AT_ONCE: usize = 2_000;
/// How long what follows an arrival may take to be written.
const SETTLING: Duration = Duration::from_secs(1);
/// Three retries, as soon as the contract allows.
const RETRIES: &str = "0s,1s,1s,1s";

/// A run, and what each process computed meanwhile.
pub struct Measured {
    pub run: Run,
    pub usage: Usage,
}

/// The requests to the table for some deliveries.
pub struct Requests {
    /// How they differ from the others.
    pub title: String,
    pub deliveries: usize,
    pub counted: Counted,
}

/// Measures and prints it all.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    measure_speed().await?;
    measure_requests().await
}

async fn measure_speed() -> Result<(), Box<dyn Error>> {
    let stand = Stand::start(Setup { release: &OURS, ..Setup::default() }).await?;
    let bench = Bench::start(&stand).await?;
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
    let before = Usage::of(stand.bundle)?;
    sleep(IDLE).await;
    let idle = Usage::of(stand.bundle)?.since(&before);
    report::speed(&calm, &full);
    report::usage(&full, &idle, IDLE, &resident(stand.bundle)?);
    Ok(())
}

async fn measure_requests() -> Result<(), Box<dyn Error>> {
    let proxy = CountingProxy::start().await?;
    let stand = Stand::start(Setup {
        release: &OURS,
        // Only what deliveries cause is to be counted, and no webhook rests because others of its deliveries fail.
        variables: &[("RETRY_SCHEDULE", RETRIES), ("SWEEP_INTERVAL", "1h"), ("BREAKER_THRESHOLD", "1000000")],
        proxy: Some(&proxy),
        ..Setup::default()
    })
    .await?;
    let bench = Bench::start(&stand).await?;
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

/// Webhooks, and their endpoint.
struct Bench<'a> {
    stand: &'a Stand,
    endpoint: Endpoint,
    next: Arc<AtomicUsize>,
}

impl<'a> Bench<'a> {
    /// A managing entity for each number of webhooks.
    async fn start(stand: &'a Stand) -> Result<Self, Box<dyn Error>> {
        let most = ENDPOINTS.into_iter().max().unwrap_or_default();
        let endpoint = Endpoint::start(most, ENDPOINTS.len() * MOST_EVENTS).await?;
        for webhooks in ENDPOINTS {
            for path in 0..webhooks {
                stand.hook(&entity(webhooks), &format!("{}/{path}", endpoint.address)).await?;
            }
        }
        Ok(Self { stand, endpoint, next: Arc::default() })
    }

    async fn run(&self, endpoints: usize, load: Load) -> Result<Measured, Box<dyn Error>> {
        self.run_with(endpoints, load, SIZE).await
    }

    async fn run_with(&self, endpoints: usize, load: Load, size: usize) -> Result<Measured, Box<dyn Error>> {
        let publisher = Publisher::new(self.stand.target(&entity(endpoints)), size, &self.next);
        let before = Usage::of(self.stand.bundle)?;
        let run = Run::of(&publisher, &self.endpoint, endpoints, load).await?;
        Ok(Measured { run, usage: Usage::of(self.stand.bundle)?.since(&before) })
    }
}

/// The managing entity with so many webhooks.
fn entity(webhooks: usize) -> String {
    format!("bench-{webhooks}")
}
