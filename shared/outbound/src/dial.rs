//! Dialling: from a host to an open stream. The name is resolved once, every address is checked, and the connection is
//! made to the very addresses that were checked, so that no second answer of the DNS can change the target.

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
    net::{TcpSocket, TcpStream},
    runtime::{Builder, Handle, Runtime},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::{Host, Url};

use crate::{
    addresses::AddressRules,
    attempt_error::{self, AttemptError},
    trust::Trust,
};

/// How long an address may take before the next one is tried beside it (RFC 8305 §5): an endpoint of which one address
/// leads nowhere must be reached by another, and in time.
const HEAD_START: Duration = Duration::from_millis(250);

/// How many addresses of a name are tried: more do not help, and a name with hundreds must not make hundreds of
/// connections.
const MAX_TRIED: usize = 8;

/// How many bytes of a response the system buffers. At most a head of 32 KiB and a body of 4 KiB are ever read.
const RECEIVE_BUFFER: u32 = 64 * 1024;

/// The most look-ups at once. On AWS a process makes 50 attempts at a time, each of which gives up its look-up after
/// five seconds, while the system may go on with it for some ten; on one machine the process makes 70 times as many.
const MAX_LOOKUPS: usize = 8_192;

/// The stack of a thread that looks up a name. The system's call takes some tens of kilobytes.
const LOOKUP_STACK: usize = 512 * 1024;

/// Asks for the addresses of names; handed in, so that tests can answer what no DNS would answer them.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a name, in the order in which they are to be tried. An error when it cannot be resolved.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// A resolver that can be shared between tasks.
pub type SharedResolver = Arc<dyn Resolver>;

/// The machine's own: the hosts file, and the DNS that it is set up for.
///
/// The system's call blocks a thread until the name server has answered or was given up, which may be long after the
/// attempt is over. So look-ups of strangers' names have threads of their own, with which nothing else is done, and
/// more of them than there are ever attempts: a tenant whose names are never answered takes no thread from another's
/// look-up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        async move {
            // Dropped with the attempt: a look-up that has not begun by then never does.
            let mut looking = JoinSet::new();
            // No port: it is the URL's, whatever the answer.
            looking.spawn_blocking_on(move || (name.as_str(), 0).to_socket_addrs(), lookups());
            let found = looking.join_next().await.ok_or(io::ErrorKind::NotFound)?.map_err(io::Error::other)??;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// The threads of look-ups: a runtime for its blocking threads alone, made at the first look-up.
fn lookups() -> &'static Handle {
    static LOOKUPS: OnceLock<Runtime> = OnceLock::new();
    let made = || {
        let mut builder = Builder::new_current_thread();
        builder.thread_name("look-up").thread_stack_size(LOOKUP_STACK).max_blocking_threads(MAX_LOOKUPS);
        builder.build().expect("a runtime that drives nothing asks the system for nothing")
    };
    LOOKUPS.get_or_init(made).handle()
}

/// Opens a TCP connection to the URL's host, to an address that may be dialled. The resolver is asked once at most.
pub async fn connect(url: &Url, rules: &AddressRules, resolver: &dyn Resolver) -> Result<TcpStream, AttemptError> {
    open(url, &addresses(url, rules, resolver).await?).await
}

/// The addresses of the URL's host, all of which may be dialled. The resolver is asked once at most.
pub async fn addresses(url: &Url, rules: &AddressRules, resolver: &dyn Resolver) -> Result<Vec<IpAddr>, AttemptError> {
    let addresses = resolve(url, resolver).await?;
    check(&addresses, rules)?;
    Ok(addresses)
}

/// Opens a TCP connection to one of these addresses of the URL's host, which were checked.
pub async fn open(url: &Url, addresses: &[IpAddr]) -> Result<TcpStream, AttemptError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let tried = addresses.iter().take(MAX_TRIED);
    let stream = dial(tried.map(|address| SocketAddr::new(*address, port)).collect()).await?;
    // Requests are small and wait for their answer: nothing is gained by holding bytes back.
    let _ = stream.set_nodelay(true);
    Ok(stream)
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

/// One address that may not be dialled bans them all, be it one that would not be tried: a mixed answer is an attempt
/// to slip one in.
fn check(addresses: &[IpAddr], rules: &AddressRules) -> Result<(), AttemptError> {
    if addresses.is_empty() {
        return Err(AttemptError::Dns("the name has no address"));
    }
    if addresses.iter().all(|address| rules.permit(*address)) {
        Ok(())
    } else {
        Err(AttemptError::Blocked("the host has an address that is not public"))
    }
}

/// Connects to the first of these addresses that answers. Each is tried when the one before it failed, or had its head
/// start; the first connection wins, and the others are given up.
async fn dial(addresses: Vec<SocketAddr>) -> Result<TcpStream, AttemptError> {
    let mut untried = addresses.into_iter();
    let mut under_way = FuturesUnordered::new();
    let mut failure = AttemptError::Dns("the name has no address");
    loop {
        under_way.extend(untried.next().map(dial_one));
        let wait = if untried.len() == 0 { Duration::MAX } else { HEAD_START };
        match timeout(wait, under_way.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => failure = refused(&error),
            Ok(None) => return Err(failure),
            Err(_) => {}
        }
    }
}

async fn dial_one(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Before the connection stands, which announces it: else an endpoint sends megabytes of which the start is read.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.connect(address).await
}

fn refused(error: &io::Error) -> AttemptError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => AttemptError::Connect("the endpoint refused the connection"),
        io::ErrorKind::TimedOut => AttemptError::Timeout("the endpoint could not be reached in time"),
        _ => AttemptError::Connect("the endpoint could not be reached"),
    }
}

/// What TLS needs, with the certificates that the machine trusts: read when they are first needed, and kept. The sessions
/// that servers let be resumed are kept in it, by the server's name.
pub static TRUST: Trust = Trust::unread();

/// Opens TLS on a connection, with the certificates that are trusted.
pub async fn secure<S>(stream: S, url: &Url, trust: &Trust) -> Result<TlsStream<S>, AttemptError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .map_err(|_| AttemptError::Tls("the host's name cannot have a certificate"))?,
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
