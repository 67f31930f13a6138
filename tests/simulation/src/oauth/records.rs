//! The token issuer's clients' memory.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

/// What tenants remember about tokens.
#[derive(Debug, Default)]
pub struct Records {
    /// The secrets of applications.
    pub secrets: Vec<Secret>,
    /// The tokens.
    pub tokens: Vec<Token>,
    /// The requested ends of tokens, secrets and applications.
    pub endings: Vec<Ending>,
    /// The verifications of tokens.
    pub verifications: Vec<Verification>,
    /// The answers by tenant, path and idempotency key.
    pub answers: BTreeMap<(usize, String, String), BTreeSet<String>>,
    /// The number of applications that may have been created, by name. All tries with one key create one.
    pub made: BTreeMap<(usize, String), u32>,
}

/// An application's secret.
#[derive(Debug, Clone)]
pub struct Secret {
    /// The tenant that owns the application.
    pub tenant: usize,
    /// The application.
    pub client: String,
    /// The secret's identifier.
    pub id: String,
    /// The secret.
    pub secret: String,
}

/// A token.
#[derive(Debug, Clone)]
pub struct Token {
    /// The tenant whose application got it.
    pub tenant: usize,
    /// The application.
    pub client: String,
    /// The secret that it was obtained with.
    pub credential: String,
    /// Its identifier.
    pub id: String,
    /// When it expires, in seconds.
    pub expires: u64,
    /// The token.
    pub text: String,
}

/// What ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ends {
    /// A token, by its identifier.
    Token(String),
    /// An application's secret, by both identifiers.
    Secret(String, String),
    /// An application.
    Application(String),
}

/// A request for an end.
#[derive(Debug, Clone)]
pub struct Ending {
    /// What ends.
    pub what: Ends,
    /// When the request began, in milliseconds.
    pub began: u64,
    /// When it was acknowledged.
    pub acknowledged: Option<u64>,
}

/// A function's verdict on a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is valid.
    Valid,
    /// It is not.
    Refused(String),
    /// The table did not respond.
    Unavailable,
}

/// A token's verification.
#[derive(Debug, Clone)]
pub struct Verification {
    /// The token's index in the records.
    pub token: usize,
    /// Whether the revocations were read for this verification.
    pub fresh: bool,
    /// The sandbox and the invocation; `None` for a request of several tries.
    pub place: Option<(u64, u64)>,
    /// When it began, in milliseconds.
    pub began: u64,
    /// When it was answered.
    pub answered: u64,
    /// The answer.
    pub verdict: Verdict,
}

impl Ends {
    /// Whether this ends a token.
    pub fn ends(&self, token: &Token) -> bool {
        match self {
            Self::Token(id) => *id == token.id,
            Self::Secret(client, id) => *client == token.client && *id == token.credential,
            Self::Application(client) => *client == token.client,
        }
    }
}

impl Records {
    pub(super) fn token_of(&self, tenant: usize, rng: &mut Rng) -> Option<usize> {
        let known: Vec<_> = (0..self.tokens.len()).filter(|token| self.tokens[*token].tenant == tenant).collect();
        let ended = |token: &usize| self.endings.iter().any(|ending| ending.what.ends(&self.tokens[*token]));
        let ended: Vec<_> = known.iter().copied().filter(ended).collect();
        // The last one that ended, any one that ended, or any.
        match rng.u8(0..3) {
            0 if !ended.is_empty() => ended.last().copied(),
            1 if !ended.is_empty() => rng.choice(ended),
            _ => rng.choice(known),
        }
    }

    pub(super) fn tokens_that_end(&self, ending: usize, rng: &mut Rng) -> Option<usize> {
        let ending = &self.endings[ending];
        rng.choice((0..self.tokens.len()).filter(|token| ending.what.ends(&self.tokens[*token])).collect::<Vec<_>>())
    }

    pub(super) fn secret_of(&self, tenant: usize, rng: &mut Rng) -> Option<Secret> {
        rng.choice(self.secrets.iter().filter(|secret| secret.tenant == tenant).collect::<Vec<_>>()).cloned()
    }
}
