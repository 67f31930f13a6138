//! The webhooks' endpoints, and the network that leads to them.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use base::pause;
use fastrand::Rng;
use futures::{FutureExt, future::BoxFuture};
use outbound::{Link, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::{faults::Fault, journal::Actor, providers, sandbox::Sandbox, world::World};

/// The origin of every endpoint. No connection is made, since the simulation's network ends in this process.
pub const ORIGIN: &str = "http://127.0.0.1:8000";

/// How an endpoint reacts to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// Responds with this status after this many milliseconds.
    Answers(u16, u64),
    /// Responds with 503 and asks for a pause of this many seconds.
    RetryAfter(u64),
    /// Reads the request but never responds.
    Silent,
    /// Reads the request and closes the connection.
    Closes,
    /// Reads the request, sends half a response, and closes the connection.
    Half,
    /// Reads the request and closes the connection, as [`Self::Closes`] does.
    Refuses,
}

impl Mood {
    /// A random reaction, which is a good one half of the time.
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..20) {
            0..=7 => Self::Answers(200, rng.u64(1..80)),
            8..=9 => Self::Answers(204, rng.u64(1_000..14_000)),
            10..=12 => Self::Answers(500, rng.u64(1..3_000)),
            13 => Self::Answers(404, 5),
            14 => Self::Answers(410, rng.u64(1..2_000)),
            15 => Self::RetryAfter(rng.u64(1..300)),
            16 => Self::Silent,
            17 => Self::Closes,
            18 => Self::Half,
            _ => Self::Refuses,
        }
    }
}

/// A webhook's position in a history: its tenant, and its number within the tenant.
pub type Slot = (usize, usize);

/// The endpoints of all webhooks.
#[derive(Debug, Default)]
pub struct Endpoints {
    /// Each endpoint's current reaction; an endpoint without an entry responds with 200 immediately.
    pub moods: BTreeMap<Slot, Mood>,
    /// All requests that endpoints received, in order of arrival.
    pub seen: Vec<SeenRequest>,
}

/// A complete request that an endpoint received.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// The webhook that the endpoint belongs to.
    pub slot: Slot,
    /// The version of the webhook's address.
    pub address: usize,
    /// The event's identifier, from the header `webhook-id`.
    pub event: String,
    /// When the complete request had been received, in milliseconds.
    pub arrived: u64,
    /// The response's status and time, if the endpoint sent a complete response.
    pub answered: Option<(u16, u64)>,
    /// When the connection was no longer in use.
    pub ended: Option<u64>,
    /// The sandbox that sent the request.
    pub sandbox: u64,
    /// The invocation that sent the request.
    pub invocation: u64,
    /// The request's body.
    pub body: Vec<u8>,
    /// The headers `webhook-timestamp` and `webhook-signature`.
    pub signed: [String; 2],
}

/// The URL of an endpoint.
pub fn address((tenant, webhook): Slot, version: usize) -> String {
    format!("{ORIGIN}/{tenant}/{webhook}/{version}")
}

/// One sandbox's network.
#[derive(Clone)]
pub struct Wires {
    /// The state that the endpoints share.
    pub world: Arc<World>,
    /// The sandbox that connects.
    pub sandbox: Arc<Sandbox>,
}

impl fmt::Debug for Wires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wires").field("sandbox", &self.sandbox.id).finish_non_exhaustive()
    }
}

impl Network for Wires {
    fn open(&self, peer: SocketAddr) -> BoxFuture<'_, io::Result<Link>> {
        async move {
            self.sandbox.running().await;
            let point = "connect to an endpoint";
            let (mut rng, refused) = {
                let mut state = self.world.state();
                state.numbers.call += 1;
                let about = ("connection", self.world.clock.millis(), state.numbers.call);
                let mut rng = self.world.draws.about(&about);
                state.coverage.reached(self.sandbox.function, point);
                let refused = state.chances.occurs(Fault::NotConnected, &mut rng);
                if refused {
                    state.coverage.injected(self.sandbox.function, point, Fault::NotConnected);
                    state.journal.note(self.world.now(), self.sandbox.actor(), || "! not-connected".to_owned());
                }
                (rng, refused)
            };
            pause(Duration::from_millis(rng.u64(1..10))).await;
            if refused {
                if rng.bool() {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                pause(Duration::from_millis(rng.u64(500..8_000))).await;
            }
            let (ours, theirs) = duplex(64 * 1024);
            let is_closed = Arc::new(AtomicBool::new(false));
            let served = Served {
                world: Arc::clone(&self.world),
                sandbox: Arc::clone(&self.sandbox),
                is_closed: Arc::clone(&is_closed),
            };
            if peer.port() == providers::PORT {
                let Served { world, sandbox, is_closed } = served;
                tokio::spawn(providers::serve(world, sandbox, is_closed, theirs));
            } else {
                tokio::spawn(served.serve(theirs));
            }
            Ok(Link { stream: Box::new(ours), peer, is_quiet: Box::new(move || !is_closed.load(Relaxed)) })
        }
        .boxed()
    }
}

