//! Disconnecting: revokes the access at the provider, then removes the connection.
//!
//! In the reverse order, a crash would leave access at the provider without a connection here, and the access would go
//! unnoticed.
//!
//! - held, not revoked: the connection has a lease and still works; the client repeats the request once the lease is
//!   over.
//! - revoked, not removed: the connection has a lease and dead tokens. If the client repeats the request, the provider
//!   says that nothing is left to revoke, and the connection is removed. Otherwise, the next refresh finds it broken.
//! - removed: the outbox has an event. A repeated request finds no connection, or its response if it has an idempotency
//!   key.

use std::time::Duration;

use serde::Serialize;

use crate::{
    connection::{Connection, ConnectionStatus, REMOVED},
    error::ConnectionError,
    provider::{Provider, ProviderName},
    providers::Providers,
    revocation::{Revocations, Revoked},
    store::{Claim, Connections, HeldConnection, Purpose},
    tokens::ProviderTokens,
};
use auth::AuthorizedEntity;
use base::{ConnectionId, SharedClock, SharedRandom, logging, pause, random};
use storage::{Answered, IdempotencyError, KeyRings, Once, Record};
use webhooks::outbox::OutboxEvent;

/// How long to wait for another caller's lease. A refresh is usually faster.
const WAIT: Duration = Duration::from_secs(5);
/// The pause between two claims during the wait.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The use case for disconnecting.
pub struct Disconnecting {
    /// The connections.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// Revokes access at providers.
    pub revocations: Revocations,
    /// The keys that open tokens.
    pub rings: KeyRings,
    /// The current time.
    pub clock: SharedClock,
    /// Generates the names of leases.
    pub random: SharedRandom,
}

/// A removed connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disconnected {
    /// The connection.
    pub id: ConnectionId,
    /// The state of the access at the provider.
    pub provider_access: ProviderAccess,
    /// A human-readable sentence about the access at the provider.
    pub message: &'static str,
}

/// The state of the access at the provider after the connection was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderAccess {
    /// The provider revoked it.
    Revoked,
    /// The access had ended before.
    AlreadyRevoked,
    /// The provider was not asked, so a person has to revoke it there.
    NotRevoked,
    /// The provider was asked but did not confirm it.
    Unknown,
}

/// The result of revoking access at the provider, if the connection may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenBack {
    Yes,
    /// The provider had withdrawn the access before.
    Before,
    /// The provider has no endpoint for revocation.
    NotOffered,
    /// The grant was already dead, and the provider did not confirm the revocation.
    Dead,
    /// The provider is no longer set up, so it cannot be asked.
    NoProvider,
    /// The tokens cannot be opened, so the provider cannot be asked: the item was damaged or copied from elsewhere, or
    /// its key was lost.
    Unreadable,
}

impl ProviderAccess {
    /// The access on the wire and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::AlreadyRevoked => "already-revoked",
            Self::NotRevoked => "not-revoked",
            Self::Unknown => "unknown",
        }
    }
}

impl Disconnecting {
    /// Revokes an entity's access at a provider and removes the connection, once per idempotency key. A request that
    /// removes nothing does not use up its key.
    pub async fn disconnect(
        &self,
        entity: &AuthorizedEntity,
        name: &ProviderName,
        once: Once<'_>,
    ) -> Result<Answered<Disconnected>, ConnectionError> {
        once.carry_out(self.clock.now(), self.disconnect_now(entity, name, once)).await
    }

    async fn disconnect_now(
        &self,
        entity: &AuthorizedEntity,
        name: &ProviderName,
        once: Once<'_>,
    ) -> Result<Disconnected, ConnectionError> {
        if self.connections.find(entity, name).await?.is_none() {
            return Err(ConnectionError::NotFound); // even if the secrets cannot be read
        }
        // Read before the claim, so that a slow secret does not use up the lease.
        let provider = self.providers.find(name).await?;
        let held = self.claim(entity, name).await?;
        let connection = &held.stored.connection;
        let given_back = match provider {
            Some(provider) => self.give_back(&held, &provider).await,
            None => Ok(GivenBack::NoProvider),
        };
        if given_back.is_err() {
            self.release(&held).await;
        }
        let given_back = given_back?;
        let disconnected = Disconnected::of(connection, given_back);
        let record = once.record(&disconnected, &name.as_str(), self.clock.now()).await?;
        if !self.remove(entity, &held, record).await? {
            return Err(ConnectionError::Replaced);
        }
        tracing::info!(
            connectionId = %connection.id,
            entity = %entity.id(),
            provider = %name,
            access = given_back.access().as_str(),
            "disconnected"
        );
        Ok(disconnected)
    }

