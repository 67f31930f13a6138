//! Which exchanges share a connection, and which never do. Endpoints listen on loopback, and the tests set the clock.

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture, future::join_all};
use http::{Method, StatusCode};
use hyper::body::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{
    AttemptError, HttpResponse, Limits, Outbound, Resolver,
    addresses::AddressRules,
    client::{self, Connection, Unanswered},
    connections, dial,
    endpoint_url::EndpointUrl,
    network::Link,
};
use base::{Time, pause, testing::FixedClock};

const NOON: Time = Time::from_millis(1_795_262_400_000);
const NO_CONTENT: &str = "HTTP/1.1 204 Fine\r\n\r\n";

#[derive(Debug, Clone)]
enum Reaction {
    /// Sends this response and waits for the next request.
    Say(&'static str),
    /// Sends this response and closes the connection.
    SayAndClose(&'static str),
    /// Sends this response, and resets the connection between two meetings at the barrier.
    SayAndReset(&'static str, Arc<tokio::sync::Barrier>),
    /// Closes the connection without a response, after this time.
    CloseAfter(Duration),
    /// Responds once all requests at the barrier are waiting for a response.
    Together(Arc<tokio::sync::Barrier>),
}

/// An endpoint that handles its first requests in these ways, and responds to all others.
struct Endpoint {
    port: u16,
    /// Each request's connection, by number.
    requests: Arc<Mutex<Vec<usize>>>,
}

impl Endpoint {
    async fn start(reactions: impl IntoIterator<Item = Reaction>) -> Self {
        Self::start_at("127.0.0.2:0", reactions).await.expect("a free port")
    }

    async fn start_at(address: &str, reactions: impl IntoIterator<Item = Reaction>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        let requests = Arc::<Mutex<Vec<usize>>>::default();
        let seen = Arc::clone(&requests);
        let reactions = Arc::new(Mutex::new(reactions.into_iter().collect::<Vec<_>>()));
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(stream, connection, Arc::clone(&seen), Arc::clone(&reactions)));
            }
        });
        Ok(Self { port, requests })
    }

    fn requests(&self) -> Vec<usize> {
        self.requests.lock().expect("no holder panics").clone()
    }

    fn url(&self) -> Url {
        Url::parse(&format!("http://hotel.example.com:{}/hooks", self.port)).expect("a URL")
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: Arc<Mutex<Vec<usize>>>,
    reactions: Arc<Mutex<Vec<Reaction>>>,
) -> io::Result<()> {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"{}") {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        seen.lock().expect("no holder panics").push(connection);
        let reaction = {
            let mut reactions = reactions.lock().expect("no holder panics");
            if reactions.is_empty() { Reaction::Say(NO_CONTENT) } else { reactions.remove(0) }
        };
        match reaction {
            Reaction::Say(answer) => stream.write_all(answer.as_bytes()).await?,
            Reaction::SayAndClose(answer) => return stream.write_all(answer.as_bytes()).await,
            Reaction::SayAndReset(answer, meeting) => {
                stream.write_all(answer.as_bytes()).await?;
                meeting.wait().await;
                stream.set_zero_linger()?;
                drop(stream);
                meeting.wait().await;
                return Ok(());
            }
            Reaction::CloseAfter(wait) => {
                pause(wait).await;
                return Ok(());
            }
            Reaction::Together(all) => {
                all.wait().await;
                stream.write_all(NO_CONTENT.as_bytes()).await?;
            }
        }
    }
}

/// A resolver that returns the test's latest addresses for every name.
#[derive(Debug, Clone)]
struct Names(Arc<Mutex<Vec<IpAddr>>>);

impl Names {
    fn lead_to(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().expect("an address"));
        *self.0.lock().expect("no holder panics") = addresses.collect();
    }
}

impl Resolver for Names {
    fn addresses<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let addresses = self.0.lock().expect("no holder panics").clone();
        async move { Ok(addresses) }.boxed()
    }
}

/// A sender that may dial two loopback addresses.
struct Sender {
    outbound: Outbound,
    names: Names,
    clock: FixedClock,
}

impl Sender {
    fn new() -> Self {
        let names = Names(Arc::default());
        let clock = FixedClock::at(NOON);
        names.lead_to(&["127.0.0.2"]);
        let allowed_networks = vec!["127.0.0.2/31".parse().expect("a network")];
        let rules = AddressRules { allowed_networks, allow_http: true };
        Self { outbound: Outbound::at(rules, Arc::new(names.clone()), Arc::new(clock.clone())), names, clock }
    }

