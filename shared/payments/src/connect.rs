//! Asking to be connected: the address from which a person is led to the provider.

use http::{StatusCode, header::CACHE_CONTROL};
use serde::Serialize;

use super::{
    ConnectionStatus, Connections, PROVIDER_PARAMETER, PendingAuthorizations, ProviderName, Providers,
    authorization_url::{Verifier, authorization_url},
    redirect_uri, start,
    state::{self, Onward, PendingAuthorization, Predecessor, State},
};
use base::{
    clock::{SharedClock, Time},
    random::SharedRandom,
};
use gate::{EntityCall, Reply};
use problem::{JsonBody, Problem};
use storage::sealing::KeyRings;

/// Everything that asking needs.
pub struct Connecting {
    /// Where the asking is remembered until the person comes back.
    pub pending: PendingAuthorizations,
    /// The connections that exist already.
    pub connections: Connections,
    /// The providers that are set up.
    pub providers: Providers,
    /// What seals verifiers.
    pub rings: KeyRings,
    /// The API's address, for the way back.
    pub base_url: String,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    authorization_url: &'a str,
    expires_date: Time,
}

impl Connecting {
    /// Answers a request for an address to connect at.
    ///
    /// Which account a person will choose is not known yet. So a connection that works gives way only where the request says
    /// so; one that is broken is there to be connected again, and the callback sees to it that it is the same account.
    pub async fn ask(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let replace = may_replace(&call.body)?;
        let name = ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::provider_not_found())?;
        let provider = self.providers.find(&name).await?.ok_or_else(Problem::provider_not_found)?;
        let predecessor = self.connections.find(entity, &name).await?;
        if let Some(known) =
            predecessor.as_ref().filter(|known| known.status == ConnectionStatus::Connected && !replace)
        {
            return Err(Problem::connection_exists(known.account.as_deref()));
        }
        let state = State::new(&*self.random);
        let verifier = provider.uses_pkce().then(|| Verifier::new(&*self.random));
        let sealed_verifier = match &verifier {
            Some(verifier) => Some(state.seal(verifier, &*self.rings.get().await?, &*self.random, entity.id(), &name)),
            None => None,
        };
        let expires_date = self.clock.now() + state::LIFETIME;
        let challenge = verifier.map(|verifier| verifier.challenge());
        let onward = Onward {
            authorization_url: authorization_url(&provider, &redirect_uri(&self.base_url, &name), challenge.as_deref())
                .into(),
            scopes: provider.scopes.clone(),
            predecessor: predecessor.map(|known| Predecessor { account: known.account, status: known.status }),
        };
        let pending = PendingAuthorization {
            entity: entity.id().clone(),
            provider: name,
            sealed_verifier,
            onward: Some(onward),
            replace,
            expires_date,
            browser: None,
            spent_by: None,
        };
        self.pending.keep(entity, &state, &pending).await?;
        let url = start::address(&self.base_url, &pending.provider, &state);
        tracing::info!(entity = %entity.id(), provider = %pending.provider, "asked for a permission");
        let asked = Asked { authorization_url: &url, expires_date };
        Ok(Reply::json(StatusCode::CREATED, &asked)?.with_header(CACHE_CONTROL, "no-store"))
    }
}

/// Whether a request lets another account take the place of the one that is connected. A body may be absent.
fn may_replace(body: &[u8]) -> Result<bool, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(false);
    }
    let mut body = JsonBody::read(body)?;
    let replace = body.optional("replace", "true or false").unwrap_or(false);
    body.finish()?;
    Ok(replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_says_so_may_replace_another_account() {
        for (body, replace) in
            [("", false), (" ", false), ("{}", false), (r#"{"replace":false}"#, false), (r#"{"replace":true}"#, true)]
        {
            assert_eq!(may_replace(body.as_bytes()).expect(body), replace, "{body}");
        }
        for bad in [r#"{"replace":"true"}"#, r#"{"replace":null}"#, r#"{"replace":1}"#, r#"{"Replace":true}"#, "true"] {
            assert!(may_replace(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_way_back_is_the_public_callback_of_the_provider() {
        let name = ProviderName::parse("pay-2-go").expect("a name");
        let uri = redirect_uri("https://api.example.com", &name);
        assert_eq!(uri, "https://api.example.com/api/public/pay-2-go/oauth2/callback");
    }
}
