//! The return from a provider, which turns a code into a connection.
//!
//! The state is spent after all checks on this side, but before the exchange. The exchange is attempted once, since
//! some providers revoke everything if a code is sent twice.
//!
//! After a crash:
//!
//! - state not spent: the table has the state. The person reloads the page, and the callback starts again.
//! - state spent, code not exchanged: the table has a spent state. A reloaded page says that the link was already used,
//!   and the person connects again; the code expires.
//! - code exchanged, connection not stored: as before, and the provider's tokens are lost. They are not revoked,
//!   because with most providers that would end an older connection that still works.
//! - connection stored: the table has the connection, and its event in the outbox. The browser was not redirected, but
//!   the account is connected.
//! - code exchanged, connection not stored because another account is connected: as for a connection that was not
//!   stored.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    authorization_url::redirect_uri,
    browser::Browser,
    callback_query::{CallbackQuery, ProviderAnswer},
    connection::{Connection, ConnectionStatus, ESTABLISHED},
    grant::Grants,
    granted_tokens::{GrantError, GrantedTokens},
    item::StoredConnection,
    outcome_address::{Arrival, AuthorizationOutcome, ErrorCode},
    panel::PanelSettings,
    pending::{PendingAuthorization, PendingAuthorizations},
    provider::{Provider, ProviderName},
    providers::{ProviderError, Providers},
    schedule::refresh_at,
    state::{Ended, State, StateFault, invalid_state},
    store::Connections,
    tokens::ProviderTokens,
};
use auth::{AuthorizedEntity, Claims, EntityId, refusal};
use base::metric::{Metrics, Name, Number};
use base::{ConnectionId, SharedClock, SharedRandom, logging, pause, random};
use outbound::Outbound;
use problem::Problem;
use storage::{KeyRing, KeyRings, SealError, Secrets, Table, TableError, Written};
use webhooks::outbox::OutboxEvent;

/// A callback's time limit. The gate's limit must be longer, so that it never cuts off a callback that has received
/// tokens.
pub const LIMIT: Duration = Duration::from_secs(26);
/// The time limit of the steps before the state is spent. A slower callback fails and leaves the state unchanged:
/// enough time must remain for spending it, for the provider's ten seconds, and for storing the tokens.
const BEFORE_SPENDING: Duration = Duration::from_secs(5);
/// The time limit for spending a state.
const SPENDING: Duration = Duration::from_secs(4);
/// The pause before retrying a failed write of a connection.
const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The use case for a return from a provider.
pub struct Callback {
    pending: PendingAuthorizations,
    connections: Connections,
    providers: Providers,
    grants: Grants,
    rings: KeyRings,
    /// The API's address, for the redirect URI, which the provider must receive again.
    base_url: String,
    panel: PanelSettings,
    /// The deployment's name, for the metrics.
    environment: String,
    clock: SharedClock,
    random: SharedRandom,
}

/// A completed callback. Not `Debug`, since the address contains the account and proof of it.
pub struct Answered {
    /// How the authorization ended.
    pub outcome: AuthorizationOutcome,
    /// The address of the page that the person is redirected to.
    pub address: String,
}

/// A failed callback, and what its browser may see.
#[derive(Debug)]
pub struct CallbackFailure {
    /// Why the callback failed.
    pub error: CallbackError,
    /// The managing entity, if the browser is the one that continued from the start page.
    pub entity: Option<EntityId>,
}