    async fn send_for(&self, tenant: &str, url: &Url) -> Result<HttpResponse, AttemptError> {
        let url = EndpointUrl::at_any_host(url.as_str(), true).expect("a URL");
        self.outbound.send_for(tenant, Method::POST, &url, &[], Bytes::from_static(b"{}")).await
    }

    async fn send(&self, endpoint: &Endpoint) -> Result<StatusCode, AttemptError> {
        self.send_for("hotel", &endpoint.url()).await.map(|answer| answer.status)
    }

    async fn delivers(&self, endpoint: &Endpoint) {
        assert_eq!(self.send(endpoint).await, Ok(StatusCode::NO_CONTENT));
    }
}

#[tokio::test]
async fn exchanges_of_a_tenant_with_an_endpoint_share_a_connection() {
    let endpoint = Endpoint::start([]).await;
    let sender = Sender::new();
    for _ in 0..3 {
        sender.delivers(&endpoint).await;
    }
    assert_eq!(endpoint.requests(), [0, 0, 0]);
}

#[tokio::test]
async fn an_exchange_without_a_tenant_has_its_own_connection() {
    let endpoint = Endpoint::start([]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    for _ in 0..2 {
        let sent = sender.outbound.send(Method::POST, &endpoint.url(), &[], Bytes::from_static(b"{}")).await;
        assert_eq!(sent.map(|answer| answer.status), Ok(StatusCode::NO_CONTENT));
    }
    assert_eq!(endpoint.requests(), [0, 1, 2]);
}

#[tokio::test]
async fn tenants_share_no_connection_nor_do_hosts_or_ports_of_one_address() {
    let endpoint = Endpoint::start([]).await;
    let other = Endpoint::start([]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    sender.delivers(&other).await;
    assert_eq!(other.requests(), [0], "another port");
    let url = endpoint.url();
    let mut named = url.clone();
    named.set_host(Some("inn.example.com")).expect("a host");
    for (tenant, url) in [("inn", &url), ("hotel", &named), ("hotel", &url)] {
        sender.send_for(tenant, url).await.expect("answered");
    }
    assert_eq!(endpoint.requests(), [0, 1, 2, 0]);
}

#[tokio::test]
async fn a_connection_serves_no_name_that_leads_elsewhere_now() {
    let former = Endpoint::start([]).await;
    let sender = Sender::new();
    let Ok(present) = Endpoint::start_at(&format!("127.0.0.3:{}", former.port), []).await else {
        println!("skipped: another process has this port");
        return;
    };
    sender.delivers(&former).await;
    sender.names.lead_to(&["127.0.0.3"]);
    sender.delivers(&former).await;
    assert_eq!((former.requests().len(), present.requests().len()), (1, 1));
    sender.names.lead_to(&["127.0.0.3", "127.0.0.2"]);
    sender.delivers(&former).await;
    assert_eq!(former.requests().len() + present.requests().len(), 3, "either connection will do");
    assert!(former.requests().iter().chain(&present.requests()).all(|connection| *connection == 0));
}

#[tokio::test]
async fn a_connection_serves_no_name_that_has_a_banned_address_now() {
    let endpoint = Endpoint::start([]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    for addresses in [&["127.0.0.1"][..], &["127.0.0.2", "127.0.0.1"], &["127.0.0.2", "169.254.169.254"]] {
        sender.names.lead_to(addresses);
        let sent = sender.send(&endpoint).await;
        assert!(matches!(sent, Err(AttemptError::Blocked(_))), "{addresses:?}: {sent:?}");
    }
    sender.names.lead_to(&[]);
    assert!(matches!(sender.send(&endpoint).await, Err(AttemptError::Dns(_))));
    assert_eq!(endpoint.requests(), [0]);
}

#[tokio::test]
async fn a_connection_that_waited_too_long_or_is_too_old_serves_no_request() {
    let endpoint = Endpoint::start([]).await;
    let sender = Sender::new();
    let after = |seconds: u64| sender.clock.set(NOON + Duration::from_secs(seconds));
    sender.delivers(&endpoint).await;
    after(29);
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests(), [0, 0]);
    after(60);
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests(), [0, 0, 1], "it waited for 31 seconds");
    for seconds in (80..360).step_by(20) {
        after(seconds);
        sender.delivers(&endpoint).await;
    }
    assert_eq!(endpoint.requests().last(), Some(&1), "it is less than five minutes old");
    after(360);
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests().last(), Some(&2));
    after(0);
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests().last(), Some(&3), "the clock was set back, so the idle time is unknown");
}

