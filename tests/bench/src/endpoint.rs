//! The endpoint for measured deliveries. It only records when each event arrived, identified by the number in its data.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use tokio::{net::TcpListener, time};

/// The text that precedes the number in an event's data.
pub const MARK: &str = "\"number\":";

/// A server with a path for each webhook, `/0`, `/1` and so on.
pub struct Endpoint {
    pub address: String,
    seen: Arc<Seen>,
}

struct Seen {
    began: Instant,
    /// How many attempts fail before each delivery succeeds.
    failures: AtomicU32,
    /// The events for each path.
    events: Vec<Vec<Event>>,
    arrived: AtomicU64,
    received: AtomicU64,
}

#[derive(Default)]
struct Event {
    /// When the event first arrived, in nanoseconds since the endpoint's start, or 0.
    first: AtomicU64,
    attempts: AtomicU32,
}

impl Endpoint {
    /// Starts an endpoint with this many paths, for this many events. Both are numbered from 0.
    pub async fn start(paths: usize, events: usize) -> Result<Self, Box<dyn Error>> {
        let none = || std::iter::repeat_with(Event::default).take(events).collect();
        let seen = Arc::new(Seen {
            began: Instant::now(),
            failures: AtomicU32::new(0),
            events: std::iter::repeat_with(none).take(paths).collect(),
            arrived: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let service = Router::new().route("/{path}", post(receive)).with_state(Arc::clone(&seen));
        tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(Self { address, seen })
    }

    /// Sets how many attempts fail before each delivery succeeds.
    pub fn fail(&self, times: u32) {
        self.seen.failures.store(times, Ordering::Relaxed);
    }

    /// The number of successful deliveries, without duplicates.
    pub fn arrived(&self) -> u64 {
        self.seen.arrived.load(Ordering::Relaxed)
    }

    /// The number of requests received.
    pub fn received(&self) -> u64 {
        self.seen.received.load(Ordering::Relaxed)
    }

    /// When an event first arrived at a path.
    pub fn arrival(&self, path: usize, number: usize) -> Option<Instant> {
        let first = self.seen.events[path][number].first.load(Ordering::Relaxed);
        (first > 0).then(|| self.seen.began + Duration::from_nanos(first))
    }

    /// Waits until this many deliveries have succeeded; fails if there is no further success for 30 s.
    pub async fn until(&self, arrived: u64) -> Result<(), Box<dyn Error>> {
        const TIMEOUT: Duration = Duration::from_secs(30);
        let mut last = self.arrived();
        let mut since = Instant::now();
        while self.arrived() < arrived {
            time::sleep(Duration::from_millis(2)).await;
            if self.arrived() > last {
                last = self.arrived();
                since = Instant::now();
            }
            if since.elapsed() > TIMEOUT {
                return Err(format!("only {last} of {arrived} deliveries arrived").into());
            }
        }
        Ok(())
    }
}

async fn receive(State(seen): State<Arc<Seen>>, Path(path): Path<usize>, body: Bytes) -> StatusCode {
    seen.received.fetch_add(1, Ordering::Relaxed);
    let event = number(&body).and_then(|number| seen.events.get(path)?.get(number));
    let Some(event) = event else { return StatusCode::NOT_FOUND };
    if event.attempts.fetch_add(1, Ordering::Relaxed) < seen.failures.load(Ordering::Relaxed) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let now = u64::try_from(seen.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    if event.first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        seen.arrived.fetch_add(1, Ordering::Relaxed);
    }
    StatusCode::NO_CONTENT
}

/// The number of the event in this body.
pub fn number(body: &[u8]) -> Option<usize> {
    let mark = MARK.as_bytes();
    let start = body.windows(mark.len()).position(|window| window == mark)? + mark.len();
    let digits = body[start..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}
