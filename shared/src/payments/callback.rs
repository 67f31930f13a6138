//! Coming back from a provider: from a code to a connection.
//!
//! The state is spent after everything that can fail on our side was found to work, and before the exchange, since some
//! providers withdraw everything when a code comes twice. There is one try.
//!
//! What is on disk after a crash, and what happens then:
//!
//! - before the state is spent: the state. The person reloads the page, and the same begins again.
//! - spent, the code not exchanged: a spent state. The person is told that the link is not valid and connects again; the
//!   code ends by itself.
//! - exchanged, not kept: the same, and at the provider there are tokens that nobody has. The same; connecting again makes
//!   new ones. They are not revoked, because with most providers that would end an older connection that still works.
//! - kept: the connection, and its event in the outbox. The person is not sent on, but is connected.

use std::time::Duration;

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY},
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    Connection, ConnectionStatus, Connections, Granted, Grants, Outcome, PROVIDER_PARAMETER, PendingAuthorizations,
    Provider, ProviderName, Providers,
    connection::ESTABLISHED,
    item::StoredConnection,
    outcome_page, redirect_uri,
    schedule::refresh_at,
    state::{PendingAuthorization, State},
    tokens::ProviderTokens,
};
use crate::{
    auth::entity::AuthorizedEntity,
    clock::SharedClock,
    events::outbox::Announcement,
    http::{Call, Problem, Reply, Violations},
    ids::ConnectionId,
    logging,
    random::{self, SharedRandom},
    sealing::{KeyRing, KeyRings},
    settings::PanelSettings,
    table::TableError,
};

/// The longest value of the query that is looked at. Codes of several hundred characters exist, of thousands do not.
const MAX_VALUE: usize = 4096;
/// How long a callback may take in all. The gate must give it more, so that it is never cut off with tokens in its hands.
pub const LIMIT: Duration = Duration::from_secs(26);
/// How long it may take until the state is spent. What is slower is told to come again, with the state as it was: time is
/// left for spending it, for the provider's ten seconds, and to keep what the provider gave.
const BEFORE_SPENDING: Duration = Duration::from_secs(5);
/// How long spending a state may take.
const SPENDING: Duration = Duration::from_secs(4);
/// How long it is waited before a connection is written again that the table did not take.
const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Everything that coming back needs.
pub struct Callback {
    /// What was asked for.
    pub pending: PendingAuthorizations,
    /// Where connections are kept.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// What exchanges codes.
    pub grants: Grants,
    /// What seals tokens.
    pub rings: KeyRings,
    /// The API's address, which the provider is told once more.
    pub base_url: String,
    /// Where the person is sent on to.
    pub panel: PanelSettings,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// What the provider's redirect brings. Not to be printed: state and code are secrets until they are spent.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
struct Brought<'a> {
    state: &'a str,
    answer: Answer<'a>,
    /// Who says so (RFC 9207).
    issuer: Option<&'a str>,
}

