//! Disconnecting: revokes the access at the provider, then removes the connection.
//!
//! In the reverse order, a crash would leave access at the provider without a connection here, and it would go
//! unnoticed. A lease keeps a refresh from fetching new tokens during the revocation. After a crash:
//!
//! - held, not revoked: the connection has a lease and still works; the client repeats the request when the lease is
//!   over.
//! - revoked, not removed: the connection has a lease and dead tokens. If the client repeats the request, the provider
//!   says that nothing is left to revoke, and the connection is removed. Otherwise the next refresh finds it broken.
//! - removed: the outbox has an event. A repeated request finds no connection.

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
use storage::{KeyRings, SealError, TableError};
use webhooks::outbox::OutboxEvent;

/// How long to wait for another caller's lease. A refresh is usually faster.
const WAIT: Duration = Duration::from_secs(5);
/// The pause between two claims during the wait.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The use case of disconnecting.
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

/// How a disconnection ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disconnected {
    /// The connection.
    pub id: ConnectionId,
    /// Whether it is removed.
    pub success: bool,
    /// A sentence about the access at the provider.
    pub message: &'static str,
}

/// The result of revoking access at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenBack {
    Yes,
    /// The provider had withdrawn the access before.
    Before,
    /// The provider has no endpoint for revocation.
    NotOffered,
    /// The grant was dead already, and the provider did not confirm the revocation.
    Dead,
    /// The provider is no longer set up, so it cannot be asked.
    NoProvider,
    /// The tokens cannot be opened, so the provider cannot be asked: the row was damaged or copied from elsewhere, or
    /// its key is lost.
    Unreadable,
    /// The provider did not revoke it.
    No,
}

impl Disconnecting {
    /// Revokes an entity's access at a provider and removes the connection.
    pub async fn disconnect(
        &self,
        entity: &AuthorizedEntity,
        name: &ProviderName,
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
        if matches!(given_back, Err(_) | Ok(GivenBack::No)) {
            self.release(&held).await;
        }
        let mut disconnected = Disconnected::of(connection, given_back?);
        if disconnected.success && !self.remove(entity, &held).await? {
            disconnected = Disconnected { success: false, message: CONNECTED_AGAIN, ..disconnected };
        }
        tracing::info!(
            connectionId = %connection.id,
            entity = %entity.id(),
            provider = %name,
            success = disconnected.success,
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

    async fn give_back(&self, held: &HeldConnection, provider: &Provider) -> Result<GivenBack, SealError> {
        let Connection { owner_identifier, account, status, .. } = held.stored.connection.clone();
        let sealed = &held.stored.sealed_tokens;
        let ring = self.rings.for_text(sealed).await?;
        let tokens = match ProviderTokens::open(sealed, &ring, &owner_identifier, &provider.name) {
            Ok(tokens) => tokens,
            Err(error) => {
                let error = logging::chain(&error);
                tracing::error!(error, provider = %provider.name, "tokens cannot be opened, so they are not revoked");
                return Ok(GivenBack::Unreadable);
            }
        };
        let revoked =
            self.revocations.revoke(provider, &tokens.access, tokens.refresh.as_ref(), account.as_deref()).await;
        Ok(match revoked {
            Ok(Revoked::Done) => GivenBack::Yes,
            Ok(Revoked::AlreadyGone) => GivenBack::Before,
            Ok(Revoked::NotOffered) => GivenBack::NotOffered,
            Err(error) => {
                let error = logging::chain(&error);
                tracing::warn!(error, provider = %provider.name, "a provider did not withdraw access");
                if status == ConnectionStatus::Broken { GivenBack::Dead } else { GivenBack::No }
            }
        })
    }

    /// Removes the connection. Returns false, and removes nothing, if the entity has connected again meanwhile.
    async fn remove(&self, entity: &AuthorizedEntity, held: &HeldConnection) -> Result<bool, TableError> {
        let owner = entity.id().clone();
        let event = held.stored.connection.removed();
        let outbox_event = OutboxEvent::new(REMOVED, owner, &event, self.clock.now(), &*self.random);
        Ok(self.connections.remove(held, &outbox_event).await?.is_done())
    }

    /// Releases the connection unchanged. If this fails, the lease runs out.
    async fn release(&self, held: &HeldConnection) {
        if let Err(error) = self.connections.release(held).await {
            tracing::warn!(error = %logging::chain(&error), "a connection stays held until its lease is over");
        }
    }
}

const CONNECTED_AGAIN: &str = "The provider was connected again in the meantime; look at the list of \
     connections, and disconnect it again if need be.";

impl Disconnected {
    fn of(connection: &Connection, given_back: GivenBack) -> Self {
        let message = match given_back {
            GivenBack::Yes => "The connection is removed, and the provider has withdrawn the access.",
            GivenBack::Before => "The connection is removed; the provider had withdrawn the access before.",
            GivenBack::NotOffered => {
                "The connection is removed here. The provider cannot be asked to withdraw the access: \
                 withdraw it yourself, in the settings of your account there."
            }
            GivenBack::NoProvider => {
                "The connection is removed here. The provider is no longer set up in this deployment: \
                 withdraw the access yourself, in the settings of your account there."
            }
            GivenBack::Dead => {
                "The connection, which was broken, is removed here. The provider did not confirm that the access is \
                 withdrawn: see to it yourself, in the settings of your account there."
            }
            GivenBack::Unreadable => {
                "The connection is removed here. Its tokens could not be read, so the provider was not asked: \
                 withdraw the access yourself, in the settings of your account there."
            }
            GivenBack::No => "The provider did not withdraw the access, so the connection is kept; try again later.",
        };
        Self { id: connection.id.clone(), success: given_back != GivenBack::No, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::connection;

    #[test]
    fn only_access_that_the_provider_keeps_is_a_failure() {
        let connection = connection();
        for (given_back, success, word) in [
            (GivenBack::Yes, true, "has withdrawn"),
            (GivenBack::Before, true, "before"),
            (GivenBack::NotOffered, true, "withdraw it yourself"),
            (GivenBack::NoProvider, true, "no longer set up"),
            (GivenBack::Dead, true, "did not confirm"),
            (GivenBack::Unreadable, true, "could not be read"),
            (GivenBack::No, false, "kept"),
        ] {
            let disconnected = Disconnected::of(&connection, given_back);
            assert!(disconnected.success == success && disconnected.message.contains(word), "{disconnected:?}");
            assert_eq!(disconnected.id, connection.id);
        }
    }

    #[test]
    fn no_sentence_has_a_gap() {
        let connection = connection();
        for given_back in
            [GivenBack::NotOffered, GivenBack::NoProvider, GivenBack::Dead, GivenBack::Unreadable, GivenBack::No]
        {
            assert!(!Disconnected::of(&connection, given_back).message.contains("  "));
        }
    }
}
