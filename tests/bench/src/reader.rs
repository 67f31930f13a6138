//! Readers of a feed: each reads deliveries, confirms them, and reads again.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    connection::{Connection, TaskResult, in_words},
    endpoint,
    load::Target,
};

/// The request of a reader that takes as many deliveries as possible, and waits as long as possible for the first.
const AT_ONCE: &str = r#"{"limit":100,"wait":10}"#;
/// How long a reader pauses once its managing entity has used up its reads for the minute.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// A pull webhook's feed.
#[derive(Clone)]
pub struct Feed {
    address: String,
    path: Arc<str>,
    authorization: Arc<str>,
}

/// A delivery that a reader holds.
pub struct HeldDelivery {
    /// The number of the delivery's event.
    pub number: usize,
    receipt: String,
}

/// The response to one read.
pub struct FeedRead {
    pub deliveries: Vec<HeldDelivery>,
    /// The time from the first byte sent to the last byte received.
    pub time: Duration,
}

/// A reader with its connection.
pub struct Reader {
    feed: Feed,
    connection: Connection,
}

/// The combined work of a feed's readers.
#[derive(Default)]
pub struct ReadingRun {
    /// When a reader first got each event, by event number.
    pub arrivals: HashMap<usize, Instant>,
    /// The number of confirmed deliveries.
    pub confirmed: usize,
    /// The number of reads that returned at least one delivery.
    pub reads: usize,
    /// The number of reads that the per-minute limit refused.
    pub refused: usize,
    /// The number of received deliveries, including duplicates.
    received: usize,
}

/// Readers that keep reading until they are dropped.
pub struct Readers {
    tasks: JoinSet<TaskResult<()>>,
    run: Arc<Mutex<ReadingRun>>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<PageDelivery>,
}

#[derive(Deserialize)]
struct PageDelivery {
    receipt: String,
    body: String,
}

impl Feed {
    /// The feed at this path.
    pub fn new(target: Target) -> Self {
        Self {
            address: target.address,
            path: target.path.into(),
            authorization: format!("Bearer {}", target.token).into(),
        }
    }
}

impl Reader {
    /// A reader of this feed.
    pub async fn open(feed: &Feed) -> TaskResult<Self> {
        Ok(Self { feed: feed.clone(), connection: Connection::open(&feed.address).await? })
    }

    /// Reads deliveries; `None` if the per-minute limit refused the read.
    pub async fn read(&mut self, request: &str) -> TaskResult<Option<FeedRead>> {
        let headers = [("authorization", self.feed.authorization.as_ref()), ("content-type", "application/json")];
        let answer = self.connection.post(&format!("{}/read", self.feed.path), &headers, request.to_owned()).await?;
        if answer.status == 429 {
            return Ok(None);
        }
        if answer.status != 200 {
            let body = String::from_utf8_lossy(&answer.body);
            return Err(format!("a read of a feed was answered with {}: {body}", answer.status).into());
        }
        let page: Page = serde_json::from_slice(&answer.body)?;
        let held = page.items.into_iter().map(|delivery| {
            let number = endpoint::number(delivery.body.as_bytes()).ok_or("an event has no number")?;
            Ok(HeldDelivery { number, receipt: delivery.receipt })
        });
        Ok(Some(FeedRead { deliveries: held.collect::<TaskResult<_>>()?, time: answer.time }))
    }

    /// Confirms deliveries; fails if the service no longer accepts one of the receipts.
    pub async fn confirm(&mut self, deliveries: &[HeldDelivery]) -> TaskResult<()> {
        let headers = [("authorization", self.feed.authorization.as_ref()), ("content-type", "application/json")];
        let receipts: Vec<&str> = deliveries.iter().map(|delivery| delivery.receipt.as_str()).collect();
        let body = json!({ "confirmed": receipts }).to_string();
        let answer = self.connection.post(&format!("{}/ack", self.feed.path), &headers, body).await?;
        let results: Value = serde_json::from_slice(&answer.body)?;
        let outcomes = results["items"].as_array().into_iter().flatten().map(|result| &result["outcome"]);
        if outcomes.filter(|outcome| *outcome == "confirmed").count() != deliveries.len() {
            let answered = String::from_utf8_lossy(&answer.body);
            return Err(format!("confirmations were answered with {}: {answered}", answer.status).into());
        }
        Ok(())
    }

    async fn read_and_confirm(mut self, run: Arc<Mutex<ReadingRun>>) -> TaskResult<()> {
        loop {
            let Some(read) = self.read(AT_ONCE).await? else {
                locked(&run).refused += 1;
                sleep(REFUSED_PAUSE).await;
                continue;
            };
            if read.deliveries.is_empty() {
                continue;
            }
            locked(&run).add(&read, Instant::now());
            self.confirm(&read.deliveries).await?;
            locked(&run).confirmed += read.deliveries.len();
        }
    }
}

impl ReadingRun {
    fn add(&mut self, read: &FeedRead, now: Instant) {
        self.reads += 1;
        self.received += read.deliveries.len();
        for delivery in &read.deliveries {
            self.arrivals.entry(delivery.number).or_insert(now);
        }
    }

    /// The number of deliveries that were received again.
    pub fn duplicates(&self) -> usize {
        self.received - self.arrivals.len()
    }

    /// The average number of deliveries per read, among reads that returned any.
    pub fn deliveries_per_read(&self) -> f64 {
        self.received as f64 / self.reads as f64
    }
}

impl Readers {
    /// Starts this many readers of one feed.
    pub async fn start(feed: &Feed, readers: usize) -> Result<Self, Box<dyn Error>> {
        let run = Arc::default();
        let mut tasks = JoinSet::new();
        for _ in 0..readers {
            let reader = Reader::open(feed).await.map_err(in_words)?;
            tasks.spawn(reader.read_and_confirm(Arc::clone(&run)));
        }
        Ok(Self { tasks, run })
    }

    /// Waits until the readers have confirmed this many deliveries, and stops them. Fails if a reader has failed, or if
    /// nothing is confirmed for longer than it takes for the next minute's reads to become available.
    pub async fn until(mut self, confirmed: usize) -> Result<ReadingRun, Box<dyn Error>> {
        const TIMEOUT: Duration = Duration::from_secs(90);
        let mut last = 0;
        let mut since = Instant::now();
        loop {
            if let Some(ended) = self.tasks.try_join_next() {
                ended?.map_err(in_words)?;
            }
            let now = locked(&self.run).confirmed;
            if now >= confirmed {
                return Ok(std::mem::take(&mut *locked(&self.run)));
            }
            if now > last {
                last = now;
                since = Instant::now();
            }
            if since.elapsed() > TIMEOUT {
                return Err(format!("only {last} of {confirmed} deliveries were read and confirmed").into());
            }
            sleep(Duration::from_millis(2)).await;
        }
    }
}

fn locked(run: &Mutex<ReadingRun>) -> MutexGuard<'_, ReadingRun> {
    run.lock().expect("no reader panics while it holds the lock")
}