#[tokio::test]
async fn a_connection_serves_no_request_near_the_end_that_its_endpoint_announced() {
    for (announced, last) in [
        ("timeout=5", 3),
        ("max=100, Timeout = 5", 3),
        ("timeout=9\r\nKeep-Alive: timeout=5", 3),
        ("timeout=600", 29),
        ("timeout=soon, max", 29),
        ("timeout=99999999999999999999", 29),
    ] {
        let answer: &str = format!("HTTP/1.1 204 Fine\r\nKeep-Alive: {announced}\r\n\r\n").leak();
        let endpoint = Endpoint::start([Reaction::Say(answer), Reaction::Say(answer)]).await;
        let sender = Sender::new();
        sender.delivers(&endpoint).await;
        sender.clock.set(NOON + Duration::from_secs(last));
        sender.delivers(&endpoint).await;
        sender.clock.set(NOON + Duration::from_secs(2 * last + 1));
        sender.delivers(&endpoint).await;
        assert_eq!(endpoint.requests(), [0, 0, 1], "{announced}");
    }
    for announced in ["timeout=0", "timeout=1"] {
        let answer: &str = format!("HTTP/1.1 204 Fine\r\nKeep-Alive: {announced}\r\n\r\n").leak();
        let endpoint = Endpoint::start([Reaction::Say(answer)]).await;
        let sender = Sender::new();
        sender.delivers(&endpoint).await;
        sender.delivers(&endpoint).await;
        assert_eq!(endpoint.requests(), [0, 1], "{announced}");
    }
}

#[tokio::test]
async fn the_number_of_kept_connections_per_endpoint_is_limited() {
    let all = Arc::new(tokio::sync::Barrier::new(12));
    let endpoint = Endpoint::start(vec![Reaction::Together(all); 12]).await;
    let sender = Sender::new();
    join_all((0..12).map(|_| sender.delivers(&endpoint))).await;
    assert_eq!(sender.outbound.connections().count(), 10);
    let again = Arc::new(tokio::sync::Barrier::new(12));
    let other = Endpoint::start(vec![Reaction::Together(again); 12]).await;
    join_all((0..12).map(|_| sender.delivers(&other))).await;
    assert_eq!(sender.outbound.connections().count(), 20);
}

#[tokio::test]
async fn the_total_number_of_kept_connections_is_limited() {
    let endpoint = Endpoint::start([]).await;
    let sender = Sender::new();
    for tenant in 0..120 {
        sender.send_for(&tenant.to_string(), &endpoint.url()).await.expect("answered");
    }
    assert_eq!(sender.outbound.connections().count(), 100);
    for tenant in ["119", "20", "19"] {
        sender.send_for(tenant, &endpoint.url()).await.expect("answered");
    }
    assert_eq!(endpoint.requests()[120..], [119, 20, 120]);
}

#[tokio::test]
async fn an_answer_that_came_ahead_of_its_request_answers_nothing() {
    let ahead = "HTTP/1.1 204 Fine\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let late = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let endpoint = Endpoint::start([Reaction::Say(ahead), Reaction::Say(late)]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    assert_eq!(sender.send(&endpoint).await, Ok(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(endpoint.requests(), [0, 1]);
}

/// The bytes arrive while no task polls the connection, as in a frozen sandbox.
#[tokio::test]
async fn bytes_that_came_while_a_connection_waited_end_it() {
    let listener = TcpListener::bind("127.0.0.2:0").await.expect("a free port");
    let sender = Sender::new();
    let port = listener.local_addr().expect("it listens").port();
    let endpoint = Endpoint { port, requests: Arc::default() };
    let (sent, accepted) = futures::join!(sender.send(&endpoint), async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"{}") {
            stream.read_buf(&mut request).await.expect("a request");
        }
        stream.write_all(NO_CONTENT.as_bytes()).await.expect("written");
        stream
    });
    assert_eq!(sent, Ok(StatusCode::NO_CONTENT));
    let kept = accepted.into_std().expect("a socket");
    io::Write::write_all(&mut &kept, NO_CONTENT.as_bytes()).expect("written");
    // There is no await from here to the next request, so no task runs in between.
    let of = connections::Endpoint::of("hotel", &endpoint.url());
    let address = "127.0.0.2".parse().expect("an address");
    assert!(sender.outbound.connections().take(&of, &[address]).is_none(), "it has unread bytes");
    assert_eq!(sender.outbound.connections().count(), 0);
}

