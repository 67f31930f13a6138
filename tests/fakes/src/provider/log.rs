//! The requests to a simulated provider, each with its outcome.

use std::time::Instant;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A choice on the consent page.
    Consent,
    /// A code against tokens.
    Exchange,
    /// A refresh token against new tokens.
    Refresh,
    /// Access given back.
    Revocation,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was done.
    Done,
    /// The person did not consent.
    Declined,
    /// It was refused, for this reason.
    Refused(String),
    /// It failed as it was asked to.
    Failed,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The provider.
    pub provider: String,
    /// The kind of a request.
    pub kind: Kind,
    /// The code, or the token that was presented.
    pub presented: String,
    /// The account, where what was presented belongs to one.
    pub account: Option<String>,
    /// The outcome of a request.
    pub outcome: RequestOutcome,
    /// When it was complete.
    pub at: Instant,
}