/// Why a callback failed, by stage.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The state is invalid, or belongs to another browser.
    #[error(transparent)]
    InvalidState(#[from] StateFault),
    /// The state belongs to this browser but has ended.
    #[error(transparent)]
    Ended(Ended),
    /// The request's token does not cover the managing entity that requested the connection.
    #[error("the token does not cover the managing entity")]
    EntityNotCovered,
    /// The authorization could not be read.
    #[error(transparent)]
    Read(TableError),
    /// The provider's secret could not be read or used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The keys could not be read, or the verifier could not be opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The steps before spending the state took too long. The state is unchanged.
    #[error("the table or the secrets responded too slowly for the callback to continue")]
    TooSlow,
    /// Spending the state failed; it may or may not be spent.
    #[error("the state could not be marked as used")]
    Spend(#[source] TableError),
    /// The state is spent, but the provider gave no tokens.
    #[error("the code could not be exchanged")]
    Exchange(#[source] GrantError),
    /// The provider gave tokens, but the connection could not be written.
    #[error("the connection could not be stored")]
    Keep(#[source] TableError),
    /// A step after the decision to spend the state took too long.
    #[error("the callback did not finish in time")]
    Late,
}

impl CallbackError {
    /// The outcome in the metric: `refused` if the link or the caller is at fault, `error` if this service or the
    /// provider is.
    const fn outcome(&self) -> &'static str {
        match self {
            Self::InvalidState(_) | Self::Ended(_) | Self::EntityNotCovered => "refused",
            Self::Read(_)
            | Self::Provider(_)
            | Self::Seal(_)
            | Self::TooSlow
            | Self::Spend(_)
            | Self::Exchange(_)
            | Self::Keep(_)
            | Self::Late => "error",
        }
    }
}

impl From<CallbackError> for Problem {
    fn from(error: CallbackError) -> Self {
        match error {
            // They all get the same response, which reveals nothing to a stranger.
            CallbackError::InvalidState(_) | CallbackError::Ended(_) => invalid_state(error),
            CallbackError::EntityNotCovered => refusal::entity_not_covered(),
            CallbackError::Read(error) => error.into(),
            CallbackError::Provider(error) => error.into(),
            CallbackError::Seal(error) => error.into(),
            CallbackError::TooSlow => Self::unavailable(error),
            // The state is or may be spent, so the link cannot be used again.
            CallbackError::Spend(_) | CallbackError::Exchange(_) | CallbackError::Keep(_) | CallbackError::Late => {
                Self::internal(error)
            }
        }
    }
}

impl From<CallbackError> for CallbackFailure {
    fn from(error: CallbackError) -> Self {
        Self { error, entity: None }
    }
}

/// A browser that returned with the state that is bound to it.
struct Returned {
    state: State,
    pending: PendingAuthorization,
    browser: Browser,
}

impl Callback {
    /// Creates the callback for this table's authorizations and reads the key ring. `outbound` sends to providers; its
    /// rules restrict their addresses. `environment` is the deployment's name, for the metrics.
    pub async fn new(
        table: Table,
        secrets: Secrets,
        outbound: Outbound,
        (base_url, panel): (String, PanelSettings),
        environment: String,
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        Self {
            pending: PendingAuthorizations::new(table.clone()),
            connections: Connections::new(table),
            providers: Providers::new(secrets.clone(), outbound.rules.clone(), clock.clone()),
            grants: Grants::new(outbound, &base_url, clock.clone(), random.clone()),
            rings: KeyRings::warm(secrets, clock.clone()).await,
            base_url,
            panel,
            environment,
            clock,
            random,
        }
    }

    /// Accepts a browser that returns from a provider, and completes its authorization. If the request has a token, it
    /// must cover the managing entity.
    pub async fn take(
        &self,
        name: &ProviderName,
        query: &CallbackQuery<'_>,
        browser: Option<Browser>,
        token: Option<&Claims>,
    ) -> Result<Answered, CallbackFailure> {
        let began = Instant::now();
        let taken = match self.recognise(name, query, browser, token).await {
            Ok(returned) => {
                let entity = returned.pending.entity.clone();
                let finished = self.finish(name, query, returned, began).await;
                finished.map_err(|error| CallbackFailure { error, entity: Some(entity) })
            }
            Err(failure) => Err(failure),
        };
        let outcome = match &taken {
            Ok(answered) => answered.outcome.as_str(),
            Err(failure) => failure.error.outcome(),
        };
        let numbers = [Number::count(Name::Callbacks, 1)];
        let at = self.clock.now();
        Metrics { environment: &self.environment, by: &[outcome], numbers: &numbers, at }.publish();
        taken
    }

    /// Finds the authorization of the browser that returned. A stranger's browser neither spends the state nor learns
    /// anything about it.
    async fn recognise(
        &self,
        name: &ProviderName,
        query: &CallbackQuery<'_>,
        browser: Option<Browser>,
        token: Option<&Claims>,
    ) -> Result<Returned, CallbackFailure> {
        let state = State::parse(query.state).ok_or(CallbackError::from(StateFault::Malformed))?;
        let found = self.pending.find(&state, name).await.map_err(CallbackError::Read)?;
        let pending = found.map_err(CallbackError::from)?;
        let browser = pending.returned(browser);
        if let Some(why) = pending.ended(self.clock.now()) {
            return Err(match browser {
                Ok(_) => CallbackFailure { error: CallbackError::Ended(why), entity: Some(pending.entity) },
                Err(_) => CallbackError::from(StateFault::Ended(why)).into(),
            });
        }
        if token.is_some_and(|claims| !claims.entities.cover(pending.entity.as_str())) {
            return Err(CallbackError::EntityNotCovered.into());
        }
        let browser = browser.map_err(CallbackError::from)?;
        Ok(Returned { state, pending, browser })
    }

    async fn finish(
        &self,
        name: &ProviderName,
        query: &CallbackQuery<'_>,
        Returned { state, pending, browser }: Returned,
        began: Instant,
    ) -> Result<Answered, CallbackError> {
        // If the provider was removed in the meantime, the state is invalid.
        let provider = self.providers.find(name).await?.ok_or(StateFault::NoProvider)?;
        if !provider.can_answer_as(query.issuer) {
            let fault = if query.issuer.is_some() { StateFault::OtherIssuer } else { StateFault::NoIssuer };
            return Err(fault.into());
        }
        let entity = pending.entity.clone();
        let (outcome, account) = match query.answer {
            ProviderAnswer::Error(error) => (self.refused(&state, &provider, error, began).await?, None),
            ProviderAnswer::Code(code) => self.connect(&state, &provider, pending, code, began).await?,
        };
        let error = match query.answer {
            ProviderAnswer::Error(error) => ErrorCode::parse(error),
            ProviderAnswer::Code(_) => None,
        };
        tracing::info!(
            provider = %name,
            entity = %entity,
            outcome = outcome.as_str(),
            providerError = error.map(ErrorCode::as_str),
            "a browser returned from a provider"
        );
        let entity = entity.as_str();
        let account = account.as_deref();
        let arrival = Arrival { provider: name, outcome, entity, account, error };
        Ok(Answered { outcome, address: arrival.address(&self.panel.address, &browser) })
    }

    async fn refused(
        &self,
        state: &State,
        provider: &Provider,
        error: &str,
        began: Instant,
    ) -> Result<AuthorizationOutcome, CallbackError> {
        self.spend(state, &provider.name, began).await?;
        Ok(if provider.is_denial(error) { AuthorizationOutcome::Denied } else { AuthorizationOutcome::Failed })
    }

    async fn connect(
        &self,
        state: &State,
        provider: &Provider,
        pending: PendingAuthorization,
        code: &str,
        began: Instant,
    ) -> Result<(AuthorizationOutcome, Option<String>), CallbackError> {
        let ring = match &pending.sealed_verifier {
            Some(sealed) => self.rings.for_text(sealed).await?,
            None => self.rings.get().await?,
        };
        let verifier = match &pending.sealed_verifier {
            Some(sealed) => Some(state.open(sealed, &ring, &pending.entity, &provider.name)?),
            None => None,
        };
        self.spend(state, &provider.name, began).await?;
        let connected = async {
            let way_back = redirect_uri(&self.base_url, &provider.name);
            let exchanged = self.grants.exchange(provider, code, &way_back, verifier.as_ref()).await;
            let granted = exchanged.map_err(CallbackError::Exchange)?;
            let id = pending.connection.unwrap_or_else(|| ConnectionId::new(self.clock.now(), &*self.random));
            let entity = AuthorizedEntity::by_state(pending.entity);
            let kept = self.keep(id, &entity, provider, &granted, &ring, pending.replace).await;
            Ok((kept.map_err(CallbackError::Keep)?, granted))
        };
        let (kept, granted) = timeout_at(began + LIMIT, connected).await.unwrap_or(Err(CallbackError::Late))?;
        if kept.is_done() {
            return Ok((AuthorizationOutcome::Connected, granted.account));
        }
        // The access is not revoked: most providers would revoke all access to the account, and another entity may be
        // connected to it. The page says that the account's owner can withdraw it.
        tracing::warn!(provider = %provider.name, "another account is already connected, and stays connected");
        Ok((AuthorizationOutcome::OtherAccount, granted.account))
    }

    /// Spends the state for this request only.
    async fn spend(&self, state: &State, provider: &ProviderName, began: Instant) -> Result<(), CallbackError> {
        if began.elapsed() > BEFORE_SPENDING {
            return Err(CallbackError::TooSlow);
        }
        let by = random::uuid(&*self.random);
        // After a timeout, the state may be spent, so the callback ends here.
        let spent = timeout(SPENDING, self.pending.spend(state, provider, &by, self.clock.now())).await;
        match spent.map_err(|_| CallbackError::Late)?.map_err(CallbackError::Spend)? {
            Written::Done(()) => Ok(()),
            // A concurrent request spent the state.
            Written::Lost(_) => Err(CallbackError::Ended(Ended::Spent)),
        }
    }

    async fn keep(
        &self,
        id: ConnectionId,
        entity: &AuthorizedEntity,
        provider: &Provider,
        granted: &GrantedTokens,
        ring: &KeyRing,
        replace: bool,
    ) -> Result<Written<()>, TableError> {
        let now = self.clock.now();
        let tokens = ProviderTokens::after(granted, None);
        let connection = Connection {
            id,
            owner_identifier: entity.id().clone(),
            provider: provider.name.clone(),
            account: granted.account.clone(),
            status: ConnectionStatus::Connected,
            scopes: granted.scopes.clone(),
            connected_date: now,
            expires_date: granted.expires,
            last_update: now,
            broken_reason: None,
            last_error: None,
        };
        let at_most_after = provider.refresh_at_most_after;
        let dice = random::unit(&*self.random);
        let stored = StoredConnection {
            sealed_tokens: tokens.seal(ring, &*self.random, entity.id(), &provider.name),
            failures: 0,
            due: refresh_at(now, granted.expires, at_most_after, tokens.refresh.is_some(), dice),
            connection,
        };
        // The provider gives tokens once, so a failed write is repeated.
        let kept = loop {
            match self.establish(entity, &stored, replace).await {
                Err(error @ TableError::Unavailable { .. }) => {
                    tracing::warn!(error = %logging::chain(&error), "a connection could not be written; trying again");
                    pause(WRITE_AGAIN_AFTER).await;
                }
                decided => break decided?,
            }
        };
        if kept.is_done() {
            let id = &stored.connection.id;
            tracing::info!(connectionId = %id, entity = %entity.id(), provider = %provider.name, "connected");
        }
        Ok(kept)
    }

    /// Stores a connection in place of the current one, or returns `Lost` if it may not replace it.
    async fn establish(
        &self,
        entity: &AuthorizedEntity,
        stored: &StoredConnection,
        replace: bool,
    ) -> Result<Written<()>, TableError> {
        let connection = &stored.connection;
        let mut lost_to = None;
        loop {
            let before = self.connections.find(entity, &connection.provider).await?.map(|before| before.id);
            if before.as_ref() == Some(&connection.id) {
                return Ok(Written::Done(())); // written by an attempt whose response was lost
            }
            if lost_to.as_ref() == Some(&before) {
                return Ok(Written::Lost(None));
            }
            let owner = entity.id().clone();
            let event = connection.established(before.as_ref());
            let outbox_event = OutboxEvent::new(ESTABLISHED, owner, &event, connection.last_update, &*self.random);
            if self.connections.establish(stored, before.as_ref(), replace, &outbox_event).await?.is_done() {
                return Ok(Written::Done(()));
            }
            // Another account is connected, or the previous connection was just replaced or removed, so it is read
            // again.
            lost_to = Some(before);
        }
    }
}