/// What the provider says.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
enum Answer<'a> {
    Code(&'a str),
    Error(&'a str),
}

impl Callback {
    /// Answers a person's browser that comes back from a provider.
    pub async fn answer(&self, call: &Call) -> Result<Reply, Problem> {
        let began = Instant::now();
        let brought = Brought::read(|name| call.query(name))?;
        let name = ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::invalid_state())?;
        let state = State::parse(brought.state).ok_or_else(Problem::invalid_state)?;
        let found = self.pending.find(&state, &name, self.clock.now()).await?;
        let pending = found.ok_or_else(Problem::invalid_state)?;
        if call.claims.as_ref().is_some_and(|claims| !claims.entities.cover(pending.entity.as_str())) {
            return Err(Problem::entity_not_covered());
        }
        // A provider that was taken away in the meantime has no valid state either.
        let provider = self.providers.find(&name).await?.ok_or_else(Problem::invalid_state)?;
        if brought.issuer.is_some_and(|issuer| !provider.is_issuer(issuer)) {
            return Err(Problem::invalid_state());
        }
        let outcome = match brought.answer {
            Answer::Error(error) => self.refused(&state, &provider, error, began).await?,
            Answer::Code(code) => self.connect(&state, &provider, pending, code, began).await?,
        };
        tracing::info!(provider = %name, outcome = outcome.as_str(), "came back from a provider");
        Reply { status: StatusCode::FOUND, headers: Vec::new(), body: String::new() }
            .with_header(CACHE_CONTROL, "no-store")
            .with_header(REFERRER_POLICY, "no-referrer") // the address that it would name has the code in it
            .with_computed_header(LOCATION, &outcome_page::address(&self.panel.address, &name, outcome))
    }

    async fn refused(
        &self,
        state: &State,
        provider: &Provider,
        error: &str,
        began: Instant,
    ) -> Result<Outcome, Problem> {
        self.spend(state, &provider.name, began).await?;
        Ok(if provider.is_denial(error) { Outcome::Denied } else { Outcome::Failed })
    }

    async fn connect(
        &self,
        state: &State,
        provider: &Provider,
        pending: PendingAuthorization,
        code: &str,
        began: Instant,
    ) -> Result<Outcome, Problem> {
        let ring = match &pending.sealed_verifier {
            Some(sealed) => self.rings.for_text(sealed).await?,
            None => self.rings.get().await?,
        };
        let verifier = match &pending.sealed_verifier {
            Some(sealed) => Some(state.open(sealed, &ring, &pending.entity, &provider.name)?),
            None => None,
        };
        self.spend(state, &provider.name, began).await?;
        // From here on an error is a 500: the state is spent, so that nothing can be tried again.
        let connected = async {
            let way_back = redirect_uri(&self.base_url, &provider.name);
            let exchanged = self.grants.exchange(provider, code, &way_back, verifier.as_ref()).await;
            let granted = exchanged.map_err(Problem::internal)?;
            let entity = AuthorizedEntity::by_state(pending.entity);
            self.keep(&entity, provider, &granted, &ring).await.map_err(Problem::internal)
        };
        timeout_at(began + LIMIT, connected).await.unwrap_or_else(|late| Err(Problem::internal(late)))?;
        Ok(Outcome::Connected)
    }

    /// The state is this request's alone, or the request is not valid.
    async fn spend(&self, state: &State, provider: &ProviderName, began: Instant) -> Result<(), Problem> {
        if began.elapsed() > BEFORE_SPENDING {
            return Err(Problem::unavailable(TooSlow));
        }
        let by = random::uuid(&*self.random);
        // Without an answer nobody knows whether it is spent; so this is the end of it.
        match timeout(SPENDING, self.pending.consume(state, provider, &by, self.clock.now())).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Problem::invalid_state()),
            Ok(Err(error)) => Err(Problem::internal(error)),
            Err(late) => Err(Problem::internal(late)),
        }
    }

    async fn keep(
        &self,
        entity: &AuthorizedEntity,
        provider: &Provider,
        granted: &Granted,
        ring: &KeyRing,
    ) -> Result<(), TableError> {
        let now = self.clock.now();
        let tokens = ProviderTokens::after(granted, None);
        let connection = Connection {
            id: ConnectionId::new(now, &*self.random),
            owner_identifier: entity.id().clone(),
            provider: provider.name.clone(),
            account: granted.account.clone(),
            status: ConnectionStatus::Connected,
            scopes: granted.scopes.clone(),
            connected_date: now,
            expires_date: granted.expires,
            last_update: now,
        };
        let at_most_after = provider.refresh_at_most_after();
        let dice = random::unit(&*self.random);
        let stored = StoredConnection {
            sealed_tokens: tokens.seal(ring, &*self.random, entity.id(), &provider.name),
            failures: 0,
            due: refresh_at(now, granted.expires, at_most_after, tokens.refresh.is_some(), dice),
            connection,
        };
        let announcement =
            Announcement::new(ESTABLISHED, entity.id().clone(), &stored.connection.event(None), now, &*self.random);
        // What the provider gave is given once, so a table that does not answer is asked again. The same item is written each
        // time, and the same event.
        while let Err(error) = self.connections.establish(entity, &stored, &announcement).await {
            if !matches!(error, TableError::Unavailable { .. }) {
                return Err(error);
            }
            tracing::warn!(error = %logging::chain(&error), "a connection is not written yet; it is again");
            sleep(WRITE_AGAIN_AFTER).await;
        }
        tracing::info!(connectionId = %stored.connection.id, entity = %entity.id(), provider = %provider.name, "connected");
        Ok(())
    }
}

