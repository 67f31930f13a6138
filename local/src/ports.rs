//! The ports of the gateway and of the AWS stand-ins.

use std::{
    io,
    net::{self, Ipv4Addr, SocketAddr},
};

use outbound::AddressRules;
use tokio::net::{TcpListener, TcpSocket};

use crate::test_overrides::TestOverrides;

/// A port that this process listens on.
pub struct Port {
    /// The listener that accepts connections.
    pub listener: TcpListener,
    /// The address that the port listens on.
    pub address: SocketAddr,
}

/// All ports, opened before anything starts, so that each part knows the others' addresses.
pub struct Ports {
    /// The port of the gateway.
    pub gateway: Port,
    /// The port of the table.
    pub table: Port,
    /// The port of the queues and the secrets.
    pub services: Port,
    /// The port of the Lambda API.
    pub lambda: Port,
    /// The port of the Runtime API.
    pub runtime: Port,
}

/// The backlog of connections waiting to be accepted. A function with a thousand polls opens as many connections at
/// startup, and a client that finds the backlog full retries only after one second, then three, then seven.
const WAITING_CONNECTIONS: u32 = 4096;

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Another process is using the port.
    #[error("port {0} is in use; stop the program that uses it, or choose another port with PORT=")]
    Taken(u16),
    /// The system refuses to open the port for another reason.
    #[error("port {port} cannot be used")]
    Refused {
        port: u16,
        /// The system's error.
        source: io::Error,
    },
}

impl Port {
    /// Listens on this port, or on a free one if it is 0.
    pub fn open(host: Ipv4Addr, port: u16) -> Result<Self, PortError> {
        let open = || -> io::Result<Self> {
            let socket = TcpSocket::new_v4()?;
            // Without this option, the last run's connections in TIME_WAIT would block the port.
            socket.set_reuseaddr(true)?;
            socket.bind((host, port).into())?;
            let listener = socket.listen(WAITING_CONNECTIONS)?;
            Ok(Self { address: listener.local_addr()?, listener })
        };
        open().map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => PortError::Taken(port),
            _ => PortError::Refused { port, source },
        })
    }

    /// The port's address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Ports {
    /// Opens this port on 127.0.0.1 for the gateway. Each stand-in listens on the port on 127.0.0.1 that a test chose,
    /// or otherwise on a free port on `host`.
    pub fn open(gateway: u16, host: Ipv4Addr, overrides: &TestOverrides) -> Result<Self, PortError> {
        let placed = |port: Option<u16>| match port {
            Some(port) => Port::open(Ipv4Addr::LOCALHOST, port),
            None => Port::open(host, 0),
        };
        Ok(Self {
            gateway: Port::open(Ipv4Addr::LOCALHOST, gateway)?,
            table: placed(overrides.table_port)?,
            services: placed(overrides.services_port)?,
            lambda: placed(None)?,
            runtime: placed(None)?,
        })
    }
}

/// The host of the AWS stand-ins: a loopback address that no webhook can reach.
///
/// Linux has all of 127.0.0.0/8. macOS has only 127.0.0.1, unless `ifconfig lo0 alias` adds others. If webhooks may
/// reach every address, only the stand-ins' credentials protect them.
pub fn out_of_reach(rules: &AddressRules) -> Ipv4Addr {
    let free = |host: Ipv4Addr| !rules.permit(host.into()) && net::TcpListener::bind((host, 0)).is_ok();
    (1..10).map(|last| Ipv4Addr::new(127, 0, 0, last)).find(|host| free(*host)).unwrap_or_else(|| {
        tracing::warn!(
            "webhooks may call every loopback address of this machine (DELIVERY_ALLOWED_NETWORKS), including the local \
             AWS services, which only their credentials protect; on macOS, `ifconfig lo0 alias 127.0.0.2` adds another \
             address"
        );
        Ipv4Addr::LOCALHOST
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(networks: &[&str]) -> AddressRules {
        let allowed_networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
        AddressRules { allow_http: true, allowed_networks }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn stand_ins_listen_where_webhooks_may_not_send() {
        assert_eq!(out_of_reach(&rules(&[])), Ipv4Addr::LOCALHOST);
        assert_eq!(out_of_reach(&rules(&["127.0.0.1/32"])), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(out_of_reach(&rules(&["127.0.0.0/30", "10.0.0.0/8"])), Ipv4Addr::new(127, 0, 0, 4));
        assert_eq!(out_of_reach(&rules(&["127.0.0.0/8"])), Ipv4Addr::LOCALHOST, "no other is left");
    }
}
