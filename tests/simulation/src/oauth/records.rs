//! The facts that the token issuer's clients remember.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

/// The facts that tenants remember about tokens.
#[derive(Debug, Default)]
pub struct Records {
    /// The applications' secrets.
    pub secrets: Vec<Secret>,
    /// The tokens that clients got.
    pub tokens: Vec<Token>,
    /// The requests that end tokens, secrets or applications.
    pub endings: Vec<Ending>,
    /// The verifications of tokens so far.
    pub verifications: Vec<Verification>,
    /// The responses by tenant, path and idempotency key.
    pub answers: BTreeMap<(usize, String, String), BTreeSet<String>>,
    /// The number of applications that may have been created, by name. All tries with the same key create a single
    /// application.
    pub made: BTreeMap<(usize, String), u32>,
}

/// An application's secret.
#[derive(Debug, Clone)]
pub struct Secret {
    /// The tenant that owns the application.
    pub tenant: usize,
    /// The client identifier of the application.
    pub client: String,
    /// The secret's identifier.
    pub id: String,
    /// The secret itself.
    pub secret: String,
}

/// A token that a client got.
#[derive(Debug, Clone)]
pub struct Token {
    /// The tenant whose application got the token.
    pub tenant: usize,
    /// The client identifier of the application.
    pub client: String,
    /// The identifier of the secret that was used to get the token.
    pub credential: String,
    /// The token's identifier.
    pub id: String,
    /// When the token expires, in seconds.
    pub expires: u64,
    /// The token itself.
    pub text: String,
}

/// The thing that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ends {
    /// A token, with its identifier.
    Token(String),
    /// A secret, with the application's identifier and its own.
    Secret(String, String),
    /// An application, with its identifier.
    Application(String),
}

/// A request that ends something.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The thing that ends.
    pub what: Ends,
    /// When the request began, in milliseconds.
    pub began: u64,
    /// When the request was acknowledged, if it was.
    pub acknowledged: Option<u64>,
}

/// A function's verdict on a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The token is valid.
    Valid,
    /// The token was refused, for this reason.
    Refused(String),
    /// The table did not respond.
    Unavailable,
}

/// The verification of a token.
#[derive(Debug, Clone)]
pub struct Verification {
    /// The token's index in the records.
    pub token: usize,
    /// Whether the revocations were read for this verification.
    pub fresh: bool,
    /// The sandbox and the invocation; `None` for a request with several tries.
    pub place: Option<(u64, u64)>,
    /// When the verification began, in milliseconds.
    pub began: u64,
    /// When the verification completed.
    pub answered: u64,
    /// The function's verdict.
    pub verdict: Verdict,
}

impl Ends {
    /// Whether this ends the given token.
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
        // Choose the token that ended last, any token that ended, or any token.
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
