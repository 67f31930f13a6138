//! Disconnecting: access is given back at the provider, and the connection removed.
//!
//! In this order, since a connection that is removed here and works there would be out of everybody's sight. It is held
//! meanwhile, so that no refresh fetches new tokens behind the revocation's back. What is on disk after a crash, and what
//! happens then:
//!
//! - held, not revoked: the connection with a lease. It works on when the lease is over; the client repeats the request.
//! - revoked, not removed: the same, with dead tokens. The client repeats the request, the provider says that there is
//!   nothing to revoke any more, and it is removed; else the next refresh finds that it is broken.
//! - removed: nothing, and an event in the outbox. A repeated request finds no connection.

use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;

use super::{
    Connection, ConnectionStatus, Connections, PROVIDER_PARAMETER, Provider, ProviderName, Providers, Revocations,
    Revoked,
    connection::REMOVED,
    store::{HeldConnection, Hold, Purpose},
    tokens::ProviderTokens,
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::SharedClock,
    ids::ConnectionId,
    logging,
    random::{self, SharedRandom},
};
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::{sealing::KeyRings, table::Transacted};
use webhooks::events::outbox::Announcement;

/// How long somebody else's lease is waited for: a refresh is mostly over sooner.
const WAIT: Duration = Duration::from_secs(5);
/// How often it is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Everything that disconnecting needs.
pub struct Disconnecting {
    /// The connections.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// What gives access back.
    pub revocations: Revocations,
    /// What opens tokens.
    pub rings: KeyRings,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Disconnected<'a> {
    id: &'a ConnectionId,
    success: bool,
    message: &'static str,
}

/// What came of giving access back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenBack {
    Yes,
    Before,
    /// The provider has no way to ask for it.
    NotOffered,
    /// The provider said before that the grant is dead, and now that it does not take it back either.
    Dead,
    /// The provider is no longer set up, so that nobody can ask.
    NoProvider,
    /// The tokens cannot be opened: the row was damaged or put there from elsewhere, or its key is lost. Nobody can ask
    /// without them.
    Unreadable,
    /// The provider did not do it.
    No,
}

/// Somebody else held the connection for all of the time that was waited.
#[derive(Debug, thiserror::Error)]
#[error("a refresh holds the connection for longer than it was waited for")]
struct StillBusy;

impl Disconnecting {
    /// Answers a request to disconnect a provider.
    pub async fn disconnect(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let name = ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::connection_not_found())?;
        if self.connections.find(entity, &name).await?.is_none() {
            return Err(Problem::connection_not_found()); // also while secrets are out of reach
        }
        // Before the connection is held: a lease must not run out while a secret is waited for.
        let provider = self.providers.find(&name).await?;
        let held = self.take(entity, &name).await?;
        let connection = &held.stored.connection;
        let given_back = match provider {
            Some(provider) => self.give_back(&held, &provider).await,
            None => Ok(GivenBack::NoProvider),
        };
        if matches!(given_back, Err(_) | Ok(GivenBack::No)) {
            self.let_go(&held).await;
        }
        let mut answer = Disconnected::of(connection, given_back?);
        if answer.success && !self.remove(entity, &held).await? {
            answer = Disconnected { success: false, message: CONNECTED_ANEW, ..answer };
        }
        tracing::info!(
            connectionId = %connection.id,
            entity = %entity.id(),
            provider = %name,
            success = answer.success,
            "disconnected"
        );
        Reply::ok(&answer)
    }

    async fn take(&self, entity: &AuthorizedEntity, provider: &ProviderName) -> Result<HeldConnection, Problem> {
        let (began, lease) = (self.clock.now(), random::uuid(&*self.random));
        loop {
            let now = self.clock.now();
            match self.connections.take(entity, provider, Purpose::Disconnect, lease.clone(), now).await? {
                Hold::Held(held) => return Ok(*held),
                Hold::Missing => return Err(Problem::connection_not_found()),
                Hold::Busy if now.since(began) >= WAIT => return Err(Problem::unavailable(StillBusy)),
                Hold::Busy => sleep(LOOK_EVERY).await,
            }
        }
    }

    async fn give_back(&self, held: &HeldConnection, provider: &Provider) -> Result<GivenBack, Problem> {
        let Connection { owner_identifier, account, status, .. } = held.stored.connection.clone();
        let sealed = &held.stored.sealed_tokens;
        let ring = self.rings.for_text(sealed).await?;
        let tokens = match ProviderTokens::open(sealed, &ring, &owner_identifier, &provider.name) {
            Ok(tokens) => tokens,
            Err(error) => {
                tracing::error!(error = %logging::chain(&error), provider = %provider.name, "tokens cannot be opened");
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

    /// False when the connection was made anew in the meantime, and stays.
    async fn remove(&self, entity: &AuthorizedEntity, held: &HeldConnection) -> Result<bool, Problem> {
        let (owner, told) = (entity.id().clone(), held.stored.connection.event(None));
        let announcement = Announcement::new(REMOVED, owner, &told, self.clock.now(), &*self.random);
        Ok(self.connections.remove(held, &announcement).await? == Transacted::Yes)
    }

    /// The connection is as it was before. If this fails, the lease runs out.
    async fn let_go(&self, held: &HeldConnection) {
        if let Err(error) = self.connections.release(held).await {
            tracing::warn!(error = %logging::chain(&error), "a connection stays held until its lease is over");
        }
    }
}

const CONNECTED_ANEW: &str = "The provider was connected again in the meantime; look at the list of \
     connections, and disconnect it again if need be.";

impl<'a> Disconnected<'a> {
    fn of(connection: &'a Connection, given_back: GivenBack) -> Self {
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
        Self { id: &connection.id, success: given_back != GivenBack::No, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::connection;

    #[test]
    fn only_what_the_provider_did_not_do_is_no_success() {
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
            let answer = Disconnected::of(&connection, given_back);
            assert!(answer.success == success && answer.message.contains(word), "{answer:?}");
            assert_eq!(answer.id, &connection.id);
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