/// What is needed to spend the state took too long.
#[derive(Debug, thiserror::Error)]
#[error("the table or the secrets took too long to go on with the callback")]
struct TooSlow;

impl<'a> Brought<'a> {
    /// Reads the query with `values`, which gives every value of a name. A name that comes twice is a violation (RFC 6749
    /// §3.1); one that nobody asked for is the provider's own business.
    fn read(values: impl Fn(&str) -> Vec<&'a str>) -> Result<Self, Problem> {
        let mut violations = Violations::default();
        let mut one = |name: &'static str, needed: bool| match values(name).as_slice() {
            [] | [""] if !needed => None,
            [] => {
                violations.add(name, "is missing from the query");
                None
            }
            [""] => {
                violations.add(name, "must not be empty");
                None
            }
            [value] if value.len() > MAX_VALUE => {
                violations.add(name, format!("must not be longer than {MAX_VALUE} bytes"));
                None
            }
            [value] => Some(*value),
            _ => {
                violations.add(name, "must not come twice");
                None
            }
        };
        // Who says that something failed owes no code, even where it is not clear what failed.
        let failed = values("error").iter().any(|error| !error.is_empty());
        let (error, code, state) = (one("error", false), one("code", !failed), one("state", true));
        let issuer = one("iss", false);
        violations.check()?;
        let answer = error.map(Answer::Error).or(code.map(Answer::Code));
        match (answer, state) {
            (Some(answer), Some(state)) => Ok(Self { state, answer, issuer }),
            _ => Err(Problem::internal("a value is missing without a violation")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(query: &'a [(&'a str, &'a str)]) -> Result<Brought<'a>, Vec<String>> {
        let values = |name: &str| query.iter().filter(|(given, _)| *given == name).map(|(_, value)| *value).collect();
        Brought::read(values).map_err(|problem| {
            let violations = problem.properties["violations"].as_array().expect("a list").clone();
            violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
        })
    }

    #[test]
    fn a_code_or_an_error_comes_with_a_state() {
        let brought = read(&[("code", "c"), ("state", "s"), ("scope", "x"), ("scope", "y")]).expect("read");
        assert_eq!(brought, Brought { state: "s", answer: Answer::Code("c"), issuer: None });
        let brought = read(&[("error", "access_denied"), ("state", "s"), ("iss", "https://x")]).expect("read");
        let answer = Answer::Error("access_denied");
        assert_eq!(brought, Brought { state: "s", answer, issuer: Some("https://x") });
        let brought = read(&[("error", ""), ("code", "c"), ("state", "s")]).expect("an empty error is none");
        assert_eq!(brought.answer, Answer::Code("c"));
    }

    #[test]
    fn an_error_counts_more_than_a_code() {
        let brought = read(&[("error", "x"), ("code", "c"), ("state", "s")]).expect("read");
        assert_eq!(brought.answer, Answer::Error("x"));
    }

    #[test]
    fn every_violation_is_told_at_once() {
        let long = "x".repeat(MAX_VALUE + 1);
        assert_eq!(read(&[]), Err(vec!["code".into(), "state".into()]));
        assert_eq!(read(&[("code", ""), ("state", "")]), Err(vec!["code".into(), "state".into()]));
        assert_eq!(read(&[("code", "c"), ("code", "c"), ("state", "s")]), Err(vec!["code".into()]));
        assert_eq!(read(&[("code", "c"), ("state", &long)]), Err(vec!["state".into()]));
        assert_eq!(read(&[("error", "x")]), Err(vec!["state".into()]));
        assert_eq!(read(&[("error", "x"), ("error", "y"), ("state", "s")]), Err(vec!["error".into()]));
        let doubled = [("error", "x"), ("error", "y"), ("code", "c"), ("state", "s"), ("iss", "i"), ("iss", "i")];
        assert_eq!(read(&doubled), Err(vec!["error".into(), "iss".into()]));
    }
}
