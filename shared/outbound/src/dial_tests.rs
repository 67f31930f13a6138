//! Dialling with a resolver of prepared results. Nothing leaves the machine: the tests dial only forms of loopback, and
//! a listener on each forbidden address detects connections.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use futures::{FutureExt, future::BoxFuture};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use hyper::body::Bytes;
use tokio::net::TcpListener;
use url::Url;

use super::{AttemptError, Link, Outbound, Resolver, addresses::AddressRules, dial, network::SystemNetwork};
use base::clock::SystemClock;

/// A resolver that returns one result after another, and then none.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn of<const N: usize>(answers: [io::Result<Vec<IpAddr>>; N]) -> Self {
        Self { answers: Mutex::new(answers.into()), asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no holder panics").clone()
    }
}

impl Resolver for Script {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().expect("no holder panics").push(name.to_owned());
        let answer = self.answers.lock().expect("no holder panics").pop_front();
        async move { answer.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into())) }.boxed()
    }
}

fn ip(address: &str) -> IpAddr {
    address.parse().expect(address)
}

fn answer(addresses: &[&str]) -> io::Result<Vec<IpAddr>> {
    Ok(addresses.iter().map(|address| ip(address)).collect())
}

fn allowing(networks: &[&str]) -> AddressRules {
    let allowed_networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
    AddressRules { allowed_networks, allow_http: true }
}

/// A listener on a free port of an address, and the same port on others.
async fn listeners<const N: usize>(addresses: [&str; N]) -> ([TcpListener; N], u16) {
    // Another process may be using the port on one of the other addresses.
    for _ in 0..20 {
        let first = TcpListener::bind((addresses[0], 0)).await.expect("a free port");
        let port = first.local_addr().expect("it listens").port();
        let mut all = vec![first];
        for address in &addresses[1..] {
            all.extend(TcpListener::bind((*address, port)).await.ok());
        }
        if let Ok(all) = all.try_into() {
            return (all, port);
        }
    }
    panic!("no port is free on all of {addresses:?}")
}

fn named(port: u16) -> Url {
    Url::parse(&format!("http://hotel.example.com:{port}/hooks")).expect("a URL")
}

/// Panics if there was a connection. The system keeps a connection for its listener even after the other side has
/// closed it.
fn untouched(listener: TcpListener) {
    let listener = listener.into_std().expect("a socket");
    let accepted = listener.accept();
    let is_untouched = accepted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    assert!(is_untouched, "a connection to {:?}: {accepted:?}", listener.local_addr());
}

async fn connect(url: &Url, rules: &AddressRules, resolver: &dyn Resolver) -> Result<Link, AttemptError> {
    dial::connect(url, rules, resolver, &SystemNetwork).await
}

#[tokio::test]
async fn the_connection_goes_to_the_checked_address() {
    let ([good, bad], port) = listeners(["127.0.0.2", "127.0.0.1"]).await;
    // Resolving twice, once to check and once to connect, would lead to the second address.
    let resolver = Script::of([answer(&["127.0.0.2"]), answer(&["127.0.0.1"])]);
    let stream = connect(&named(port), &allowing(&["127.0.0.2/32"]), &resolver).await.expect("connected");
    assert_eq!(stream.peer, SocketAddr::new(ip("127.0.0.2"), port));
    assert_eq!(resolver.asked(), ["hotel.example.com"], "the name is resolved once");
    assert!(good.accept().await.is_ok());
    untouched(bad);
}

#[tokio::test]
async fn a_name_is_resolved_again_at_every_attempt() {
    let ([_good, bad], port) = listeners(["127.0.0.2", "127.0.0.1"]).await;
    let resolver = Script::of([answer(&["127.0.0.2"]), answer(&["127.0.0.1"])]);
    let rules = allowing(&["127.0.0.2/32"]);
    connect(&named(port), &rules, &resolver).await.expect("connected");
    let second = connect(&named(port), &rules, &resolver).await;
    assert!(matches!(second, Err(AttemptError::Blocked(_))), "{second:?}");
    untouched(bad);
}

