//! A webhook receiver on plain TCP, so that it can misbehave in ways that no HTTP library allows. Its behaviour is set
//! per path, and it stores all received requests.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Behaviour, LONG, Received, http::serve_counted, locked, until};

/// A running receiver, which stops when it is dropped.
pub struct Receiver {
    /// The receiver's address.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    scripts: Mutex<HashMap<String, Vec<Behaviour>>>,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
}

impl Receiver {
    /// A receiver on a free port, which responds with 404 until a test sets a behaviour.
    pub async fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// A receiver at one of the machine's addresses, which responds with 404 until a test sets a behaviour.
    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        let counting = Arc::clone(&state);
        let counted = move || {
            counting.connections.fetch_add(1, Ordering::Relaxed);
        };
        let accepting = serve_counted(listener, counted, move |received| serving.answer(received));
        Self { address, state, accepting }
    }

    /// The URL for a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the behaviours for requests to a path, one per request; the last behaviour is repeated. Returns the path's
    /// URL.
    pub fn on(&self, path: &str, script: impl Into<Vec<Behaviour>>) -> String {
        locked(&self.state.scripts).insert(path.to_owned(), script.into());
        self.url(path)
    }

    /// The requests to a path so far.
    pub fn received(&self, path: &str) -> Vec<Received> {
        locked(&self.state.received).iter().filter(|received| received.path == path).cloned().collect()
    }

    /// All requests so far.
    pub fn everything(&self) -> Vec<Received> {
        locked(&self.state.received).clone()
    }

    /// The number of connections so far, including those without a request.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Waits until a path has received at least `count` requests.
    pub async fn until(&self, path: &str, count: usize) -> Vec<Received> {
        until(&format!("{count} requests to {path}"), LONG, async || {
            Some(self.received(path)).filter(|received| received.len() >= count)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    fn answer(&self, received: Received) -> Behaviour {
        let behaviour = self.next_behaviour(&received.path);
        locked(&self.received).push(received);
        behaviour
    }

    fn next_behaviour(&self, path: &str) -> Behaviour {
        let mut scripts = locked(&self.scripts);
        match scripts.get_mut(path) {
            Some(script) if script.len() > 1 => script.remove(0),
            Some(script) => script.first().cloned().unwrap_or_else(Behaviour::close),
            None => Behaviour::status(404),
        }
    }
}
