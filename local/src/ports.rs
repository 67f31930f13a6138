//! Ports: the one that clients know, and free ones for what stands behind it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// A port that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Somebody else has it.
    #[error("port {0} is taken; stop what listens there, or choose another one with PORT=")]
    Taken(u16),
    /// The system refuses otherwise.
    #[error("port {port} cannot be used")]
    Refused {
        /// The port.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// Every port of the range is taken.
    #[error("no free port for queues and secrets")]
    NoneFree,
}

/// Ports for a tool that wants to be told one. Below those that systems give to outgoing connections, so that none of
/// these takes one between the choice and its use.
const INTERNAL: std::ops::Range<u16> = 20_000..32_000;

/// Listens where clients expect the service.
pub fn listen(port: u16) -> Result<tokio::net::TcpListener, PortError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => PortError::Taken(port),
        _ => PortError::Refused { port, source },
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    tokio::net::TcpListener::from_std(listener).map_err(refused)
}

/// An address on which nobody listens, sought from a place that depends on the process, so that two runs that start at
/// the same moment do not choose the same.
pub fn free() -> Result<SocketAddr, PortError> {
    let offset = std::process::id().wrapping_mul(31) as usize % INTERNAL.len();
    INTERNAL
        .clone()
        .cycle()
        .skip(offset)
        .take(INTERNAL.len())
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .ok_or(PortError::NoneFree)
}
