//! TLS endpoints with valid or invalid certificates. They forward requests over plain HTTP.

use std::{net::SocketAddr, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// A listener that terminates TLS and forwards the content, and which stops when it is dropped.
pub struct TlsFront {
    /// The listener's address.
    pub address: SocketAddr,
    accepting: JoinHandle<()>,
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the library supports its default kind of key")
}

/// The parameters of a certificate for these names and addresses, which is either expired or valid for this century.
fn parameters(names: &[&str], expired: bool) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).expect("the tests use valid names");
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = if expired { date_time_ymd(2021, 1, 1) } else { date_time_ymd(2099, 1, 1) };
    parameters
}

impl Authority {
    /// A new authority, which no client trusts yet.
    pub fn new() -> Self {
        let mut authority = parameters(&[], false);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(authority, key()).expect("self-signing succeeds"))
    }

    /// The authority's certificate in PEM, for clients that trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// An identity with these names, which may be expired.
    pub fn issue(&self, names: &[&str], expired: bool) -> Identity {
        let key = key();
        let certificate = parameters(names, expired).signed_by(&key, &self.0).expect("an authority signs");
        Identity { certificate: certificate.der().clone(), key }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// A self-signed identity.
    pub fn self_signed(names: &[&str]) -> Self {
        let key = key();
        let certificate = parameters(names, false).self_signed(&key).expect("self-signing succeeds");
        Self { certificate: certificate.der().clone(), key }
    }

    fn configuration(self) -> ServerConfig {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider has the default versions").with_no_client_auth();
        builder.with_single_cert(vec![self.certificate], key).expect("the key belongs to the certificate")
    }
}

impl TlsFront {
    /// A listener with this identity, on a free port.
    pub async fn start(identity: Identity, inside: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let acceptor = TlsAcceptor::from(Arc::new(identity.configuration()));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let _ = stream.set_nodelay(true);
                tokio::spawn(async move {
                    // Clients that do not trust the certificate close the connection.
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let Ok(mut inside) = TcpStream::connect(inside).await else { return };
                    let _ = inside.set_nodelay(true);
                    let _ = copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Self { address, accepting }
    }

    /// The URL for a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
