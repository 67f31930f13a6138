//! Throughput and latency of feeds and their readers, compared with a webhook whose endpoint responds immediately.
//!
//! The deployed functions, the AWS emulators, the publishers, the readers and the endpoint share one machine. Each run
//! has a separate managing entity, since an entity's reads per minute are limited.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    bundle::{Bundle, BundleSettings},
    connection::in_words,
    endpoint::Endpoint,
    load::Publisher,
    reader::{Feed, FeedRead, Reader, Readers, ReadingRun},
    report,
    run::{Arrival, CALM, FULL, Load, MOST_EVENTS, Run, SIZE, WARM_UP},
    times::Times,
};

/// The functions that run as deployed builds.
const RELEASE: [&str; 4] = ["publish-event", "dispatch-deliveries", "read-feed", "acknowledge-feed"];
/// The number of readers that read a feed concurrently.
pub const READERS: [usize; 2] = [1, 4];
/// The number of deliveries in a feed that has not been read for a long time.
pub const WAITING: usize = 10_000;
/// The number of single reads of each kind.
const READS: usize = 30;
/// A read that does not wait for the first delivery.
const SINGLE: &str = r#"{"limit":1}"#;
const LIMIT: Duration = Duration::from_secs(120);
/// The pause between two polls of a list or a feed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const PUSHED: &str = "feed-push";

/// A run whose events were read from a feed.
pub struct FeedRun {
    pub run: Run,
    pub reading: ReadingRun,
}

/// The draining of a feed that had deliveries waiting in it.
pub struct Draining {
    /// The time from the readers' start to the last confirmation.
    pub time: Duration,
    pub reading: ReadingRun,
}

/// The runs at the calm rate.
pub struct CalmRuns {
    /// The number of deliveries in the feed when the run starts.
    pub waiting: usize,
    pub push: Run,
    /// The run with one reader, which waits for deliveries.
    pub pull: Run,
}

/// All figures for this part.
pub struct Measured {
    pub calm: [CalmRuns; 2],
    /// The run at full load.
    pub push: Run,
    /// The runs at full load, one for each number of readers.
    pub pull: Vec<FeedRun>,
    /// The draining, for each number of readers.
    pub draining: Vec<Draining>,
    /// How long it takes to read one delivery, by the number of deliveries in the feed.
    pub single_reads: [(usize, Times); 3],
}

/// Measures and prints this part.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::start(BundleSettings { release: &RELEASE, ..BundleSettings::default() }).await?;
    let bench = Bench::start(&bundle).await?;
    bench.push(WARM_UP).await?;
    bench.pull("feed-warm-up", READERS[1], WARM_UP).await?;
    let calm = [bench.calm(0).await?, bench.calm(WAITING).await?];
    let push = bench.push(FULL).await?;
    let mut pull = Vec::new();
    for readers in READERS {
        pull.push(bench.pull(&format!("feed-full-{readers}"), readers, FULL).await?);
    }
    let single_reads = bench.single_reads().await?;
    let mut draining = Vec::new();
    for readers in READERS {
        draining.push(bench.drain(readers).await?);
    }
    report::feed(&Measured { calm, push, pull, draining, single_reads });
    Ok(())
}

struct Bench<'a> {
    bundle: &'a Bundle,
    endpoint: Endpoint,
    /// The number of the next pushed event; the endpoint has room for all of them.
    next_pushed: Arc<AtomicUsize>,
    next_pulled: Arc<AtomicUsize>,
}

impl<'a> Bench<'a> {
    /// Creates the webhook with an endpoint.
    async fn start(bundle: &'a Bundle) -> Result<Self, Box<dyn Error>> {
        // There are two calm runs, and one at full load.
        let endpoint = Endpoint::start(1, 2 * MOST_EVENTS).await?;
        bundle.hook(PUSHED, &format!("{}/0", endpoint.address)).await?;
        Ok(Self { bundle, endpoint, next_pushed: Arc::default(), next_pulled: Arc::default() })
    }

    async fn push(&self, load: Load) -> Result<Run, Box<dyn Error>> {
        let publisher = Publisher::new(self.bundle.target(PUSHED), SIZE, &self.next_pushed);
        Run::of(&publisher, &self.endpoint, 1, load).await
    }

    /// Publishes to a new feed while readers read it.
    async fn pull(&self, entity: &str, readers: usize, load: Load) -> Result<FeedRun, Box<dyn Error>> {
        let feed = self.bundle.feed(entity).await?;
        self.pull_from(&feed, entity, readers, load, 0).await
    }

