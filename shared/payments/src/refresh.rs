//! Refreshes tokens before they expire.
//!
//! Claims a connection, asks the provider once, and writes the result. After a crash:
//!
//! - not claimed: the connection is still due, and the next run refreshes it.
//! - claimed, provider not asked: the connection has a lease, and is due again at its end.
//! - provider asked, result not written: the connection has a lease, and the provider may have replaced the tokens. The
//!   next refresh sends the old refresh token. Most providers accept it; otherwise, the connection breaks, and its
//!   owner connects again. So the write is repeated until just before the lease ends.
//! - result written: the table has the new tokens and due time, or, in one transaction, the break and its event in the
//!   outbox.
//!
//! A connection breaks only if the provider says that its refresh token is dead, or if a token that cannot be refreshed
//! expires. Every other failure is retried: it may be temporary, or the operator can correct its cause.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use serde_json::{Value, json};

use crate::{
    connection::{BROKEN, BreakReason, Connection},
    grant::Grants,
    granted_tokens::GrantError,
    item::{DueConnection, StoredConnection},
    last_error::LastError,
    provider::{Provider, ProviderName},
    provider_request::LIMITS,
    providers::{ProviderError, Providers},
    schedule::{expiry_as_before, refresh_at, retry_at},
    store::{Claim, Connections, HeldConnection, Purpose},
    tokens::ProviderTokens,
};
use auth::AuthorizedEntity;
use base::metric::{Metrics, Name, Number};
use base::{SharedClock, SharedRandom, Time, logging, pause, random};
use storage::table::{Page, TableError, Written};
use storage::{KeyRings, SealError};
use webhooks::outbox::OutboxEvent;

/// The number of concurrent refreshes.
const AT_ONCE: usize = 16;
/// The number of index entries in one page.
const PAGE: i32 = 100;
/// The time after which a run begins no more refreshes, so that it ends within the function's timeout. The next run
/// continues.
const TIME_LIMIT: Duration = Duration::from_secs(40);
/// The number of consecutive refreshes without a response after which a run skips the provider's remaining connections,
/// so that they do not delay those of other providers. The next run tries them again.
const UNREACHABLE_IN_ROW: u32 = 5;
/// The pause before retrying a failed write of new tokens.
const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long before the end of a lease the last write may begin. A write takes at most ten seconds.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// The use case for refreshing.
pub struct Refresher {
    /// The connections that may be due.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// Requests new tokens from providers.
    pub grants: Grants,
    /// The keys that open and seal tokens.
    pub rings: KeyRings,
    /// The current time.
    pub clock: SharedClock,
    /// Generates the names of leases and spreads due times.
    pub random: SharedRandom,
    /// The deployment's name, a dimension of the metrics.
    pub environment: String,
}