#[tokio::test]
async fn a_connection_is_not_kept_after_an_answer_that_was_cut_or_ends_it() {
    static LARGE_HEAD: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        format!("HTTP/1.1 200 OK\r\nX-A: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(100_000))
    });
    static LONG: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| format!("HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n{}", "x".repeat(4097)));
    for (what, answer) in [
        ("cut", LONG.as_str()),
        ("close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        ("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("1.0, kept alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"),
        ("1.0, chunks", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("a large head", LARGE_HEAD.as_str()),
        ("upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ] {
        let endpoint = Endpoint::start([Reaction::Say(answer)]).await;
        let sender = Sender::new();
        sender.send(&endpoint).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        sender.delivers(&endpoint).await;
        assert_eq!(endpoint.requests(), [0, 1], "{what}");
    }
}

#[tokio::test]
async fn a_connection_is_not_kept_after_a_body_that_did_not_end_in_time() {
    // On a slow machine, even the head needs a longer limit.
    for whole in [200, 2_000, 20_000].map(Duration::from_millis) {
        let endpoint = Endpoint::start([Reaction::Say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")]).await;
        let mut sender = Sender::new();
        sender.outbound.limits = Limits { whole, ..Limits::default() };
        match sender.send(&endpoint).await {
            Err(AttemptError::Timeout(_)) => continue,
            sent => assert_eq!(sent, Ok(StatusCode::OK)),
        }
        sender.outbound.limits = Limits::default();
        sender.delivers(&endpoint).await;
        assert_eq!(endpoint.requests(), [0, 1]);
        return;
    }
    panic!("the head is not enough");
}

#[tokio::test]
async fn a_connection_that_the_endpoint_closed_while_it_waited_costs_nothing() {
    let endpoint = Endpoint::start([Reaction::SayAndClose(NO_CONTENT)]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests(), [0, 1]);
}

#[tokio::test]
async fn a_connection_that_the_endpoint_reset_while_it_waited_costs_nothing() {
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    let endpoint = Endpoint::start([Reaction::SayAndReset(NO_CONTENT, Arc::clone(&meeting))]).await;
    let sender = Sender::new();
    sender.delivers(&endpoint).await;
    // The reset would discard a response that is not read yet.
    meeting.wait().await;
    meeting.wait().await;
    sender.delivers(&endpoint).await;
    assert_eq!(endpoint.requests(), [0, 1]);
}

#[tokio::test]
async fn a_request_of_which_nothing_was_written_is_known_as_unsent() {
    let listener = TcpListener::bind("127.0.0.2:0").await.expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    let url = Endpoint { port, requests: Arc::default() }.url();
    let stream = TcpStream::connect(("127.0.0.2", port)).await.expect("connected");
    let link = Link::over(stream).expect("a link");
    let (accepted, _) = listener.accept().await.expect("a connection");
    let mut connection =
        Connection::over(link, &url, 32_768, &dial::TRUST).await.unwrap_or_else(|_| panic!("a connection"));
    // Reset, so that the first write fails.
    accepted.set_zero_linger().expect("a socket");
    drop(accepted);
    let request = client::request(Method::POST, &url, "/", &[], Bytes::from_static(b"{}")).expect("a request");
    assert!(matches!(connection.send(request).await, Err(Unanswered::Unsent(None))));
}

#[tokio::test]
async fn a_request_that_the_endpoint_may_have_read_is_not_sent_again() {
    let said = Reaction::SayAndClose("H");
    let slow = Reaction::CloseAfter(Duration::from_millis(700));
    for (what, kept, breaks) in [
        ("a new connection", false, Reaction::CloseAfter(Duration::ZERO)),
        ("a kept connection, at once", true, Reaction::CloseAfter(Duration::ZERO)),
        ("a kept connection, after the first byte of an answer", true, said),
        ("a kept connection, after 0.7 s", true, slow),
    ] {
        let first = if kept { vec![Reaction::Say(NO_CONTENT)] } else { Vec::new() };
        let endpoint = Endpoint::start(first.into_iter().chain([breaks])).await;
        let sender = Sender::new();
        if kept {
            sender.delivers(&endpoint).await;
        }
        let sent = sender.send(&endpoint).await;
        assert!(matches!(sent, Err(AttemptError::Connect(_))), "{what}: {sent:?}");
        assert_eq!(endpoint.requests().len(), 1 + usize::from(kept), "{what}");
    }
}