#[tokio::test]
async fn one_banned_address_bans_them_all_and_nothing_is_dialled() {
    let ([good, bad], port) = listeners(["127.0.0.2", "127.0.0.1"]).await;
    let rules = allowing(&["127.0.0.2/32", "::1/128"]);
    for mixed in [
        &["127.0.0.2", "127.0.0.1"][..],
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.2", "::ffff:127.0.0.2"],
        &["127.0.0.2", "::1", "127.0.0.2", "::7f00:2"],
        &["127.0.0.2", "169.254.169.254"],
        &["127.0.0.2", "10.0.0.1"],
        &["127.0.0.2", "fe80::1"],
        &["127.0.0.2", "0.0.0.0"],
    ] {
        let outcome = connect(&named(port), &rules, &Script::of([answer(mixed)])).await;
        assert!(matches!(outcome, Err(AttemptError::Blocked(_))), "{mixed:?}: {outcome:?}");
    }
    untouched(good);
    untouched(bad);
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_a_dns_error() {
    for nothing in [Ok(vec![]), Err(io::ErrorKind::NotFound.into()), Err(io::ErrorKind::TimedOut.into())] {
        let outcome = connect(&named(80), &allowing(&[]), &Script::of([nothing])).await;
        assert!(matches!(outcome, Err(AttemptError::Dns(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn an_address_in_the_url_is_checked_without_a_lookup() {
    let ([listener], port) = listeners(["127.0.0.2"]).await;
    let resolver = Script::default();
    for (host, rules) in [
        ("127.0.0.2", &["127.0.0.1/32"][..]),
        ("0x7f.2", &["127.0.0.1/32"]),
        ("[::1]", &["127.0.0.0/8"]),
        ("[::ffff:127.0.0.2]", &["127.0.0.0/8"]),
        ("[::127.0.0.2]", &["127.0.0.0/8"]),
        ("[64:ff9b::7f00:2]", &["127.0.0.0/8"]),
    ] {
        let url = Url::parse(&format!("http://{host}:{port}/")).expect("a URL");
        let outcome = connect(&url, &allowing(rules), &resolver).await;
        assert!(matches!(outcome, Err(AttemptError::Blocked(_))), "{host}: {outcome:?}");
    }
    untouched(listener);
    assert!(resolver.asked().is_empty());
}

#[tokio::test]
async fn every_form_of_loopback_that_is_allowed_can_be_dialled() {
    for (listening, host, network) in [
        ("127.0.0.2", "127.0.0.2", "127.0.0.2/32"),
        ("127.0.0.2", "[::ffff:127.0.0.2]", "::ffff:127.0.0.2/128"),
        ("::1", "[::1]", "::1/128"),
    ] {
        let Ok(listener) = TcpListener::bind((listening, 0)).await else {
            println!("skipped: this machine has no {listening}");
            continue;
        };
        let port = listener.local_addr().expect("it listens").port();
        let url = Url::parse(&format!("http://{host}:{port}/")).expect("a URL");
        let outcome = connect(&url, &allowing(&[network]), &Script::default()).await;
        assert!(outcome.is_ok(), "{host}: {outcome:?}");
    }
}

#[tokio::test]
async fn of_many_addresses_the_first_that_answers_is_taken() {
    let ([listener], port) = listeners(["127.0.0.2"]).await;
    // The other addresses have no listener on this port.
    let mut many: Vec<IpAddr> = (3..=9).map(|last| ip(&format!("127.0.0.{last}"))).collect();
    many.push(ip("127.0.0.2"));
    let stream = connect(&named(port), &allowing(&["127.0.0.0/8"]), &Script::of([Ok(many)])).await.expect("connected");
    assert_eq!(stream.peer.ip(), ip("127.0.0.2"));
    assert!(listener.accept().await.is_ok());
}

#[tokio::test]
async fn of_hundreds_of_addresses_eight_are_tried_and_all_are_checked() {
    let ([ninth], port) = listeners(["127.0.0.2"]).await;
    let mut many: Vec<IpAddr> = (3..=10).map(|last| ip(&format!("127.0.0.{last}"))).collect();
    many.extend(std::iter::repeat_n(ip("127.0.0.2"), 300));
    let rules = allowing(&["127.0.0.0/8"]);
    let outcome = connect(&named(port), &rules, &Script::of([Ok(many.clone())])).await;
    assert!(matches!(outcome, Err(AttemptError::Connect(_))), "{outcome:?}");
    untouched(ninth);
    many.push(ip("10.0.0.1"));
    let outcome = connect(&named(port), &rules, &Script::of([Ok(many)])).await;
    assert!(matches!(outcome, Err(AttemptError::Blocked(_))), "{outcome:?}");
}

#[tokio::test]
async fn when_no_address_answers_the_error_is_that_of_the_last() {
    let ([listener], port) = listeners(["127.0.0.2"]).await;
    drop(listener);
    let many = answer(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    let outcome = connect(&named(port), &allowing(&["127.0.0.0/8"]), &Script::of([many])).await;
    assert!(matches!(outcome, Err(AttemptError::Connect(_))), "{outcome:?}");
}

#[tokio::test]
async fn an_exchange_uses_its_resolver_and_sends_the_host() {
    let ([listener], port) = listeners(["127.0.0.2"]).await;
    let received = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"{}") {
            stream.readable().await.expect("a request");
            let mut piece = [0; 1024];
            if let Ok(read) = stream.try_read(&mut piece) {
                request.extend_from_slice(&piece[..read]);
            }
        }
        stream.try_write(b"HTTP/1.1 204 Fine\r\n\r\n").expect("written");
        String::from_utf8(request).expect("text")
    });
    let resolver = Arc::new(Script::of([answer(&["127.0.0.2"])]));
    let outbound =
        Outbound::at(allowing(&["127.0.0.2/32"]), Arc::clone(&resolver) as Arc<dyn Resolver>, Arc::new(SystemClock));
    let headers = [(HeaderName::from_static("x-a"), HeaderValue::from_static("b"))];
    let answer = outbound.send(Method::POST, &named(port), &headers, Bytes::from_static(b"{}")).await;
    assert_eq!(answer.map(|answer| answer.status), Ok(StatusCode::NO_CONTENT));
    let request = received.await.expect("no panic");
    assert!(request.starts_with("POST /hooks HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains(&format!("\r\nhost: hotel.example.com:{port}\r\n")), "{request}");
    assert_eq!(resolver.asked(), ["hotel.example.com"]);
    // The rules apply here as well.
    let second = outbound.send(Method::POST, &named(port), &[], Bytes::new()).await;
    assert!(matches!(second, Err(AttemptError::Dns(_))), "{second:?}");
}
