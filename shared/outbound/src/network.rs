//! The network below an exchange: opens a connection to a checked address.

#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsSocket;
use std::{
    fmt,
    io::{self, ErrorKind::WouldBlock},
    net::{SocketAddr, TcpStream as Socket},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpSocket, TcpStream},
};

/// The size of the system's receive buffer, in bytes. A delivery reads at most 4 KiB of the body.
const RECEIVE_BUFFER: u32 = 64 * 1024;

/// A network. It is an argument, so that a simulation can connect to endpoints in its own process.
pub trait Network: fmt::Debug + Send + Sync {
    /// Opens a connection to this address.
    fn open(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Link>>;
}

/// A network that can be shared between tasks.
pub type SharedNetwork = Arc<dyn Network>;

/// A connection's bytes.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// An open connection.
pub struct Link {
    /// The bytes in both directions.
    pub stream: Box<dyn ByteStream>,
    /// The peer's address.
    pub peer: SocketAddr,
    /// Whether the peer has neither closed the connection nor sent unread bytes. Consumes no bytes.
    pub is_quiet: Box<dyn Fn() -> bool + Send + Sync>,
}

/// The machine's TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn open(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Link>> {
        async move {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // The size is set before connecting, so that it limits the TCP window. Otherwise, an endpoint could send
            // megabytes that are never read.
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
            let stream = socket.connect(address).await?;
            // A request is small and waits for its response, so Nagle's algorithm would only delay it.
            let _ = stream.set_nodelay(true);
            Link::over(stream)
        }
        .boxed()
    }
}

impl Link {
    /// A link over a TCP connection.
    pub(crate) fn over(stream: TcpStream) -> io::Result<Self> {
        let peer = stream.peer_addr()?;
        #[cfg(unix)]
        let socket = Socket::from(stream.as_fd().try_clone_to_owned()?);
        // The command line also runs on Windows.
        #[cfg(windows)]
        let socket = Socket::from(stream.as_socket().try_clone_to_owned()?);
        let is_quiet = move || socket.peek(&mut [0]).is_err_and(|error| error.kind() == WouldBlock);
        Ok(Self { stream: Box::new(stream), peer, is_quiet: Box::new(is_quiet) })
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}