/// Why a refresh returned no new tokens.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error("the provider's description could not be used")]
    Provider(#[source] ProviderError),
    #[error("the provider was removed from the deployment")]
    NoProvider,
    #[error("the tokens could not be decrypted")]
    Seal(#[from] SealError),
    #[error("the provider issued no new tokens")]
    Grant(#[source] GrantError),
}

/// An attempt's result.
enum Attempted {
    /// The connection with the new tokens.
    Refreshed(StoredConnection),
    /// The connection is broken, with the provider's refusal if that is why.
    Broken(BreakReason, Option<GrantError>),
    /// The refresh failed and is retried later.
    Failed(RefreshError),
}

impl Refresher {
    /// Refreshes all due connections and returns the number of attempts. A failure does not stop the others; a table
    /// error is returned after all attempts.
    pub async fn run(&self) -> Result<usize, TableError> {
        let began = self.clock.now();
        let silent = SilentProviders::default();
        let silent = &silent;
        let attempts = self
            .due(began)
            .take_while(|_| ready(self.clock.now().since(began) < TIME_LIMIT))
            .map(|due| async move { self.one(due?, silent).await })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        let attempted = attempts.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(attempted.into_iter().filter(|attempted| *attempted).count())
    }

    /// All due connections. The stream reads pages as needed, so that a slow provider at the end of one page does not
    /// delay the next.
    fn due(&self, now: Time) -> BoxStream<'_, Result<DueConnection, TableError>> {
        let pages = stream::try_unfold(Some(None), move |start| async move {
            let Some(start) = start else { return Ok(None) };
            let Page { entries, next } = self.connections.due_before(now, PAGE, start).await?;
            Ok(Some((stream::iter(entries.into_iter().map(Ok)), next.map(Some))))
        });
        pages.try_flatten().boxed()
    }

    /// Refreshes one connection. Returns false if another caller holds it, if it is no longer due, or if its provider
    /// is not currently responding.
    async fn one(&self, due: DueConnection, silent: &SilentProviders) -> Result<bool, TableError> {
        let DueConnection { entity, provider: name } = due;
        if silent.include(&name) {
            return Ok(false);
        }
        let entity = AuthorizedEntity::owning_connection(entity);
        // Read before the claim, so that a slow secret does not use up the lease.
        let provider = self.provider(&name).await;
        let lease = random::uuid(&*self.random);
        let claim = self.connections.claim(&entity, &name, Purpose::Refresh, lease, self.clock.now());
        let Claim::Held(held) = claim.await? else { return Ok(false) };
        if held.until.since(self.clock.now()) < LIMITS.whole + LEASE_MARGIN {
            tracing::warn!(provider = %name, "the table took too long; the next run will refresh the connection");
            return Ok(false);
        }
        let attempted = match provider {
            Ok(provider) => self.attempt(&held.stored, &provider).await.unwrap_or_else(Attempted::Failed),
            Err(error) => Attempted::Failed(error),
        };
        silent.note(&name, matches!(attempted, Attempted::Failed(RefreshError::Grant(GrantError::Unreachable(_)))));
        if let Err(error) = self.settle(&held, attempted).await {
            let connection = &held.stored.connection.id;
            tracing::error!(
                error = %logging::chain(&error),
                connectionId = %connection,
                "a refresh's result was lost"
            );
            return Err(error);
        }
        Ok(true)
    }

    async fn provider(&self, name: &ProviderName) -> Result<Arc<Provider>, RefreshError> {
        self.providers.find(name).await.map_err(RefreshError::Provider)?.ok_or(RefreshError::NoProvider)
    }

    async fn attempt(&self, stored: &StoredConnection, provider: &Provider) -> Result<Attempted, RefreshError> {
        let owner = &stored.connection.owner_identifier;
        let ring = self.rings.for_text(&stored.sealed_tokens).await?;
        let tokens = ProviderTokens::open(&stored.sealed_tokens, &ring, owner, &provider.name)?;
        let Some(refresh) = &tokens.refresh else { return Ok(Attempted::Broken(BreakReason::Expired, None)) };
        let granted = match self.grants.refresh(provider, refresh).await {
            Ok(granted) => granted,
            Err(error) if error.is_dead_grant() => {
                return Ok(Attempted::Broken(BreakReason::Refused, Some(error)));
            }
            Err(error) => return Err(RefreshError::Grant(error)),
        };
        let now = self.clock.now();
        let dice = random::unit(&*self.random);
        let before = &stored.connection;
        let expires = granted.expires.or(expiry_as_before(now, before.expires_date, before.last_update));
        let new = ProviderTokens::after(&granted, Some(refresh));
        Ok(Attempted::Refreshed(StoredConnection {
            // Refreshed tokens have the scopes of the first grant (RFC 6749 §6).
            connection: Connection { expires_date: expires, last_update: now, last_error: None, ..before.clone() },
            sealed_tokens: new.seal(&ring, &*self.random, owner, &provider.name),
            failures: 0,
            due: refresh_at(now, expires, provider.refresh_at_most_after, true, dice),
        }))
    }

    /// Writes an attempt's result and releases the lease.
    async fn settle(&self, held: &HeldConnection, attempted: Attempted) -> Result<(), TableError> {
        let now = self.clock.now();
        let before = &held.stored;
        let Connection { id, owner_identifier, provider, .. } = &before.connection;
        let written = match attempted {
            Attempted::Refreshed(after) => {
                let written = self.keep(held, &after).await?;
                if written.is_done() {
                    self.count(Name::ConnectionsRefreshed, json!({ "connectionId": id, "provider": provider }));
                }
                written
            }
            Attempted::Broken(reason, refusal) => {
                let owner = owner_identifier.clone();
                let event = before.connection.broken(reason);
                let outbox_event = OutboxEvent::new(BROKEN, owner, &event, now, &*self.random);
                let shown = refusal.as_ref().map(GrantError::shown);
                let written = self.connections.break_off(held, (reason, shown.as_ref()), now, &outbox_event).await?;
                if written.is_done() {
                    let entity = owner_identifier;
                    let error = refusal.map(|refusal| logging::chain(&refusal));
                    let reason = reason.as_str();
                    tracing::warn!(connectionId = %id, %entity, %provider, reason, error, "a connection is broken");
                    let line = json!({ "connectionId": id, "provider": provider, "reason": reason });
                    self.count(Name::ConnectionsBroken, line);
                }
                written
            }
            Attempted::Failed(failure) => {
                let due = retry_at(before.failures, now, before.connection.expires_date, failure.retry_after());
                let failures = before.failures.saturating_add(1);
                let error = logging::chain(&failure);
                let entity = owner_identifier;
                tracing::warn!(connectionId = %id, %entity, %provider, failures, error, again = %due, "a refresh failed");
                let line = json!({ "connectionId": id, "provider": provider, "failures": failures, "error": error });
                self.count(Name::RefreshFailures, line);
                self.connections.postpone(held, (failures, &failure.shown()), due).await?
            }
        };
        if !written.is_done() {
            tracing::warn!(
                connectionId = %id,
                %provider,
                "a refresh was not recorded because the connection has changed"
            );
        }
        Ok(())
    }

    /// Counts one refresh in a metric, in the line that names the connection.
    fn count(&self, name: Name, refresh: Value) {
        let numbers = [Number::count(name, 1)];
        let metrics = Metrics { environment: &self.environment, by: &[], numbers: &numbers, at: self.clock.now() };
        metrics.publish_beside("refresh", &refresh);
    }

    /// Stores new tokens. The old ones may be invalid, so a failed write is repeated until just before the lease ends.
    async fn keep(&self, held: &HeldConnection, after: &StoredConnection) -> Result<Written<()>, TableError> {
        loop {
            match self.connections.refreshed(held, after).await {
                Err(error @ TableError::Unavailable { .. })
                    if held.until.since(self.clock.now()) > LEASE_MARGIN + WRITE_AGAIN_AFTER =>
                {
                    tracing::warn!(error = %logging::chain(&error), "new tokens could not be written; trying again");
                    pause(WRITE_AGAIN_AFTER).await;
                }
                decided => return decided,
            }
        }
    }
}

/// For each provider, the number of consecutive refreshes in this run that got no response.
#[derive(Debug, Default)]
struct SilentProviders(Mutex<HashMap<ProviderName, u32>>);

impl SilentProviders {
    fn include(&self, provider: &ProviderName) -> bool {
        let silent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        silent.get(provider).is_some_and(|in_row| *in_row >= UNREACHABLE_IN_ROW)
    }

    fn note(&self, provider: &ProviderName, unreachable: bool) {
        let mut silent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_row = silent.entry(provider.clone()).or_default();
        *in_row = if unreachable { in_row.saturating_add(1) } else { 0 };
    }
}

impl RefreshError {
    /// The error as the connection's owner sees it.
    fn shown(&self) -> LastError {
        match self {
            Self::Grant(error) => error.shown(),
            Self::Provider(_) | Self::NoProvider | Self::Seal(_) => LastError::of_service(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Grant(error) => error.retry_after(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_silent_provider_are_skipped_until_it_answers() {
        let name = |text| ProviderName::parse(text).expect("a name");
        let silent = SilentProviders::default();
        for _ in 0..UNREACHABLE_IN_ROW {
            assert!(!silent.include(&name("slow")));
            silent.note(&name("slow"), true);
        }
        assert!(silent.include(&name("slow")) && !silent.include(&name("quick")));
        silent.note(&name("slow"), false);
        assert!(!silent.include(&name("slow")));
    }
}
