//! Exchanges over TLS with servers on loopback that are right or wrong in many ways.

use std::sync::Arc;

use http::{Method, StatusCode};
use hyper::body::Bytes;
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use rustls_native_certs::CertificateResult;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::{AddressRules, AttemptError, HttpResponse, Outbound, SystemResolver, trust::Trust};
use base::clock::SystemClock;

/// An authority, and one who trusts it.
struct World {
    authority: CertifiedIssuer<'static, KeyPair>,
    outbound: Outbound,
}

/// A certificate and its key.
struct Identity {
    certificate: Certificate,
    key: KeyPair,
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new([name.to_owned()]).expect("a name that certificates can have");
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2099, 1, 1);
    parameters
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key of the default kind")
}

impl World {
    async fn new() -> Self {
        let mut of_authority = parameters("authority.example.com");
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(of_authority, key()).expect("its own key signs it");
        let trust: &'static Trust = Box::leak(Box::new(Trust::unread()));
        let mut found = CertificateResult::default();
        found.certs = vec![authority.der().clone()];
        trust.configuration(|| found).await.expect("an authority");
        let allowed_networks = vec!["127.0.0.1/32".parse().expect("a network")];
        let rules = AddressRules { allowed_networks, allow_http: true };
        let mut outbound = Outbound::at(rules, Arc::new(SystemResolver), Arc::new(SystemClock));
        outbound.trust = trust;
        Self { authority, outbound }
    }

    fn issue(&self, parameters: CertificateParams) -> Identity {
        let key = key();
        Identity { certificate: parameters.signed_by(&key, &self.authority).expect("an authority signs"), key }
    }

    async fn deliver(&self, port: u16) -> Result<HttpResponse, AttemptError> {
        let url = Url::parse(&format!("https://127.0.0.1:{port}/hooks")).expect("a URL");
        self.outbound.send_for("hotel", Method::POST, &url, &[], Bytes::from_static(b"{}")).await
    }
}

impl Identity {
    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()))
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.der().clone()]
    }

    /// A server with this certificate that asks for none.
    fn server(&self) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the default versions").with_no_client_auth();
        builder.with_single_cert(self.chain(), self.key()).expect("the key belongs to the certificate")
    }
}

/// Answers over TLS, and closes the connection, with or without saying so in TLS.
async fn server(configuration: ServerConfig, response: &'static str, says_goodbye: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    let acceptor = TlsAcceptor::from(Arc::new(configuration));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = Vec::new();
                while !request.ends_with(b"{}") {
                    if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                        return;
                    }
                }
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.flush().await;
                if says_goodbye {
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_body_that_ends_without_a_goodbye_in_tls_is_kept_as_truncated() {
    let world = World::new().await;
    let response = "HTTP/1.1 200 OK\r\n\r\nthanks";
    for says_goodbye in [true, false] {
        let port = server(world.issue(parameters("127.0.0.1")).server(), response, says_goodbye).await;
        let response = world.deliver(port).await.expect("a response");
        assert_eq!((response.status, response.text().as_str()), (StatusCode::OK, "thanks"));
        assert_eq!(response.truncated, !says_goodbye);
        let url = Url::parse(&format!("https://127.0.0.1:{port}/token")).expect("a URL");
        let sent = world.outbound.send(Method::POST, &url, &[], Bytes::from_static(b"{}")).await;
        assert_eq!(sent.is_ok(), says_goodbye, "{sent:?}");
    }
}
