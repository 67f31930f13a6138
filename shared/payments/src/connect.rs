//! Requests for a connection: each returns a link that begins it.

use serde::Serialize;

use crate::{
    authorization_url::{authorization_url, redirect_uri},
    connection::ConnectionStatus,
    error::ConnectionError,
    pending::{Onward, PendingAuthorization, PendingAuthorizations, Predecessor},
    pkce::CodeVerifier,
    provider::ProviderName,
    providers::Providers,
    start,
    state::{self, State},
    store::Connections,
};
use auth::AuthorizedEntity;
use base::{ConnectionId, SharedClock, SharedRandom, Time};
use problem::{JsonBody, Problem};
use storage::{Answered, IdempotencyStore, IdempotentRequest, KeyRings};

/// The use case for requesting a connection.
pub struct Connecting {
    /// The authorizations waiting for a person's return.
    pub pending: PendingAuthorizations,
    /// The existing connections.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// The keys that seal verifiers.
    pub rings: KeyRings,
    /// The API's address, for the redirect URI.
    pub base_url: String,
    /// The current time.
    pub clock: SharedClock,
    /// Generates states and verifiers.
    pub random: SharedRandom,
}

/// A request for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewConnection {
    /// Whether a connection to another account may be replaced.
    pub replace: bool,
}

/// The link that begins a connection.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionLink {
    /// The identifier that the connection will have, once the person has granted access.
    pub connection_identifier: ConnectionId,
    /// The start page's address. It contains the state, so it is secret.
    pub authorization_url: String,
    /// When the link expires.
    pub expires_date: Time,
}

impl NewConnection {
    /// Parses a request's body, which may be absent.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self { replace: false });
        }
        let mut body = JsonBody::read(body)?;
        let replace = body.optional("replace", "true or false").unwrap_or(false);
        body.finish()?;
        Ok(Self { replace })
    }
}

impl Connecting {
    /// Creates a link through which a person connects an account for this entity, once per idempotency key.
    pub async fn ask(
        &self,
        entity: &AuthorizedEntity,
        name: &ProviderName,
        new: NewConnection,
        once: Option<&IdempotentRequest>,
    ) -> Result<Answered<ConnectionLink>, ConnectionError> {
        self.answers.once(once, self.clock.now(), self.make(entity, name, new, once)).await
    }

    /// Creates the link. The account that the person will choose is not known yet, so the request must allow the
    /// replacement of a working connection. A broken one may always be connected again; the callback checks that it is
    /// the same account.
    async fn make(
        &self,
        entity: &AuthorizedEntity,
        name: &ProviderName,
        NewConnection { replace }: NewConnection,
        once: Option<&IdempotentRequest>,
    ) -> Result<ConnectionLink, ConnectionError> {
        let provider = self
            .providers
            .find(name)
            .await?
            .ok_or_else(|| ConnectionError::ProviderNotFound { given: name.to_string() })?;
        let predecessor = self.connections.find(entity, name).await?;
        if let Some(known) =
            predecessor.as_ref().filter(|known| known.status == ConnectionStatus::Connected && !replace)
        {
            return Err(ConnectionError::Exists { account: known.account.clone() });
        }
        let state = State::new(&*self.random);
        let verifier = provider.pkce.then(|| CodeVerifier::new(&*self.random));
        let sealed_verifier = match &verifier {
            Some(verifier) => Some(state.seal(verifier, &*self.rings.get().await?, &*self.random, entity.id(), name)),
            None => None,
        };
        let now = self.clock.now();
        let expires_date = now + state::LIFETIME;
        let connection_identifier = ConnectionId::new(now, &*self.random);
        let challenge = verifier.map(|verifier| verifier.challenge());
        let onward = Onward {
            authorization_url: authorization_url(&provider, &redirect_uri(&self.base_url, name), challenge.as_deref())
                .into(),
            scopes: provider.scopes.clone(),
            predecessor: predecessor.map(|known| Predecessor { account: known.account, status: known.status }),
        };
        let pending = PendingAuthorization {
            entity: entity.id().clone(),
            provider: name.clone(),
            connection: Some(connection_identifier.clone()),
            sealed_verifier,
            onward,
            replace,
            expires_date,
            browser: None,
            spent_by: None,
        };
        let authorization_url = start::address(&self.base_url, name, &state);
        let link = ConnectionLink { connection_identifier, authorization_url, expires_date };
        let record = self.answers.record(once, &link, &link.connection_identifier, now).await?;
        self.pending.keep(entity, &state, &pending, record).await?;
        tracing::info!(entity = %entity.id(), provider = %name, "a connection was requested");
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_says_so_may_replace_another_account() {
        for (body, replace) in
            [("", false), (" ", false), ("{}", false), (r#"{"replace":false}"#, false), (r#"{"replace":true}"#, true)]
        {
            assert_eq!(NewConnection::read(body.as_bytes()).expect(body), NewConnection { replace }, "{body}");
        }
        for bad in [r#"{"replace":"true"}"#, r#"{"replace":null}"#, r#"{"replace":1}"#, r#"{"Replace":true}"#, "true"] {
            assert!(NewConnection::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
