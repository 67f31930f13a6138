//! The state of an authorization under way (RFC 6749 §10.12), which the provider's redirect has to bring back.
//!
//! A state is random, good for ten minutes and used once. The table keeps only its hash, so that a reader of the table
//! cannot answer in a provider's name.

use std::{error::Error, fmt, time::Duration};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{pkce::CodeVerifier, provider::ProviderName};
use auth::EntityId;
use base::{Random, random};
use problem::{Problem, ProblemKind};
use storage::{KeyRing, SealError};

/// How long a person has at the provider.
pub const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// As many characters as carry 256 bits.
const LENGTH: usize = 43;

/// Why an authorization can no longer go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// Its state was spent.
    #[error("the state was used")]
    Spent,
    /// Its state's time is over.
    #[error("the state has expired")]
    Expired,
}

/// Why the state of a start page or a callback is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateFault {
    /// This service makes no state of this form.
    #[error("the state is none that this service makes")]
    Malformed,
    /// The table has no such state, or no longer.
    #[error("the state is unknown, or ended more than an hour ago")]
    Unknown,
    /// The path names another provider than the one that the state was made for.
    #[error("the state was made for another provider")]
    OtherProvider,
    /// The path names no provider of this deployment.
    #[error("no provider of this name is set up")]
    NoProvider,
    /// The state has ended.
    #[error(transparent)]
    Ended(Ended),
    /// The browser brought no cookie of the start page.
    #[error("the browser brought no cookie of the start page")]
    NoCookie,
    /// No browser has gone on from the start page.
    #[error("no browser has gone on from the start page")]
    NotBegun,
    /// The browser is not the one that went on from the start page last.
    #[error("another browser went on from the start page")]
    OtherBrowser,
    /// The answer names no issuer, although the provider always does.
    #[error("the answer has no `iss`, which this provider always gives")]
    NoIssuer,
    /// The answer names another issuer than the provider's.
    #[error("the answer's `iss` is not this provider's")]
    OtherIssuer,
}

/// The answer to a state that is not good. It does not say why, so that a stranger learns nothing from it; the log has
/// the cause.
pub(crate) fn invalid_state(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Problem {
    let detail = "The link to or from the payment provider is not valid, or no longer, or not in this browser; go back and connect again.";
    Problem::new(ProblemKind::InvalidState, detail).caused_by(cause)
}

/// A random text that the provider's redirect brings back.
#[derive(Clone, PartialEq, Eq)]
pub struct State(String);

impl State {
    pub fn new(random: &dyn Random) -> Self {
        Self(random::alphanumeric(random, LENGTH))
    }

    /// The state in a text; `None` when this service makes none of this form.
    pub fn parse(text: &str) -> Option<Self> {
        let ours = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ours.then(|| Self(text.to_owned()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash under which the table keeps it.
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
    fn a_state_is_43_characters_that_come_back_as_they_are() {
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
    fn a_state_that_is_not_good_says_why_in_its_cause_alone() {
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