/// The end of a connection that an endpoint serves.
struct Served {
    world: Arc<World>,
    sandbox: Arc<Sandbox>,
    is_closed: Arc<AtomicBool>,
}

/// A request, as read from a connection.
pub struct Request {
    /// The path.
    pub path: String,
    /// The headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Served {
    async fn serve(self, mut stream: DuplexStream) {
        while let Ok(Some(request)) = read(&mut stream).await {
            if !self.react(&mut stream, request).await {
                break;
            }
        }
        self.is_closed.store(true, Relaxed);
    }

    /// Reacts to a request. Returns whether the connection stays open.
    async fn react(&self, stream: &mut DuplexStream, request: Request) -> bool {
        let (number, mood) = self.note(request);
        let answer =
            |status: u16, more: &str| format!("HTTP/1.1 {status} Simulated\r\ncontent-length: 2\r\n{more}\r\nok");
        let (status, text, complete) = match mood {
            Mood::Refuses | Mood::Closes => {
                self.end(number, None);
                return false;
            }
            Mood::Silent => {
                // The sender gives up after 15 s.
                let mut rest = [0];
                let _ = stream.read(&mut rest).await;
                self.end(number, None);
                return false;
            }
            Mood::Half => (200, "HTTP/1.1 200 Sim".to_owned(), false),
            Mood::RetryAfter(seconds) => (503, answer(503, &format!("retry-after: {seconds}\r\n")), true),
            Mood::Answers(status, wait) => {
                pause(Duration::from_millis(wait)).await;
                (status, answer(status, ""), true)
            }
        };
        let sent = stream.write_all(text.as_bytes()).await.is_ok();
        self.end(number, (sent && complete).then_some(status));
        complete && sent
    }

    /// Records a request that arrived, and returns its number and its endpoint's current reaction.
    fn note(&self, Request { path, headers, body }: Request) -> (usize, Mood) {
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let mut parts = path.split('/').skip(1).map(|part| part.parse().unwrap_or(usize::MAX));
        let mut part = || parts.next().unwrap_or(usize::MAX);
        let slot = (part(), part());
        let arrived = self.world.clock.millis();
        let now = self.world.now();
        let mut state = self.world.state();
        let mood = state.endpoints.moods.get(&slot).copied().unwrap_or(Mood::Answers(200, 5));
        let seen = SeenRequest {
            slot,
            address: part(),
            event: header("webhook-id"),
            arrived,
            answered: None,
            ended: None,
            sandbox: self.sandbox.id,
            invocation: self.sandbox.invocation(),
            body,
            signed: [header("webhook-timestamp"), header("webhook-signature")],
        };
        state.journal.note(now, Actor::Endpoint(slot), || {
            format!(
                "sees {} at address {}, from {}, and reacts: {mood:?}",
                seen.event,
                seen.address,
                self.sandbox.actor()
            )
        });
        state.endpoints.seen.push(seen);
        (state.endpoints.seen.len() - 1, mood)
    }

    fn end(&self, number: usize, status: Option<u16>) {
        let now = self.world.clock.millis();
        let mut state = self.world.state();
        if let Some(seen) = state.endpoints.seen.get_mut(number) {
            seen.answered = status.map(|status| (status, now));
            seen.ended = Some(now);
        }
    }
}

/// Reads a request; `None` if the connection ends before one begins.
pub async fn read(stream: &mut DuplexStream) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { path, headers, body }))
}
