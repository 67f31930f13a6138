//! Functions as Lambda runs them: each alone, one event at a time, with TLS and a round trip to the table.
//!
//! A function that gets one event at a time cannot share a call with another request, and each round trip to the table
//! is billed. This part therefore shows how much a request costs on AWS, while the other parts show a machine's
//! capacity.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use template::Template;

use crate::{
    bundle::{Bundle, BundleSettings},
    cloud::Cloud,
    counting_proxy::Count,
    function::Subject,
    new_deliveries::NewDeliveries,
    prices,
    process::{self, computed},
    report,
    stored::Stored,
    times::Times,
};

/// The round trips to the table, queue and secrets.
pub const ROUND_TRIPS: [Duration; 3] = [Duration::from_millis(1), Duration::from_millis(3), Duration::from_millis(8)];
/// The index of the round trip that is used to measure starts and to price Lambda's time.
pub const USUAL: usize = 1;
const STARTS: usize = 9;
const WARM_UP: usize = 20;
/// The number of invocations with each round trip.
const INVOCATIONS: usize = 120;
/// The number of measured invocations. `EVENTS` also includes starts and warm-up.
const MEASURED: u32 = 3 * INVOCATIONS as u32;
const EVENTS: usize = STARTS + WARM_UP + MEASURED as usize;
/// The template, which contains each function's memory.
const TEMPLATE: &str = include_str!("../../../template.yaml");
/// The size of an event, in bytes.
const SIZE: usize = 1_000;
/// The number of webhooks that the large publish request reaches.
const MANY: usize = 20;
/// The maximum number of messages that Lambda passes to an invocation.
const BATCH: usize = 10;

/// The cost of one kind of invocation.
pub struct Figures {
    pub title: String,
    /// The processor time that the function used.
    pub computing: Duration,
    /// The median time from the event to the response, for each round trip.
    pub wall: [Duration; ROUND_TRIPS.len()],
    /// The shortest time for each round trip, free of other delays.
    shortest: [Duration; ROUND_TRIPS.len()],
    /// The number of calls to the table and to the queue.
    pub calls: [f64; 2],
    /// The number of calls to the table for each operation.
    pub operations: Vec<(String, f64)>,
    pub writes: f64,
    pub reads: f64,
    /// The number of connections opened during startup and the first invocation.
    pub connections_at_first: f64,
    /// The number of connections to AWS and to endpoints that each later invocation opens.
    pub connections: [f64; 2],
    /// The number of bytes that the function logs.
    pub logged: f64,
    /// The process's peak memory, in bytes.
    pub peak: u64,
    /// The time from the process's start to the first response.
    pub start: Times,
    /// The program's size in bytes, uncompressed and compressed.
    pub size: (u64, u64),
    /// The memory that Lambda allocates to the function, in MB.
    pub memory: u64,
}

impl Figures {
    /// The number of consecutive round trips, each of which lengthens the invocation by its own duration.
    pub fn round_trips(&self) -> f64 {
        let last = ROUND_TRIPS.len() - 1;
        let longer = self.shortest[last].saturating_sub(self.shortest[0]);
        longer.as_secs_f64() / (ROUND_TRIPS[last] - ROUND_TRIPS[0]).as_secs_f64()
    }
}

/// Runs all measurements and prints them.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    // Only the measured functions may change deliveries.
    let bundle =
        Bundle::start(BundleSettings { variables: &[("SWEEP_INTERVAL", "1h")], ..BundleSettings::default() }).await?;
    let cloud = Cloud::before(&bundle).await?;
    let one = "lambda-one";
    let many = "lambda-many";
    bundle.hook(one, &cloud.endpoint()).await?;
    for _ in 0..MANY {
        bundle.hook(many, &cloud.endpoint()).await?;
    }
    let shown = bundle.publish_one().await?;
    let bench = Bench { bundle: &bundle, cloud: &cloud, template: Template::parse(TEMPLATE)? };
    let to_one = Subject::publish_event(&bundle, one, SIZE);
    let to_many = Subject::publish_event(&bundle, many, SIZE);

    let hello = bench.measure("hello world", 128, async || Ok(Subject::hello())).await?;
    let list_event_types =
        bench.deployed("list-event-types: a token validated", &Subject::list_event_types(&bundle)).await?;
    let token = bench.deployed("token", &Subject::token(&bundle)).await?;
    let show_delivery = bench.deployed("show-delivery", &Subject::show_delivery(&bundle, &shown)).await?;
    let mcp = bench.deployed("mcp: a tool that reads nothing", &Subject::mcp(&bundle)).await?;
    let publish = bench.deployed("publish-event, one webhook", &to_one).await?;
    let before = stored(&bundle).await?;
    let attempt = bench.attempts("dispatch-deliveries, one", &to_one, 1).await?;
    let stored = stored(&bundle).await?.since(before).each(EVENTS);
    let batch = bench.attempts(&format!("dispatch-deliveries, {BATCH} at once"), &to_one, BATCH).await?;
    let publish_to_many = bench.deployed(&format!("publish-event, {MANY} webhooks"), &to_many).await?;

    let prices = prices::of(&publish, &attempt, &batch, BATCH, stored);
    let figures = [hello, list_event_types, token, show_delivery, mcp, publish, publish_to_many, attempt, batch];
    report::lambda(&figures, cloud.lateness());
    report::prices(&prices, BATCH);
    Ok(())
}

