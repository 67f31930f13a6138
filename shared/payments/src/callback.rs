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
//! - exchanged, not kept since another account is connected: the same as not kept; and the tokens are given back, unless the
//!   crash comes before.

use std::time::Duration;

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    Connection, ConnectionStatus, Connections, Granted, Grants, Outcome, PROVIDER_PARAMETER, PendingAuthorizations,
    Provider, ProviderName, Providers,
    brought::{Answer, Brought},
    browser::Browser,
    connection::ESTABLISHED,
    item::StoredConnection,
    outcome_page::{self, Arrival},
    redirect_uri,
    schedule::refresh_at,
    state::{PendingAuthorization, State},
    tokens::ProviderTokens,
};
use crate::panel::PanelSettings;
use auth::entity::AuthorizedEntity;
use auth::refusal;
use base::{
    clock::SharedClock,
    ids::ConnectionId,
    logging,
    random::{self, SharedRandom},
};
use gate::{Call, Reply};
use problem::Problem;
use storage::{
    sealing::{KeyRing, KeyRings},
    table::{TableError, Transacted},
};
use webhooks::events::outbox::Announcement;

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
            return Err(refusal::entity_not_covered());
        }
        // A stranger's browser does not spend the state, so that it can be used against neither side.
        let browser = Browser::of(call.headers()).filter(|browser| pending.is_of(browser));
        let browser = browser.ok_or_else(Problem::invalid_state)?;
        // A provider that was taken away in the meantime has no valid state either.
        let provider = self.providers.find(&name).await?.ok_or_else(Problem::invalid_state)?;
        if !provider.can_answer_as(brought.issuer) {
            return Err(Problem::invalid_state());
        }
        let entity = pending.entity.clone();
        let (outcome, account) = match brought.answer {
            Answer::Error(error) => (self.refused(&state, &provider, error, began).await?, None),
            Answer::Code(code) => self.connect(&state, &provider, pending, code, began).await?,
        };
        tracing::info!(provider = %name, outcome = outcome.as_str(), "came back from a provider");
        let arrival = Arrival { provider: &name, outcome, entity: entity.as_str(), account: account.as_deref() };
        Reply { status: StatusCode::FOUND, headers: Vec::new(), body: String::new() }
            .with_header(CACHE_CONTROL, "no-store")
            .with_computed_header(LOCATION, &outcome_page::address(&self.panel.address, &arrival, &browser))
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
    ) -> Result<(Outcome, Option<String>), Problem> {
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
            let kept =
                self.keep(&entity, provider, &granted, &ring, pending.replace).await.map_err(Problem::internal)?;
            Ok((kept, granted))
        };
        let connected = timeout_at(began + LIMIT, connected).await.unwrap_or_else(|late| Err(Problem::internal(late)));
        let (kept, granted) = connected?;
        if kept == Transacted::Yes {
            return Ok((Outcome::Connected, granted.account));
        }
        // The access is not given back: most providers withdraw an account's whole access, and another entity may be connected to
        // it. The page says that the owner of the account may withdraw it.
        tracing::warn!(provider = %provider.name, "another account is connected, and stays");
        Ok((Outcome::OtherAccount, granted.account))
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
        replace: bool,
    ) -> Result<Transacted, TableError> {
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
        let kept = loop {
            match self.connections.establish(entity, &stored, replace, &announcement).await {
                Err(error @ TableError::Unavailable { .. }) => {
                    tracing::warn!(error = %logging::chain(&error), "a connection is not written yet; it is again");
                    sleep(WRITE_AGAIN_AFTER).await;
                }
                decided => break decided?,
            }
        };
        if kept == Transacted::Yes {
            let id = &stored.connection.id;
            tracing::info!(connectionId = %id, entity = %entity.id(), provider = %provider.name, "connected");
        }
        Ok(kept)
    }
}

/// What is needed to spend the state took too long.
#[derive(Debug, thiserror::Error)]
#[error("the table or the secrets took too long to go on with the callback")]
struct TooSlow;
