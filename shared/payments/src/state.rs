//! A pending authorization's state (RFC 6749 §10.12), which the provider's redirect returns.
//!
//! A state is random, valid for ten minutes and used once. The table stores only its hash, so that a reader of the
//! table cannot forge a provider's redirect.

use std::{error::Error, fmt, time::Duration};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{pkce::CodeVerifier, provider::ProviderName};
use auth::EntityId;
use base::{Random, random};
use problem::{Problem, ProblemKind};
use storage::{KeyRing, SealError};

/// How long a state is valid after the connection is requested.
pub const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// A state's length. 43 alphanumeric characters have about 256 random bits.
const LENGTH: usize = 43;

/// Why an authorization can no longer continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The state was spent.
    #[error("the state was used")]
    Spent,
    /// The state has expired.
    #[error("the state has expired")]
    Expired,
}

/// Why a start page's or a callback's state is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateFault {
    /// The string does not have a state's form.
    #[error("this service did not issue the state")]
    Malformed,
    /// The state is not, or is no longer, in the table.
    #[error("the state is unknown, or expired more than an hour ago")]
    Unknown,
    /// The state was created for a provider other than the one in the path.
    #[error("the state was made for another provider")]
    OtherProvider,
    /// The path contains no provider of this deployment.
    #[error("no provider with this name is set up")]
    NoProvider,
    /// The state has ended.
    #[error(transparent)]
    Ended(Ended),
    /// The browser did not send the start page's cookie.
    #[error("the browser sent no cookie from the start page")]
    NoCookie,
    /// No browser has continued from the start page.
    #[error("no browser has continued from the start page")]
    NotBegun,
    /// Another browser was the last to continue from the start page.
    #[error("another browser continued from the start page")]
    OtherBrowser,
    /// The redirect contains no issuer, although this provider always sends one.
    #[error("the answer has no `iss`, which this provider always sends")]
    NoIssuer,
    /// The redirect contains an issuer that is not the provider's.
    #[error("the answer's `iss` belongs to another provider")]
    OtherIssuer,
}

/// The response to an invalid state. Only the log has the reason; the response reveals nothing to a stranger.
pub(crate) fn invalid_state(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Problem {
    let detail = "The link to or from the payment provider is invalid, has expired, or belongs to another browser. Go \
        back and connect again.";
    Problem::new(ProblemKind::InvalidState, detail).caused_by(cause)
}

/// A random string that the provider's redirect returns.
#[derive(Clone, PartialEq, Eq)]
pub struct State(String);

impl State {
    pub fn new(random: &dyn Random) -> Self {
        Self(random::alphanumeric(random, LENGTH))
    }

    /// Parses a state; `None` if the string has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let ours = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ours.then(|| Self(text.to_owned()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the table stores.
    pub(crate) fn hash(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.0.as_bytes()))
    }

    /// Seals the verifier of this state's authorization.
    pub fn seal(
        &self,
        verifier: &CodeVerifier,
        ring: &KeyRing,
        random: &dyn Random,
        owner: &EntityId,
        provider: &ProviderName,
    ) -> String {
        ring.seal(random, &self.context(owner, provider), verifier.expose().as_bytes())
    }

    /// Opens the verifier of this state's authorization.
    pub fn open(
        &self,
        sealed: &str,
        ring: &KeyRing,
        owner: &EntityId,
        provider: &ProviderName,
    ) -> Result<CodeVerifier, SealError> {
        let plain = ring.open(&self.context(owner, provider), sealed)?;
        let verifier = std::str::from_utf8(plain.expose()).map_err(|_| SealError::NotOurs)?;
        Ok(CodeVerifier::from_stored(verifier.to_owned()))
    }

    fn context(&self, owner: &EntityId, provider: &ProviderName) -> String {
        format!("oauth-verifier/{owner}/{provider}/{}", self.hash())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{SystemRandom, testing::CountingRandom};
    use storage::sealing;

    fn name(text: &str) -> ProviderName {
        ProviderName::parse(text).expect("a name")
    }

    fn entity(text: &str) -> EntityId {
        EntityId::parse(text).expect("an entity")
    }

    #[test]
    fn a_state_is_43_characters_that_parse_back_unchanged() {
        let state = State::new(&SystemRandom);
        assert_eq!(state.expose().len(), 43);
        assert_eq!(State::parse(state.expose()), Some(state.clone()));
        assert_ne!(state, State::new(&SystemRandom));
        let longer = format!("{}x", state.expose());
        let spaced = format!("{} ", &state.expose()[..42]);
        for text in ["", &state.expose()[..42], &longer, &spaced, &"-".repeat(43), &"ä".repeat(43)] {
            assert_eq!(State::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_state_is_explained_only_in_its_cause() {
        let answers = [StateFault::Unknown, StateFault::NoCookie, StateFault::Ended(Ended::Expired)].map(|fault| {
            let problem = invalid_state(fault);
            let cause = problem.cause.as_ref().map(ToString::to_string);
            assert_eq!(cause, Some(fault.to_string()));
            serde_json::Value::from(problem.body("https://api.example.com", "id"))
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    }

    #[test]
    fn a_verifier_opens_for_its_own_state_entity_and_provider_only() {
        let random = CountingRandom::default();
        let ring = sealing::ring("a");
        let state = State::new(&random);
        let other = State::new(&random);
        let hotel = entity("demo-hotel");
        let square = name("square");
        let verifier = CodeVerifier::new(&random);
        let sealed = state.seal(&verifier, &ring, &random, &hotel, &square);
        let opened = state.open(&sealed, &ring, &hotel, &square).expect("opens");
        assert_eq!(opened.expose(), verifier.expose());
        assert!(other.open(&sealed, &ring, &hotel, &square).is_err());
        assert!(state.open(&sealed, &ring, &entity("other"), &square).is_err());
        assert!(state.open(&sealed, &ring, &hotel, &name("stripe")).is_err());
    }
}
