//! Addresses: the one that clients know, and those of what stands behind it.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

use outbound::addresses::AddressRules;

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
}

/// Listens on this port, or on a free one where it is 0.
pub fn listen(host: Ipv4Addr, port: u16) -> Result<tokio::net::TcpListener, PortError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => PortError::Taken(port),
        _ => PortError::Refused { port, source },
    };
    let listener = TcpListener::bind((host, port)).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    tokio::net::TcpListener::from_std(listener).map_err(refused)
}

/// Where the stand-ins for AWS listen: on an address of this machine that no webhook may reach.
///
/// Linux has all of 127.0.0.0/8. macOS has 127.0.0.1 alone, unless `ifconfig lo0 alias` gives it more; where webhooks may
/// reach every address that there is, only the stand-ins' credentials keep them out.
pub fn out_of_reach(rules: &AddressRules) -> Ipv4Addr {
    let free = |host: Ipv4Addr| !rules.permit(host.into()) && TcpListener::bind((host, 0)).is_ok();
    (1..10).map(|last| Ipv4Addr::new(127, 0, 0, last)).find(|host| free(*host)).unwrap_or_else(|| {
        tracing::warn!(
            "webhooks may send to every loopback address here (DELIVERY_ALLOWED_NETWORKS), and so to what stands for AWS, \
             which refuses them for want of credentials only; `ifconfig lo0 alias 127.0.0.2` gives macOS another address"
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
