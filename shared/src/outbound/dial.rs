//! Dialling: from a host to an open stream. The name is resolved once, every address is checked, and the connection is
//! made to the very addresses that were checked, so that no second answer of the DNS can change the target.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::{TlsConnector, client::TlsStream};
use url::{Host, Url};

use super::{addresses::AddressRules, exchange::AttemptError};

/// Opens a TCP connection to the URL's host, to an address that may be dialled.
pub async fn connect(url: &Url, rules: &AddressRules) -> Result<TcpStream, AttemptError> {
    let addresses = resolve(url).await?;
    check(&addresses, rules)?;
    let mut failure = AttemptError::Dns("the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are small and wait for their answer: nothing is gained by holding bytes back.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failure = refused(&error),
        }
    }
    Err(failure)
}

async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, AttemptError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let literal = |address: IpAddr| Ok(vec![SocketAddr::new(address, port)]);
    match url.host() {
        Some(Host::Ipv4(address)) => literal(address.into()),
        Some(Host::Ipv6(address)) => literal(address.into()),
        Some(Host::Domain(name)) => match tokio::net::lookup_host((name, port)).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(_) => Err(AttemptError::Dns("the name could not be resolved")),
        },
        None => Err(AttemptError::Blocked("the URL has no host")),
    }
}

/// One address that may not be dialled bans them all: a mixed answer is an attempt to slip one in.
fn check(addresses: &[SocketAddr], rules: &AddressRules) -> Result<(), AttemptError> {
    if addresses.is_empty() {
        return Err(AttemptError::Dns("the name has no address"));
    }
    if addresses.iter().all(|address| rules.permit(address.ip())) {
        Ok(())
    } else {
        Err(AttemptError::Blocked("the host has an address that is not public"))
    }
}

fn refused(error: &io::Error) -> AttemptError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => AttemptError::Connect("the endpoint refused the connection"),
        io::ErrorKind::TimedOut => AttemptError::Timeout("the endpoint could not be reached in time"),
        _ => AttemptError::Connect("the endpoint could not be reached"),
    }
}

/// Opens TLS on a connection, with the certificates that the machine trusts.
pub async fn secure(stream: TcpStream, url: &Url) -> Result<TlsStream<TcpStream>, AttemptError> {
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .map_err(|_| AttemptError::Tls("the host's name cannot have a certificate"))?,
        Some(Host::Ipv4(address)) => ServerName::IpAddress(IpAddr::from(address).into()),
        Some(Host::Ipv6(address)) => ServerName::IpAddress(IpAddr::from(address).into()),
        None => return Err(AttemptError::Blocked("the URL has no host")),
    };
    let connector = TlsConnector::from(configuration().await?);
    connector.connect(name, stream).await.map_err(|error| handshake_failure(&error))
}

fn handshake_failure(error: &io::Error) -> AttemptError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    AttemptError::Tls(match cause {
        Some(rustls::Error::InvalidCertificate(_)) => {
            "the endpoint's certificate is not valid for its name, or is not trusted"
        }
        Some(_) => "the endpoint and the service could not agree on TLS",
        None => "the connection was closed during the TLS handshake",
    })
}

/// Built at the first need, since most cold starts of most functions never dial.
async fn configuration() -> Result<Arc<ClientConfig>, AttemptError> {
    static CONFIGURATION: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();
    CONFIGURATION.get_or_try_init(async || build()).await.cloned()
}

fn build() -> Result<Arc<ClientConfig>, AttemptError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| AttemptError::Tls("the service has no version of TLS to offer"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|address| SocketAddr::new(address.parse().expect("an address"), 443)).collect()
    }

    #[test]
    fn one_banned_address_bans_a_mixed_answer() {
        let rules = AddressRules::default();
        assert_eq!(check(&addresses(&["1.1.1.1", "2606:4700::1111"]), &rules), Ok(()));
        for mixed in [&["1.1.1.1", "127.0.0.1"][..], &["::1", "1.1.1.1"], &["1.1.1.1", "::ffff:10.0.0.1"]] {
            assert!(matches!(check(&addresses(mixed), &rules), Err(AttemptError::Blocked(_))), "{mixed:?}");
        }
        assert!(matches!(check(&[], &rules), Err(AttemptError::Dns(_))));
    }
}
