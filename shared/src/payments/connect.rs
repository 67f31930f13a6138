//! Asking to be connected: the address at which a person gives the permission.

use http::{StatusCode, header::CACHE_CONTROL};
use serde::Serialize;

use super::{
    PROVIDER_PARAMETER, PendingAuthorizations, ProviderName, Providers,
    authorization_url::{Verifier, authorization_url},
    redirect_uri,
    state::{self, PendingAuthorization, State},
};
use crate::{
    clock::{SharedClock, Time},
    http::{Call, Problem, Reply, nothing_said},
    random::SharedRandom,
    sealing::KeyRings,
};

/// Everything that asking needs.
pub struct Connecting {
    /// Where the asking is remembered until the person comes back.
    pub pending: PendingAuthorizations,
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
    /// Answers a request for an authorization address.
    pub async fn ask(&self, call: &Call) -> Result<Reply, Problem> {
        let entity = call.entity();
        nothing_said(&call.body)?;
        let name = ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::provider_not_found())?;
        let provider = self.providers.find(&name).await?.ok_or_else(Problem::provider_not_found)?;
        let state = State::new(&*self.random);
        let verifier = provider.uses_pkce().then(|| Verifier::new(&*self.random));
        let sealed_verifier = match &verifier {
            Some(verifier) => Some(state.seal(verifier, &*self.rings.get().await?, &*self.random, entity.id(), &name)),
            None => None,
        };
        let expires_date = self.clock.now() + state::LIFETIME;
        let pending = PendingAuthorization {
            entity: entity.id().clone(),
            provider: name,
            sealed_verifier,
            expires_date,
            spent_by: None,
        };
        self.pending.keep(entity, &state, &pending).await?;
        let challenge = verifier.map(|verifier| verifier.challenge());
        let way_back = redirect_uri(&self.base_url, &pending.provider);
        let url = authorization_url(&provider, &way_back, state.expose(), challenge.as_deref());
        tracing::info!(entity = %entity.id(), provider = %pending.provider, "asked for a permission");
        let asked = Asked { authorization_url: url.as_str(), expires_date };
        Ok(Reply::json(StatusCode::CREATED, &asked)?.with_header(CACHE_CONTROL, "no-store"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_the_public_callback_of_the_provider() {
        let name = ProviderName::parse("pay-2-go").expect("a name");
        let uri = redirect_uri("https://api.example.com", &name);
        assert_eq!(uri, "https://api.example.com/api/public/pay-2-go/oauth2/callback");
    }
}
