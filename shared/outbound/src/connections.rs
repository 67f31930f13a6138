//! Connections that are kept from one exchange to the next: most of what an attempt takes of the processor behind TLS is
//! the handshake.
//!
//! A kept connection serves one tenant, one host and one port, and only while the host's name still resolves to the
//! address that it leads to: the name is resolved and the addresses are checked before every request. One that the
//! endpoint has closed, or on which it has sent something that was not asked for, serves no request.

use std::{
    collections::VecDeque,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use url::{Position, Url};

use crate::client::Connection;
use base::{SharedClock, Time, pause};

/// How long a connection may wait for the next request. Shorter than gateways and balancers on the way forget a silent
/// connection without a word, since a request into such a one would wait for its whole time.
const IDLE: Duration = Duration::from_secs(30);

/// How old a connection may become: after that, the endpoint's certificate is looked at again.
const AGE: Duration = Duration::from_secs(5 * 60);

/// How many are kept of one tenant to one endpoint: as many as Lambda hands over messages at once.
const OF_AN_ENDPOINT: usize = 10;

/// How many are kept in all. Each takes some tens of kilobytes, and two of the thousand descriptors of a function.
const IN_ALL: usize = 100;

/// The connections that wait for their next request. Clones share them.
#[derive(Clone)]
pub(crate) struct Connections {
    waiting: Arc<Mutex<Waiting>>,
    clock: SharedClock,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The one that has waited longest first.
    connections: VecDeque<Idle>,
    /// Whether a task closes those that wait too long.
    is_tended: bool,
}

#[derive(Debug)]
struct Idle {
    since: Time,
    connection: EndpointConnection,
}

/// An endpoint as one tenant sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    tenant: String,
    /// Scheme, host and port.
    origin: String,
}

/// A connection to an endpoint.
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
    /// None yet.
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { waiting: Arc::default(), clock }
    }

    /// A connection to the endpoint that was opened just now.
    pub(crate) fn opened(&self, endpoint: Endpoint, connection: Connection) -> EndpointConnection {
        EndpointConnection { endpoint, opened: self.clock.now(), connection }
    }

    /// A connection to the endpoint that leads to one of these addresses, the one that was used last, if there is any.
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

    /// Keeps a connection whose last answer is complete.
    pub(crate) fn keep(&self, connection: EndpointConnection) {
        let now = self.clock.now();
        let mut waiting = self.waiting();
        waiting.close_expired(now);
        let same = |idle: &Idle| idle.connection.endpoint == connection.endpoint;
        if waiting.connections.iter().filter(|idle| same(idle)).count() >= OF_AN_ENDPOINT {
            let oldest = waiting.connections.iter().position(same);
            oldest.and_then(|position| waiting.connections.remove(position));
        } else if waiting.connections.len() >= IN_ALL {
            waiting.connections.pop_front();
        }
        waiting.connections.push_back(Idle { since: now, connection });
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
    /// Closes what may serve no request any more. By the wall clock, which goes on while a sandbox is frozen; one that was
    /// set back says nothing of how long a connection has waited.
    fn close_expired(&mut self, now: Time) {
        self.connections.retain(|Idle { since, connection }| {
            let within = |from: Time, limit: Duration| from <= now && now < from + limit;
            within(*since, IDLE) && within(connection.opened, AGE) && !connection.connection.is_closed()
        });
    }
}

/// Closes connections that wait too long, for as long as there are any: endpoints pay for them, too.
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
