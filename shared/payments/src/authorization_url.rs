//! The address at the provider where a person gives consent (RFC 6749 §4.1.1), and the address that they return to.

use url::Url;

use crate::{
    provider::{Provider, ProviderName},
    state::State,
};

/// The parameters that this module sets. A description must not set them.
pub const OWN_PARAMETERS: [&str; 7] =
    ["response_type", "client_id", "redirect_uri", "state", "scope", "code_challenge", "code_challenge_method"];

/// The provider's consent address, without the state, which the table must not store. `challenge` is for a provider
/// with PKCE.
pub fn authorization_url(provider: &Provider, redirect_uri: &str, challenge: Option<&str>) -> Url {
    let mut url = provider.authorize_url.clone();
    let mut query = url.query_pairs_mut();
    query.append_pair("response_type", "code");
    query.append_pair("client_id", &provider.client.id);
    query.append_pair("redirect_uri", redirect_uri);
    if !provider.scopes.is_empty() {
        query.append_pair("scope", &provider.scopes.join(&provider.scope_separator));
    }
    if let Some(challenge) = challenge {
        query.append_pair("code_challenge", challenge);
        query.append_pair("code_challenge_method", "S256");
    }
    query.extend_pairs(&provider.authorize_parameters);
    drop(query);
    url
}

/// The consent address with the state.
pub fn with_state(url: &str, state: &State) -> Result<Url, url::ParseError> {
    let mut url = Url::parse(url)?;
    url.query_pairs_mut().append_pair("state", state.expose());
    Ok(url)
}

/// The address that a provider sends people back to.
pub fn redirect_uri(base_url: &str, provider: &ProviderName) -> String {
    format!("{base_url}/api/public/{provider}/oauth2/callback")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::tests::provider;
    use serde_json::json;

    #[test]
    fn the_address_has_every_parameter_and_keeps_its_own_query() {
        let provider = provider(json!({
            "authorizeUrl": "https://pay.example.com/go?flow=static", "scopeSeparator": ",",
            "authorizeParameters": { "session": "false" },
        }));
        let url = authorization_url(&provider, "https://w.example/cb?x=1&y", Some("c-1"));
        let state = State::parse(&"s".repeat(43)).expect("a state");
        let complete = with_state(url.as_str(), &state).expect("an address");
        assert_eq!(
            complete.as_str(),
            format!(
                "https://pay.example.com/go?flow=static&response_type=code&client_id=app\
                 &redirect_uri=https%3A%2F%2Fw.example%2Fcb%3Fx%3D1%26y&scope=read%2Cwrite\
                 &code_challenge=c-1&code_challenge_method=S256&session=false&state={}",
                state.expose()
            )
        );
    }

    #[test]
    fn without_scope_or_challenge_neither_is_sent() {
        let provider = provider(json!({ "scope": "" }));
        let url = authorization_url(&provider, "https://w.example/cb", None);
        assert_eq!(url.query(), Some("response_type=code&client_id=app&redirect_uri=https%3A%2F%2Fw.example%2Fcb"));
    }

    #[test]
    fn the_redirect_uri_is_the_providers_public_callback() {
        let name = ProviderName::parse("pay-2-go").expect("a name");
        let uri = redirect_uri("https://api.example.com", &name);
        assert_eq!(uri, "https://api.example.com/api/public/pay-2-go/oauth2/callback");
    }
}
