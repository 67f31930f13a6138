//! Simulated payment providers: each has a consent page, a token endpoint and a revocation endpoint, all on one server.
//!
//! Concurrent tests share the server, so failures are not configured globally: a code and its tokens begin with their
//! [`Fate`], which is chosen on the consent page. A made-up code, such as `fail-500.anything`, also fails in the way
//! that it names.

mod authorize;
mod book;
mod client;
mod failure;
mod log;
mod page;
mod request;
mod revoke;
mod setup;
mod token;

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Behaviour, Received, http::serve, locked};
use book::Book;

pub use failure::{Failure, Fate, PROVIDERS_WORDS};
pub use log::{Entry, Kind, RequestOutcome};
pub use setup::{Authentication, Revocation, Rotation, Setup, Shape};

/// A function that is called for each request, after the response.
pub type Witness = fn(&Entry);

/// The running server for all providers, which stops when it is dropped.
pub struct Providers {
    /// The server's address.
    pub address: SocketAddr,
    desk: Arc<Desk>,
    accepting: JoinHandle<()>,
}

struct Desk {
    base: String,
    setups: HashMap<String, Setup>,
    book: Mutex<Book>,
    witness: Option<Witness>,
}

impl Providers {
    /// Starts the server on this port on 127.0.0.1, or on a free port if it is 0.
    pub async fn start(port: u16, setups: Vec<Setup>, witness: Option<Witness>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let setups = setups.into_iter().map(|setup| (setup.name.clone(), setup)).collect();
        let desk = Arc::new(Desk { base: format!("http://{address}"), setups, book: Mutex::default(), witness });
        let serving = Arc::clone(&desk);
        let accepting = serve(listener, move |received| serving.answer(&received));
        Ok(Self { address, desk, accepting })
    }

    /// A provider's URL for `authorize`, `token` or `revoke`.
    pub fn url(&self, provider: &str, endpoint: &str) -> String {
        format!("{}/{provider}/{endpoint}", self.desk.base)
    }

    /// The issuer that a provider's callbacks name.
    pub fn issuer(&self, provider: &str) -> String {
        self.desk.issuer(provider)
    }

    /// All requests, in order.
    pub fn log(&self) -> Vec<Entry> {
        locked(&self.desk.book).log.clone()
    }

    /// The outcome of each exchange of a code.
    pub fn exchanges(&self, code: &str) -> Vec<RequestOutcome> {
        self.outcomes(|entry| entry.kind == Kind::Exchange && entry.presented == code)
    }

    /// The outcomes of all requests of one kind for an account.
    pub fn of_account(&self, kind: Kind, account: &str) -> Vec<RequestOutcome> {
        self.outcomes(|entry| entry.kind == kind && entry.account.as_deref() == Some(account))
    }

    /// Whether an account's access was revoked or has ended; `false` if it never had any.
    pub fn has_ended(&self, provider: &str, account: &str) -> bool {
        let book = locked(&self.desk.book);
        book.grant_of_account(provider, account).is_some_and(|grant| book.grants[grant].ended)
    }

    /// Ends an account's access, as the account's owner can do at the provider.
    pub fn end(&self, provider: &str, account: &str) {
        let mut book = locked(&self.desk.book);
        let grant = book.grant_of_account(provider, account).expect("the account has access");
        book.grants[grant].ended = true;
    }

    /// Whether an access token is valid.
    pub fn works(&self, access_token: &str) -> bool {
        locked(&self.desk.book).works(access_token)
    }

    /// The values that only the service and the provider may see: codes, tokens, verifiers, assertions and client
    /// secrets.
    pub fn secrets(&self) -> BTreeSet<String> {
        let configured = self.desk.setups.values().filter_map(|setup| setup.secret().map(str::to_owned));
        locked(&self.desk.book).secrets.iter().cloned().chain(configured).collect()
    }

    /// The unknown paths that were requested, such as a redirect's target.
    pub fn strays(&self) -> Vec<String> {
        locked(&self.desk.book).strays.clone()
    }

    /// The paths of requests that carried a trace, which the service must not send to a provider.
    pub fn traced(&self) -> Vec<String> {
        locked(&self.desk.book).traced.clone()
    }

    fn outcomes(&self, of: impl Fn(&Entry) -> bool) -> Vec<RequestOutcome> {
        locked(&self.desk.book).log.iter().filter(|entry| of(entry)).map(|entry| entry.outcome.clone()).collect()
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Desk {
    fn issuer(&self, provider: &str) -> String {
        format!("{}/{provider}", self.base)
    }

    fn answer(&self, received: &Received) -> Behaviour {
        let path = received.path.split('?').next().unwrap_or_default();
        let mut segments = path.split('/').skip(1);
        let provider = segments.next().unwrap_or_default();
        let endpoint = segments.next().unwrap_or_default();
        let Some(setup) = self.setups.get(provider).filter(|_| segments.next().is_none()) else {
            locked(&self.book).strays.push(received.path.clone());
            return Behaviour::status(404);
        };
        let address = |endpoint: &str| format!("{}/{provider}/{endpoint}", self.base);
        let mut book = locked(&self.book);
        let traced = ["traceparent", "tracestate"].iter().any(|name| !received.header(name).is_empty());
        if traced && endpoint != "authorize" {
            book.traced.push(received.path.clone());
        }
        let known = book.log.len();
        let behaviour = match (endpoint, received.method.as_str()) {
            ("authorize", "GET") => authorize::ask(setup, received),
            ("authorize", "POST") => authorize::answer(&mut book, setup, &self.issuer(provider), received),
            ("token", "POST") => token::answer(&mut book, setup, &address("token"), received),
            ("revoke", _) => revoke::answer(&mut book, setup, [&address("token"), &address("revoke")], received),
            ("authorize" | "token", _) => Behaviour::status(405),
            _ => Behaviour::status(404),
        };
        if let Some(witness) = self.witness {
            book.log[known..].iter().for_each(witness);
        }
        behaviour
    }
}