    async fn claim(
        &self,
        entity: &AuthorizedEntity,
        provider: &ProviderName,
    ) -> Result<HeldConnection, ConnectionError> {
        let began = self.clock.now();
        let lease = random::uuid(&*self.random);
        loop {
            let now = self.clock.now();
            match self.connections.claim(entity, provider, Purpose::Disconnect, lease.clone(), now).await? {
                Claim::Held(held) => return Ok(*held),
                Claim::Missing => return Err(ConnectionError::NotFound),
                Claim::Busy if now.since(began) >= WAIT => return Err(ConnectionError::Busy),
                Claim::Busy => pause(LOOK_EVERY).await,
            }
        }
    }

    async fn give_back(&self, held: &HeldConnection, provider: &Provider) -> Result<GivenBack, ConnectionError> {
        let Connection { owner_identifier, account, status, .. } = held.stored.connection.clone();
        let sealed = &held.stored.sealed_tokens;
        let ring = self.rings.for_text(sealed).await?;
        let tokens = match ProviderTokens::open(sealed, &ring, &owner_identifier, &provider.name) {
            Ok(tokens) => tokens,
            Err(error) => {
                let error = logging::chain(&error);
                let provider = &provider.name;
                tracing::error!(error, %provider, "tokens could not be decrypted, so they were not revoked");
                return Ok(GivenBack::Unreadable);
            }
        };
        let revoked =
            self.revocations.revoke(provider, &tokens.access, tokens.refresh.as_ref(), account.as_deref()).await;
        match revoked {
            Ok(Revoked::Done) => Ok(GivenBack::Yes),
            Ok(Revoked::AlreadyGone) => Ok(GivenBack::Before),
            Ok(Revoked::NotOffered) => Ok(GivenBack::NotOffered),
            Err(error) => {
                let cause = logging::chain(&error);
                tracing::warn!(error = cause, provider = %provider.name, "a provider did not withdraw access");
                if status == ConnectionStatus::Broken { Ok(GivenBack::Dead) } else { Err(error.into()) }
            }
        }
    }

    /// Removes the connection. Returns false, and removes nothing, if the entity has connected again in the meantime.
    async fn remove(
        &self,
        entity: &AuthorizedEntity,
        held: &HeldConnection,
        record: Option<Record>,
    ) -> Result<bool, IdempotencyError> {
        let owner = entity.id().clone();
        let event = held.stored.connection.removed();
        let outbox_event = OutboxEvent::new(REMOVED, owner, &event, self.clock.now(), &*self.random);
        Ok(self.connections.remove(held, &outbox_event, record).await?.is_done())
    }

    /// Releases the connection unchanged. If this fails, the lease runs out.
    async fn release(&self, held: &HeldConnection) {
        if let Err(error) = self.connections.release(held).await {
            tracing::warn!(error = %logging::chain(&error), "a connection remains claimed until its lease ends");
        }
    }
}

impl GivenBack {
    const fn access(self) -> ProviderAccess {
        match self {
            Self::Yes => ProviderAccess::Revoked,
            Self::Before => ProviderAccess::AlreadyRevoked,
            Self::NotOffered | Self::NoProvider | Self::Unreadable => ProviderAccess::NotRevoked,
            Self::Dead => ProviderAccess::Unknown,
        }
    }
}

impl Disconnected {
    fn of(connection: &Connection, given_back: GivenBack) -> Self {
        let message = match given_back {
            GivenBack::Yes => "The connection is removed, and the provider has revoked the access.",
            GivenBack::Before => "The connection is removed; the provider had already revoked the access.",
            GivenBack::NotOffered => {
                "The connection is removed here. This service cannot revoke the access at the provider: do it \
                 yourself, in your account settings there."
            }
            GivenBack::NoProvider => {
                "The connection is removed here, but the provider is no longer set up: revoke the access in your \
                 account settings there."
            }
            GivenBack::Dead => {
                "The broken connection is removed here, but the provider did not confirm that it revoked the access: \
                 check your account settings there."
            }
            GivenBack::Unreadable => {
                "The connection is removed here, but its tokens could not be read and revoked: revoke the access in \
                 your account settings there."
            }
        };
        Self { id: connection.id.clone(), provider_access: given_back.access(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::connection;
    use serde_json::json;

    #[test]
    fn a_removal_says_whether_access_is_left_at_the_provider() {
        let connection = connection();
        for (given_back, access, word) in [
            (GivenBack::Yes, "revoked", "has revoked"),
            (GivenBack::Before, "already-revoked", "already revoked"),
            (GivenBack::NotOffered, "not-revoked", "cannot revoke the access"),
            (GivenBack::NoProvider, "not-revoked", "is no longer set up"),
            (GivenBack::Dead, "unknown", "did not confirm"),
            (GivenBack::Unreadable, "not-revoked", "could not be read"),
        ] {
            assert_eq!(given_back.access().as_str(), access);
            let disconnected = json!(Disconnected::of(&connection, given_back));
            assert_eq!((&disconnected["id"], &disconnected["providerAccess"]), (&json!(connection.id), &json!(access)));
            let message = disconnected["message"].as_str().expect("a text");
            assert!(message.contains(word) && !message.contains("  "), "{message}");
        }
    }
}
