//! The pool of kept connections, since the TLS handshake is the largest part of an attempt's processor time.
//!
//! A kept connection serves one tenant and one combination of scheme, host and port, and only while the host name still
//! resolves to its address. A connection is not used again if the endpoint has closed it or sent unrequested bytes on
//! it.

use std::{
    collections::VecDeque,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::HeaderMap;
use url::{Position, Url};

use crate::client::Connection;
use base::{SharedClock, Time, pause};

/// How long a connection may be idle. This is shorter than the idle timeouts of gateways and load balancers, which may
/// drop a connection silently; a request on it would wait until it timed out.
const IDLE: Duration = Duration::from_secs(30);

/// How long before the announced end an idle connection is no longer used, so that no request is in transit when the
/// endpoint closes it.
const MARGIN: Duration = Duration::from_secs(1);

/// The maximum age of a connection, so that an endpoint's other servers and new certificates are used soon. A new
/// connection may resume the TLS session of an earlier one, whose certificate is then not checked again.
const AGE: Duration = Duration::from_secs(5 * 60);

/// The maximum number of idle connections of one tenant to one endpoint, which is the number of messages in a batch.
const MAX_PER_ENDPOINT: usize = 10;

/// The maximum number of idle connections in total. Each takes tens of kilobytes, and two of a function's thousand file
/// descriptors.
const MAX_TOTAL: usize = 100;

/// The pool of idle connections. Clones share it.
#[derive(Clone)]
pub(crate) struct Connections {
    waiting: Arc<Mutex<Waiting>>,
    clock: SharedClock,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The idle connections, longest idle first.
    connections: VecDeque<Idle>,
    /// Whether a task closes expired connections.
    is_tended: bool,
}

#[derive(Debug)]
struct Idle {
    since: Time,
    /// How long it may be idle.
    limit: Duration,
    connection: EndpointConnection,
}

/// An endpoint of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    tenant: String,
    /// Scheme, host and port.
    origin: String,
}

#[derive(Debug)]
pub(crate) struct EndpointConnection {
    endpoint: Endpoint,
    opened: Time,
    pub(crate) connection: Connection,
}

impl Endpoint {
    /// The endpoint of a tenant's URL.
    pub(crate) fn of(tenant: &str, url: &Url) -> Self {
        Self { tenant: tenant.to_owned(), origin: url[..Position::AfterPort].to_owned() }
    }
}

impl Connections {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { waiting: Arc::default(), clock }
    }

    /// A newly opened connection to the endpoint.
    pub(crate) fn opened(&self, endpoint: Endpoint, connection: Connection) -> EndpointConnection {
        EndpointConnection { endpoint, opened: self.clock.now(), connection }
    }

    /// Takes the most recently used connection to the endpoint at one of these addresses, if there is any.
    pub(crate) fn take(&self, endpoint: &Endpoint, addresses: &[IpAddr]) -> Option<EndpointConnection> {
        let now = self.clock.now();
        let mut waiting = self.waiting();
        waiting.close_expired(now);
        loop {
            let leads_there = |idle: &Idle| {
                idle.connection.endpoint == *endpoint && addresses.contains(&idle.connection.connection.address())
            };
            let position = waiting.connections.iter().rposition(leads_there)?;
            let Idle { connection, .. } = waiting.connections.remove(position)?;
            if connection.connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose last response is complete and had these headers.
    pub(crate) fn keep(&self, connection: EndpointConnection, headers: &HeaderMap) {
        let now = self.clock.now();
        let mut waiting = self.waiting();
        waiting.close_expired(now);
        let same = |idle: &Idle| idle.connection.endpoint == connection.endpoint;
        if waiting.connections.iter().filter(|idle| same(idle)).count() >= MAX_PER_ENDPOINT {
            let oldest = waiting.connections.iter().position(same);
            oldest.and_then(|position| waiting.connections.remove(position));
        } else if waiting.connections.len() >= MAX_TOTAL {
            waiting.connections.pop_front();
        }
        waiting.connections.push_back(Idle { since: now, limit: idle_limit(headers), connection });
        if !waiting.is_tended {
            waiting.is_tended = true;
            tokio::spawn(tend(Arc::downgrade(&self.waiting), self.clock.clone()));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        locked(&self.waiting)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.waiting().connections.len()
    }
}

impl Waiting {
    /// Closes expired connections, by the wall clock, which keeps running while a sandbox is frozen. If the clock was
    /// set back, the idle time is unknown, so the connection is also closed.
    fn close_expired(&mut self, now: Time) {
        self.connections.retain(|Idle { since, limit, connection }| {
            let within = |from: Time, limit: Duration| from <= now && now < from + limit;
            within(*since, *limit) && within(connection.opened, AGE) && !connection.connection.is_closed()
        });
    }
}

/// How long a connection may be idle after a response with these headers: less than the `timeout` of `Keep-Alive`, which
/// is the endpoint's own limit in seconds. Apache and Node.js announce five seconds by default.
/// <https://datatracker.ietf.org/doc/html/draft-thomson-hybi-http-timeout-03>
fn idle_limit(headers: &HeaderMap) -> Duration {
    let values = headers.get_all("keep-alive").iter().filter_map(|value| value.to_str().ok());
    let timeouts = values.flat_map(|value| value.split(',')).filter_map(|parameter| {
        let (name, seconds) = parameter.split_once('=')?;
        let seconds = seconds.trim().parse().ok()?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| Duration::from_secs(seconds))
    });
    timeouts.map(|timeout| timeout.saturating_sub(MARGIN)).fold(IDLE, Duration::min)
}

/// Closes expired connections until the pool is empty, since idle connections also cost endpoints something.
async fn tend(waiting: Weak<Mutex<Waiting>>, clock: SharedClock) {
    loop {
        pause(IDLE).await;
        let Some(waiting) = waiting.upgrade() else { return };
        let mut waiting = locked(&waiting);
        waiting.close_expired(clock.now());
        if waiting.connections.is_empty() {
            waiting.is_tended = false;
            return;
        }
    }
}

fn locked(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}
