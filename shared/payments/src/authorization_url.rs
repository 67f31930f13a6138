//! The address that a person is sent to for consent (RFC 6749 §4.1.1), and the proof key that binds the code that comes
//! back to this service (RFC 7636).

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use url::Url;

use super::{Provider, state::State};
use base::random::{self, Random};
use storage::secrets::SecretText;

/// The parameters that are set here, and that no description may set.
pub(super) const OWN_PARAMETERS: [&str; 7] =
    ["response_type", "client_id", "redirect_uri", "state", "scope", "code_challenge", "code_challenge_method"];

/// The address that the person is sent to, without the state, which the table must not have. The challenge is for a
/// provider that takes a proof key.
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

/// The same, with the state.
pub fn with_state(url: &str, state: &State) -> Result<Url, url::ParseError> {
    let mut url = Url::parse(url)?;
    url.query_pairs_mut().append_pair("state", state.expose());
    Ok(url)
}

/// A proof key: kept here until the code comes back, shown to the provider as its hash before and as itself then.
#[derive(Debug, Clone)]
pub struct Verifier(SecretText);

impl Verifier {
    /// A new one: 256 random bits in 43 characters (RFC 7636 §4.1).
    pub fn new(random: &dyn Random) -> Self {
        Self(SecretText::new(BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// One that was kept.
    pub fn from_stored(text: String) -> Self {
        Self(SecretText::new(text))
    }

    /// Its hash, by the method S256 (RFC 7636 §4.2).
    pub fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, self.expose().as_bytes()))
    }

    /// Itself, for the one who seals or sends it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::tests::provider;
    use base::random::SystemRandom;
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

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_the_one_of_the_rfcs_example() {
        let octets = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        struct Octets([u8; 32]);
        impl Random for Octets {
            fn fill(&self, buffer: &mut [u8]) {
                buffer.copy_from_slice(&self.0);
            }
        }
        let verifier = Verifier::new(&Octets(octets));
        assert_eq!(verifier.expose(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(Verifier::from_stored(verifier.expose().to_owned()).challenge(), verifier.challenge());
    }

    #[test]
    fn a_verifier_is_new_each_time_and_not_printed() {
        let (one, other) = (Verifier::new(&SystemRandom), Verifier::new(&SystemRandom));
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), 43);
        assert!(!format!("{one:?}").contains(one.expose()));
    }
}
