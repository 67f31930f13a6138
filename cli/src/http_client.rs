//! The HTTP client for the service. It follows no redirects: a secret must not reach another server.

use std::{error::Error, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{
            Client as Pool,
            connect::{HttpConnector, proxy::Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use tokio::time::timeout;
use url::{Host, Url};

use crate::{failure::Failure, machine};

/// The variables that name the proxy; the first one that is set counts. All addresses beyond this machine have TLS.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The maximum size of a response, in bytes. A page of the feed has at most 100 bodies of 256 KiB.
const LARGEST: usize = 64 * 1024 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// An HTTP request.
pub struct Outgoing<'a> {
    pub method: Method,
    pub url: &'a Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The maximum duration of the exchange.
    pub within: Duration,
}

/// A complete response.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A pool of connections.
pub enum Client {
    Direct(Pool<HttpsConnector<HttpConnector>, Full<Bytes>>),
    /// A pool that connects through the environment's proxy.
    Proxied(Pool<HttpsConnector<Tunnel<HttpConnector>>, Full<Bytes>>),
}

/// Whether requests to an address stay on this machine.
pub fn is_on_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl Client {
    /// A client for the server at this address. It uses the environment's proxy, except for this machine.
    pub fn new(url: &Url) -> Result<Self, Failure> {
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls(url)?).https_or_http().enable_http1();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        let uri: Uri = url.as_str().parse().map_err(|_| Failure::Usage(format!("`{url}` is not an address")))?;
        let proxy = if is_on_this_machine(url) { None } else { proxy_for(&uri, machine::variable)? };
        let Some(proxy) = proxy else {
            return Ok(Self::Direct(Pool::builder(TokioExecutor::new()).build(tls.wrap_connector(connector))));
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(Self::Proxied(Pool::builder(TokioExecutor::new()).build(tls.wrap_connector(tunnel))))
    }

    /// Sends a request and reads the response. The error is human-readable.
    pub async fn send(&self, outgoing: Outgoing<'_>) -> Result<Answer, String> {
        let within = outgoing.within;
        let exchange = async {
            let response = self.response(outgoing).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST).collect().await.map_err(|error| chain(error.as_ref()))?;
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes() })
        };
        timeout(within, exchange).await.unwrap_or_else(|_| Err(late(within)))
    }

    async fn response(&self, outgoing: Outgoing<'_>) -> Result<Response<Incoming>, String> {
        let length = outgoing.body.len();
        let mut request = Request::new(Full::new(outgoing.body));
        *request.uri_mut() =
            outgoing.url.as_str().parse().map_err(|error| format!("the address cannot be used: {error}"))?;
        *request.method_mut() = outgoing.method;
        *request.headers_mut() = outgoing.headers;
        // hyper sends no length for an empty body, which some servers require.
        if request.method() == Method::POST {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let answered = match self {
            Self::Direct(pool) => pool.request(request).await,
            Self::Proxied(pool) => pool.request(request).await,
        };
        answered.map_err(|error| chain(&error))
    }
}

/// The proxy for an address; `None` if no variable names one, or `NO_PROXY` excludes the address. An unusable proxy is
/// an error: otherwise, the request would bypass it, or send its password without TLS.
fn proxy_for(uri: &Uri, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Intercept>, Failure> {
    let named = PROXY_VARIABLES.into_iter().find_map(|name| Some((name, variable(name)?)));
    let Some((name, address)) = named else { return Ok(None) };
    let excluded = variable("NO_PROXY").or_else(|| variable("no_proxy")).unwrap_or_default();
    let matching = |address: &str| Matcher::builder().all(address).no(excluded.as_str()).build().intercept(uri);
    if matching("http://proxy.example").is_none() {
        return Ok(None);
    }
    match matching(&address) {
        Some(proxy) if proxy.uri().scheme_str() == Some("http") => Ok(Some(proxy)),
        _ => Err(unusable_proxy(name, &address)),
    }
}

/// The failure for a proxy that cannot be used. It does not show the address, which may contain a password.
fn unusable_proxy(variable: &str, address: &str) -> Failure {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&letter);
    let scheme = address.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| scheme.chars().all(is_plain));
    Failure::Usage(match scheme {
        Some(scheme) if !scheme.eq_ignore_ascii_case("http") => {
            format!("{variable} names a proxy with {scheme}://, but only http:// proxies are supported")
        }
        _ => format!("{variable} is not the address of a proxy: write it as http://proxy.example.com:3128"),
    })
}