async fn stored(bundle: &Bundle) -> Result<Stored, Box<dyn Error>> {
    Stored::of(bundle).await.map_err(|error| error.to_string().into())
}

/// A measured function's environment.
struct Bench<'a> {
    bundle: &'a Bundle,
    cloud: &'a Cloud,
    template: Template,
}

impl Bench<'_> {
    /// Measures one of the template's functions by repeating an event.
    async fn deployed(&self, title: &str, subject: &Subject) -> Result<Figures, Box<dyn Error>> {
        self.measure(title, self.memory(subject.name)?, async || Ok(subject.clone())).await
    }

    /// Measures attempts, `batch` at a time, each soon after publishing the event.
    async fn attempts(&self, title: &str, publication: &Subject, batch: usize) -> Result<Figures, Box<dyn Error>> {
        let mut deliveries = NewDeliveries::of(publication, self.bundle).await?;
        let next = async || Ok(Subject::dispatch_deliveries(deliveries.batch(batch).await?));
        self.measure(title, self.memory("dispatch-deliveries")?, next).await
    }

    fn memory(&self, function: &str) -> Result<u64, Box<dyn Error>> {
        Ok(self.template.function(function).ok_or("no such function")?.memory)
    }

    async fn measure(
        &self,
        title: &str,
        memory: u64,
        mut next: impl AsyncFnMut() -> Result<Subject, Box<dyn Error>>,
    ) -> Result<Figures, Box<dyn Error>> {
        let cloud = self.cloud;
        let variables = cloud.variables();
        let variables = pairs(&variables);
        cloud.set_round_trip(ROUND_TRIPS[USUAL]);
        let mut start = Vec::new();
        for _ in 0..STARTS {
            let subject = next().await?;
            let began = Instant::now();
            let (mut api, _process) = subject.spawn(self.bundle, &variables).await?;
            subject.invoke(&mut api).await?;
            start.push(began.elapsed());
        }
        let log = tempfile::tempfile()?;
        let before = cloud.connections();
        let first = next().await?;
        let (mut api, function) = first.spawn_logging(self.bundle, &variables, &log).await?;
        let process = function.id().ok_or("the function has ended")?;
        first.invoke(&mut api).await?;
        let connections_at_first = difference(cloud.connections(), before).iter().sum();
        for _ in 1..WARM_UP {
            next().await?.invoke(&mut api).await?;
        }
        cloud.table.take();
        let connections = cloud.connections();
        let calls = cloud.queue.calls();
        let logged = log.metadata()?.len();
        let computing = computed(process)?;
        let mut wall = [Duration::ZERO; ROUND_TRIPS.len()];
        let mut shortest = [Duration::ZERO; ROUND_TRIPS.len()];
        for (index, round_trip) in ROUND_TRIPS.into_iter().enumerate() {
            cloud.set_round_trip(round_trip);
            let mut times = Vec::new();
            for _ in 0..INVOCATIONS {
                let subject = next().await?;
                let began = Instant::now();
                subject.invoke(&mut api).await?;
                times.push(began.elapsed());
            }
            shortest[index] = times.iter().copied().min().unwrap_or_default();
            wall[index] = Times::of(times).median;
        }
        let counted = cloud.table.take();
        let each = |count: f64| count / f64::from(MEASURED);
        let sum = |value: fn(&Count) -> f64| each(counted.values().map(value).fold(0.0, |sum, value| sum + value));
        Ok(Figures {
            title: title.to_owned(),
            computing: (computed(process)? - computing) / MEASURED,
            wall,
            shortest,
            calls: [sum(|count| count.requests as f64), each((cloud.queue.calls() - calls) as f64)],
            operations: counted.iter().map(|(name, count)| (name.clone(), each(count.requests as f64))).collect(),
            writes: sum(|count| count.writes),
            reads: sum(|count| count.reads),
            connections_at_first,
            connections: difference(cloud.connections(), connections).map(each),
            logged: each((log.metadata()?.len() - logged) as f64),
            peak: process::memory(process, "VmHWM")?,
            start: Times::of(start),
            size: first.size()?,
            memory,
        })
    }
}

fn pairs<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn difference(now: [u64; 2], before: [u64; 2]) -> [f64; 2] {
    [0, 1].map(|side| (now[side] - before[side]) as f64)
}
