//! Dialling: from a host to an open stream. The name is resolved once and every address is checked, so a second DNS
//! response cannot redirect the connection.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{Builder, Handle, Runtime},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::{Host, Url};

use crate::{
    addresses::AddressRules,
    attempt_error::{self, AttemptError},
    network::{Link, Network},
    trust::Trust,
};

/// How long an address may take before the next one is tried as well (RFC 8305 §5), so that an unreachable address does
/// not use up the timeout.
const HEAD_START: Duration = Duration::from_millis(250);

/// The maximum number of addresses of a name that are tried: a name with hundreds of addresses must not cause hundreds
/// of connections.
const MAX_TRIED: usize = 8;

/// The maximum number of concurrent lookups. An attempt abandons its lookup after five seconds, but the system call may
/// block its thread for about ten. A process makes 50 concurrent attempts on AWS, and 70 times as many on one machine.
const MAX_LOOKUPS: usize = 8_192;

/// The stack of a lookup's thread. The system call takes a few dozen kilobytes.
const LOOKUP_STACK: usize = 512 * 1024;

/// A resolver of names. It is an argument, so that tests can return addresses that no DNS would return.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a name, in the order in which they are tried. Fails if the name cannot be resolved.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// A resolver that can be shared between tasks.
pub type SharedResolver = Arc<dyn Resolver>;

/// The system's resolver: the hosts file, and the configured DNS.
///
/// The system call blocks a thread until the name server responds or the system gives up, possibly long after the
/// attempt has ended. So lookups have separate threads, more than there are attempts, and one tenant's unresponsive
/// name servers do not delay another's lookups.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        async move {
            // Dropping the set with the attempt cancels a lookup that has not begun.
            let mut lookup = JoinSet::new();
            // The port is a placeholder: only the addresses are used.
            lookup.spawn_blocking_on(move || (name.as_str(), 0).to_socket_addrs(), lookups());
            let found = lookup.join_next().await.ok_or(io::ErrorKind::NotFound)?.map_err(io::Error::other)??;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// The runtime whose blocking threads make the lookups, created for the first one.
fn lookups() -> &'static Handle {
    static LOOKUPS: OnceLock<Runtime> = OnceLock::new();
    let build = || {
        let mut builder = Builder::new_current_thread();
        builder.thread_name("lookup").thread_stack_size(LOOKUP_STACK).max_blocking_threads(MAX_LOOKUPS);
        builder.build().expect("a runtime without drivers needs nothing from the system")
    };
    LOOKUPS.get_or_init(build).handle()
}

/// Opens a connection to the URL's host, at an allowed address. Resolves at most once.
pub async fn connect(
    url: &Url,
    rules: &AddressRules,
    resolver: &dyn Resolver,
    network: &dyn Network,
) -> Result<Link, AttemptError> {
    open(url, &addresses(url, rules, resolver).await?, network).await
}

/// The addresses of the URL's host. Fails unless all of them are allowed. Resolves at most once.
pub async fn addresses(url: &Url, rules: &AddressRules, resolver: &dyn Resolver) -> Result<Vec<IpAddr>, AttemptError> {
    let addresses = resolve(url, resolver).await?;
    check(&addresses, rules)?;
    Ok(addresses)
}

/// Opens a connection to one of these checked addresses of the URL's host.
pub async fn open(url: &Url, addresses: &[IpAddr], network: &dyn Network) -> Result<Link, AttemptError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let tried = addresses.iter().take(MAX_TRIED);
    dial(tried.map(|address| SocketAddr::new(*address, port)).collect(), network).await
}

async fn resolve(url: &Url, resolver: &dyn Resolver) -> Result<Vec<IpAddr>, AttemptError> {
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(vec![address.into()]),
        Some(Host::Ipv6(address)) => Ok(vec![address.into()]),
        Some(Host::Domain(name)) => {
            let unresolved = |_| AttemptError::Dns("the name could not be resolved");
            resolver.addresses(name).await.map_err(unresolved)
        }
        None => Err(AttemptError::Blocked("the URL has no host")),
    }
}

/// Checks the addresses. One forbidden address blocks all of them, even if it would not be tried: a mixed result is an
/// attempt to bypass the rules.
fn check(addresses: &[IpAddr], rules: &AddressRules) -> Result<(), AttemptError> {
    if addresses.is_empty() {
        return Err(AttemptError::Dns("the name does not resolve to an address"));
    }
    if addresses.iter().all(|address| rules.permit(*address)) {
        Ok(())
    } else {
        Err(AttemptError::Blocked("the host resolves to an address that is not public"))
    }
}

/// Connects to the first of these addresses that accepts. The next address is tried when an attempt fails or
/// [`HEAD_START`] has passed; the first connection wins, and the others are dropped.
async fn dial(addresses: Vec<SocketAddr>, network: &dyn Network) -> Result<Link, AttemptError> {
    let mut untried = addresses.into_iter();
    let mut in_flight = FuturesUnordered::new();
    let mut failure = AttemptError::Dns("the name does not resolve to an address");
    loop {
        in_flight.extend(untried.next().map(|address| network.open(address)));
        let wait = if untried.len() == 0 { Duration::MAX } else { HEAD_START };
        match timeout(wait, in_flight.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => failure = refused(&error),
            Ok(None) => return Err(failure),
            Err(_) => {}
        }
    }
}

fn refused(error: &io::Error) -> AttemptError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => AttemptError::Connect("the endpoint refused the connection"),
        io::ErrorKind::TimedOut => AttemptError::Timeout("the endpoint could not be reached in time"),
        _ => AttemptError::Connect("the endpoint could not be reached"),
    }
}

/// The process's TLS configuration, with the machine's trusted authorities, which are read on first use and kept. It
/// also stores TLS sessions for resumption, by server name.
pub static TRUST: Trust = Trust::unread();

/// Starts TLS on a connection with the trusted authorities.
pub async fn secure<S>(stream: S, url: &Url, trust: &Trust) -> Result<TlsStream<S>, AttemptError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .map_err(|_| AttemptError::Tls("no certificate can be issued for this host name"))?,
        Some(Host::Ipv4(address)) => ServerName::IpAddress(IpAddr::from(address).into()),
        Some(Host::Ipv6(address)) => ServerName::IpAddress(IpAddr::from(address).into()),
        None => return Err(AttemptError::Blocked("the URL has no host")),
    };
    let connector = TlsConnector::from(trust.of_machine().await?);
    connector.connect(name, stream).await.map_err(|error| handshake_failure(&error))
}

fn handshake_failure(error: &io::Error) -> AttemptError {
    AttemptError::Tls(attempt_error::tls_reason(error).unwrap_or("the connection was closed during the TLS handshake"))
}