fn late(within: Duration) -> String {
    format!("no answer within {} s", within.as_secs())
}

/// An error's causes, without the outermost error, which says only that the client failed.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    // Some errors include the text of their cause.
    causes.dedup_by(|inner, outer| outer.contains(inner.as_str()));
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}

/// The TLS configuration with this system's certificates, or without any for an address without TLS.
fn tls(url: &Url) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    if url.scheme() == "https" {
        let system = rustls_native_certs::load_native_certs();
        let reasons = system.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            return Err(Failure::Certificates(reasons));
        }
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions");
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_this_machine() {
        let here = |url: &str| is_on_this_machine(&url.parse().expect("an address"));
        for url in ["http://localhost:3000/a", "http://127.0.0.2", "http://[::1]:80", "https://api.localhost"] {
            assert!(here(url), "{url}");
        }
        for url in ["http://localhost.example", "http://10.0.0.1", "https://api.waypost.example"] {
            assert!(!here(url), "{url}");
        }
    }

    /// The proxy for an address of the service, with these variables.
    fn proxy(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let value = |name: &str| {
            let set = variables.iter().find(|(variable, _)| *variable == name);
            set.map(|(_, value)| (*value).to_owned())
        };
        let proxy = proxy_for(&Uri::from_static("https://api.waypost.example/"), value);
        proxy.map(|proxy| proxy.map(|proxy| proxy.uri().to_string())).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_proxy_is_named_by_the_first_variable_that_is_set() {
        let found = |address: &str| -> Result<_, String> { Ok(Some(address.to_owned())) };
        assert_eq!(proxy(&[]), Ok(None));
        assert_eq!(proxy(&[("ALL_PROXY", "http://all:1")]), found("http://all:1/"));
        let both = [("ALL_PROXY", "socks5://all:1"), ("https_proxy", "user:pass@secure:2")];
        assert_eq!(proxy(&both), found("http://secure:2/"));
        let excluded = [("HTTPS_PROXY", "socks5://secure:2"), ("NO_PROXY", "waypost.example")];
        assert_eq!(proxy(&excluded), Ok(None));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        for (variable, address, scheme) in [
            ("ALL_PROXY", "socks5://user:s3cret@proxy:1080", "socks5"),
            ("HTTPS_PROXY", "https://user:s3cret@proxy:443", "https"),
            ("https_proxy", "quic://user:s3cret@proxy:443", "quic"),
        ] {
            let expected = format!("{variable} names a proxy with {scheme}://, but only http:// proxies are supported");
            assert_eq!(proxy(&[(variable, address)]), Err(expected));
        }
        for wrong in ["http://user:s3cret@pro xy", "user:s3cret://@proxy", "http://"] {
            let refused = proxy(&[("HTTPS_PROXY", wrong)]).expect_err("no address");
            assert!(refused.starts_with("HTTPS_PROXY is not the address of a proxy"), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_named_as_the_reason() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url: Url = format!("http://{}/", listener.local_addr().expect("it listens")).parse().expect("an address");
        drop(listener);
        let client = Client::new(&url).expect("no TLS");
        let within = Duration::from_secs(60);
        let outgoing =
            Outgoing { method: Method::GET, url: &url, headers: HeaderMap::new(), body: Bytes::new(), within };
        let reason = client.send(outgoing).await.err().expect("closed");
        assert!(reason.to_lowercase().contains("refused"), "{reason}");
    }
}