    /// Publishes to a feed, in which deliveries may be waiting, while readers read it.
    async fn pull_from(
        &self,
        feed: &Feed,
        entity: &str,
        readers: usize,
        load: Load,
        waiting: usize,
    ) -> Result<FeedRun, Box<dyn Error>> {
        let readers = Readers::start(feed, readers).await?;
        let published = load.publish(&self.publisher(entity)).await?;
        let reading = readers.until(waiting + published.len()).await?;
        let arrival = |event| Some(Arrival { event, at: *reading.arrivals.get(&event.number)? });
        let arrivals: Vec<_> = published.iter().copied().filter_map(arrival).collect();
        let run = Run::of_arrivals(&published, &arrivals);
        Ok(FeedRun { run, reading })
    }

    /// Publishes at the calm rate while this many deliveries are waiting in the feed.
    async fn calm(&self, waiting: usize) -> Result<CalmRuns, Box<dyn Error>> {
        let entity = format!("feed-calm-{waiting}");
        let feed = self.bundle.feed(&entity).await?;
        self.fill(&entity, waiting).await?;
        let push = self.push(CALM).await?;
        let pull = self.pull_from(&feed, &entity, 1, CALM, waiting).await?.run;
        Ok(CalmRuns { waiting, push, pull })
    }

    /// Reads a full feed until it is empty.
    async fn drain(&self, readers: usize) -> Result<Draining, Box<dyn Error>> {
        let entity = format!("feed-draining-{readers}");
        let feed = self.bundle.feed(&entity).await?;
        self.fill(&entity, WAITING).await?;
        let began = Instant::now();
        let reading = Readers::start(&feed, readers).await?.until(WAITING).await?;
        Ok(Draining { time: began.elapsed(), reading })
    }

    /// Measures reads of one delivery from feeds that contain none, one and many.
    async fn single_reads(&self) -> Result<[(usize, Times); 3], Box<dyn Error>> {
        let entity = "feed-single-reads";
        let feed = self.bundle.feed(entity).await?;
        let mut reader = Reader::open(&feed).await.map_err(in_words)?;
        // The first read of a webhook's feed also records that the feed is being read.
        read_one(&mut reader).await?;
        let mut empty = Vec::new();
        let mut alone = Vec::new();
        let mut among_many = Vec::new();
        for _ in 0..READS {
            empty.push(read_one(&mut reader).await?.time);
        }
        for _ in 0..READS {
            self.fill(entity, 1).await?;
            alone.push(confirmed_read(&mut reader).await?);
        }
        self.fill(entity, WAITING + READS).await?;
        for _ in 0..READS {
            among_many.push(confirmed_read(&mut reader).await?);
        }
        Ok([(0, Times::of(empty)), (1, Times::of(alone)), (WAITING, Times::of(among_many))])
    }

    /// Publishes this many events to a feed without a reader, and waits until the newest are in the feed.
    async fn fill(&self, entity: &str, events: usize) -> Result<(), Box<dyn Error>> {
        if events == 0 {
            return Ok(());
        }
        let published = Load::Full(events, LIMIT).publish(&self.publisher(entity)).await?;
        if published.len() < events {
            return Err(format!("only {} of {events} events were published in time", published.len()).into());
        }
        let newest = format!("webhook/delivery/list?limit={}", events.min(100));
        let began = Instant::now();
        loop {
            let list = self.bundle.get(entity, &newest).await?;
            let deliveries = list["items"].as_array().ok_or("a list has items")?;
            if deliveries.iter().all(|delivery| delivery["waitingFor"] == "reader") {
                return Ok(());
            }
            if began.elapsed() > LIMIT {
                return Err("events that were published are not in the feed".into());
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    fn publisher(&self, entity: &str) -> Publisher {
        Publisher::new(self.bundle.target(entity), SIZE, &self.next_pulled)
    }
}

async fn read_one(reader: &mut Reader) -> Result<FeedRead, Box<dyn Error>> {
    let read = reader.read(SINGLE).await.map_err(in_words)?;
    Ok(read.ok_or("single reads have reached the limit of a minute")?)
}

/// How long it takes to read one delivery. The delivery is then confirmed, which removes it from the feed.
async fn confirmed_read(reader: &mut Reader) -> Result<Duration, Box<dyn Error>> {
    loop {
        let read = read_one(reader).await?;
        if !read.deliveries.is_empty() {
            reader.confirm(&read.deliveries).await.map_err(in_words)?;
            return Ok(read.time);
        }
        // The feed's index may lag behind the list.
        sleep(LOOK_INTERVAL).await;
    }
}
