//! Exchanges over TLS with valid and faulty servers on loopback.

use std::sync::Arc;

use http::{Method, StatusCode};
use hyper::body::Bytes;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::{
    RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};
use rustls_native_certs::CertificateResult;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::{
    AddressRules, AttemptError, HttpResponse, Outbound, SystemResolver, endpoint_url::EndpointUrl, trust::Trust,
};
use base::clock::SystemClock;

/// An authority, and a sender that trusts it.
struct World {
    authority: CertifiedIssuer<'static, KeyPair>,
    outbound: Outbound,
}

struct Identity {
    certificate: Certificate,
    key: KeyPair,
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new([name.to_owned()]).expect("a name that certificates can have");
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2099, 1, 1);
    parameters
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key of the default kind")
}

impl World {
    async fn new() -> Self {
        Self::with_authority("authority.example.com").await
    }

    async fn with_authority(name: &str) -> Self {
        let mut of_authority = parameters(name);
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
        let url = EndpointUrl::at_any_host(&format!("https://127.0.0.1:{port}/hooks"), false).expect("a URL");
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

    /// A server with this certificate that requires no client certificate.
    fn server(&self) -> ServerConfig {
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.expect("the default versions").with_no_client_auth();
        builder.with_single_cert(self.chain(), self.key()).expect("the key belongs to the certificate")
    }

    /// A server with this certificate that requires a client certificate from this authority, in one version of TLS.
    fn server_for_clients_of(
        &self,
        authority: &Certificate,
        version: &'static SupportedProtocolVersion,
    ) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("an authority");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[version]);
        let builder = builder.expect("the version is supported");
        let builder = builder.with_client_cert_verifier(verifier.expect("there is an authority"));
        builder.with_single_cert(self.chain(), self.key()).expect("the key belongs to the certificate")
    }
}

/// A server that responds over TLS, and closes the connection with or without close_notify.
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
async fn a_body_without_close_notify_is_kept_as_truncated() {
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

const THANKS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn an_invalid_certificate_is_refused_with_its_true_reason() {
    let world = World::new().await;
    let mut expired = parameters("127.0.0.1");
    expired.not_after = date_time_ymd(2021, 1, 1);
    let mut future = parameters("127.0.0.1");
    future.not_before = date_time_ymd(2098, 1, 1);
    let mut for_clients = parameters("127.0.0.1");
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let (key, own_key) = (key(), key());
    let certificate = parameters("127.0.0.1").self_signed(&key).expect("its own key signs it");
    let mut of_authority = parameters("127.0.0.1");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = of_authority.self_signed(&own_key).expect("its own key signs it");
    let untrusted = "the endpoint's certificate is self-signed, its issuer is not trusted, or an intermediate certificate is \
                     missing";
    for (identity, reason) in [
        (world.issue(expired), "the endpoint's certificate, or one in its chain, has expired"),
        (world.issue(future), "the endpoint's certificate, or one in its chain, is not valid yet"),
        (world.issue(for_clients), "the endpoint's certificate is not a server certificate"),
        (world.issue(parameters("127.0.0.2")), "the endpoint's certificate is not valid for its name"),
        (world.issue(parameters("hotel.example.com")), "the endpoint's certificate is not valid for its name"),
        (Identity { certificate, key }, untrusted),
        // A certificate as `openssl req -x509` creates it.
        (
            Identity { certificate: authority, key: own_key },
            "the endpoint's certificate is not valid; it may be self-signed",
        ),
        (World::with_authority("stranger.example.com").await.issue(parameters("127.0.0.1")), untrusted),
    ] {
        let port = server(identity.server(), THANKS, true).await;
        assert_eq!(world.deliver(port).await, Err(AttemptError::Tls(reason)));
    }
}

#[tokio::test]
async fn a_required_client_certificate_is_reported() {
    let world = World::new().await;
    let identity = world.issue(parameters("127.0.0.1"));
    let authority: &Certificate = world.authority.as_ref();
    for version in [&TLS12, &TLS13] {
        let port = server(identity.server_for_clients_of(authority, version), THANKS, true).await;
        let sent = world.deliver(port).await;
        assert_eq!(sent, Err(AttemptError::Tls("the endpoint requires a client certificate")), "{version:?}");
    }
}

#[tokio::test]
async fn an_endpoint_without_tls_or_with_another_version_is_reported() {
    let world = World::new().await;
    let mut old_hello = b"\x16\x03\x02\x00\x2a\x02\x00\x00\x26\x03\x02".to_vec();
    old_hello.extend([7; 32]);
    old_hello.extend(b"\x00\x00\x2f\x00");
    let alert = |description: u8| vec![0x15, 3, 3, 0, 2, 2, description];
    for (bytes, reason) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the endpoint does not speak TLS on this port"),
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), "the endpoint does not speak TLS on this port"),
        (b"220 smtp.example.com ESMTP\r\n".to_vec(), "the endpoint does not speak TLS on this port"),
        (old_hello, "the endpoint supports neither TLS 1.2 nor TLS 1.3"),
        (alert(70), "the endpoint supports neither TLS 1.2 nor TLS 1.3"),
        (
            alert(40),
            "the endpoint refused the TLS handshake: no cipher suite is shared, or a client certificate is required",
        ),
        (alert(112), "the endpoint has no certificate for its name"),
        (alert(116), "the endpoint requires a client certificate"),
        (alert(80), "the endpoint ended the TLS connection with an internal error"),
        (Vec::new(), "the connection was closed during the TLS handshake"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let (sent, ()) = futures::join!(world.deliver(port), async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            // Reads the client's hello, so that closing does not reset the connection.
            let _ = stream.read(&mut [0; 4_096]).await;
            let _ = stream.write_all(&bytes).await;
        });
        assert_eq!(sent, Err(AttemptError::Tls(reason)), "{}", String::from_utf8_lossy(&bytes));
    }
}
