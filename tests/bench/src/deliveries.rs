//! Publishing and delivering: how many a second, how soon, and at whose expense.
//!
//! Everything shares the machine: the functions as they are deployed, the stand-ins for AWS, the publishers and the
//! endpoint.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    counting_proxy::{Counted, CountingProxy},
    emulators,
    endpoint::Endpoint,
    load::{Published, Publisher},
    report,
    stand::{Setup, Stand},
    times::Times,
    usage::{OURS, Usage, resident},
};

/// The load.
const MESSAGES: usize = 20_000;
const LIMIT: Duration = Duration::from_secs(30);
const SIZE: usize = 500;
/// A load that leaves time for everything.
const CALM_RATE: u32 = 50;
const CALM_MESSAGES: usize = 500;
const WARM_UP: usize = 300;
const IDLE: Duration = Duration::from_secs(10);
/// How many deliveries are counted of each kind.
const COUNTED: usize = 100;
const COUNTED_AT_ONCE: usize = 2_000;
/// How long what follows an arrival may take to be written.
const SETTLING: Duration = Duration::from_secs(1);
/// Three retries, as soon as the contract allows.
const RETRIES: &str = "0s,1s,1s,1s";

/// The figures of one run.
pub struct Run {
    /// Webhooks that every event went to.
    pub endpoints: usize,
    pub published: usize,
    /// From the first publication to the last acknowledgement.
    pub publishing: Duration,
    /// From the first publication to the last arrival.
    pub delivering: Duration,
    /// Requests that came more than once.
    pub duplicates: u64,
    /// From the publication to the acknowledgement.
    pub acknowledgement: Times,
    /// From the publication to the arrival.
    pub arrival: Times,
    pub usage: Usage,
}

impl Run {
    /// Events times webhooks.
    pub fn deliveries(&self) -> usize {
        self.published * self.endpoints
    }
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
    let emulators = emulators::measure(&stand).await;
    report::emulators(&emulators.map_err(|error| error.to_string())?);

    let bench = Bench::start(&stand).await?;
    bench.run(1, Load::Full(WARM_UP)).await?;
    let mut calm = Vec::new();
    for endpoints in [1, 2] {
        calm.push(bench.run(endpoints, Load::Calm).await?);
    }
    let mut full = Vec::new();
    for endpoints in [1, 2] {
        full.push(bench.run(endpoints, Load::Full(MESSAGES)).await?);
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
    bench.run(1, Load::Full(WARM_UP)).await?;
    sleep(SETTLING).await;
    proxy.take();
    let mut counted = Vec::new();
    for (size, name) in [(1_000, "1 KB"), (10_000, "10 KB")] {
        for failures in [0, 3] {
            bench.endpoint.fail(failures);
            bench.run_with(1, Load::Steady(COUNTED), size).await?;
            sleep(SETTLING).await;
            let title = format!("{name}, {failures} retries");
            counted.push(Requests { title, deliveries: COUNTED, counted: proxy.take() });
        }
    }
    bench.endpoint.fail(0);
    bench.run_with(1, Load::Full(COUNTED_AT_ONCE), 1_000).await?;
    sleep(SETTLING).await;
    let title = "1 KB, 0 retries, full load".to_owned();
    counted.push(Requests { title, deliveries: COUNTED_AT_ONCE, counted: proxy.take() });
    report::requests(&counted);
    Ok(())
}

/// How to publish.
#[derive(Clone, Copy)]
enum Load {
    /// By all clients at once, so many.
    Full(usize),
    /// At the calm rate.
    Calm,
    /// At the calm rate, so many.
    Steady(usize),
}

/// Webhooks, and their endpoint.
struct Bench<'a> {
    stand: &'a Stand,
    endpoint: Endpoint,
    next: Arc<AtomicUsize>,
}

impl<'a> Bench<'a> {
    /// Two managing entities, one with one webhook and one with two.
    async fn start(stand: &'a Stand) -> Result<Self, Box<dyn Error>> {
        let endpoint = Endpoint::start(2, 3 * MESSAGES).await?;
        for webhooks in [1, 2] {
            for path in 0..webhooks {
                stand.hook(&entity(webhooks), &format!("{}/{path}", endpoint.address)).await?;
            }
        }
        Ok(Self { stand, endpoint, next: Arc::default() })
    }

    async fn run(&self, endpoints: usize, load: Load) -> Result<Run, Box<dyn Error>> {
        self.run_with(endpoints, load, SIZE).await
    }

    async fn run_with(&self, endpoints: usize, load: Load, size: usize) -> Result<Run, Box<dyn Error>> {
        let publisher = Publisher::new(self.stand, &entity(endpoints), size, &self.next);
        let (arrived, received) = (self.endpoint.arrived(), self.endpoint.received());
        let (before, began) = (Usage::of(self.stand.bundle)?, Instant::now());
        let published = match load {
            Load::Full(messages) => publisher.at_full_speed(messages, LIMIT).await,
            Load::Calm => publisher.at_rate(CALM_RATE, CALM_MESSAGES).await,
            Load::Steady(messages) => publisher.at_rate(CALM_RATE, messages).await,
        };
        let published = published.map_err(|error| error.to_string())?;
        let deliveries = u64::try_from(published.len() * endpoints)?;
        self.endpoint.until(arrived + deliveries).await?;
        let usage = Usage::of(self.stand.bundle)?.since(&before);
        let arrivals = self.arrivals(endpoints, &published);
        let acknowledged = published.iter().map(|event| event.began + event.acknowledged).max();
        let last = arrivals.iter().map(|(_, arrival)| *arrival).max();
        Ok(Run {
            endpoints,
            published: published.len(),
            publishing: acknowledged.unwrap_or(began) - began,
            delivering: last.unwrap_or(began) - began,
            duplicates: self.endpoint.received() - received - deliveries,
            acknowledgement: Times::of(published.iter().map(|event| event.acknowledged).collect()),
            arrival: Times::of(arrivals.iter().map(|(began, arrival)| *arrival - *began).collect()),
            usage,
        })
    }

    /// When each event was published, and when it arrived at each webhook.
    fn arrivals(&self, endpoints: usize, published: &[Published]) -> Vec<(Instant, Instant)> {
        let pairs = published.iter().flat_map(|event| (0..endpoints).map(move |path| (event, path)));
        pairs.filter_map(|(event, path)| Some((event.began, self.endpoint.arrival(path, event.number)?))).collect()
    }
}

/// The managing entity with so many webhooks.
fn entity(webhooks: usize) -> String {
    format!("bench-{webhooks}")
}
