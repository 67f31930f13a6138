//! What a simulated provider was asked, and what came of it.

use std::time::Instant;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Somebody chose on the consent page.
    Consent,
    /// A code against tokens.
    Exchange,
    /// A refresh token against new tokens.
    Refresh,
    /// Access given back.
    Revocation,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was done.
    Done,
    /// The person said no.
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
    /// What was asked for.
    pub kind: Kind,
    /// The code, or the token that was presented.
    pub presented: String,
    /// The account, where what was presented belongs to one.
    pub account: Option<String>,
    /// What came of it.
    pub outcome: RequestOutcome,
    /// When it was complete.
    pub at: Instant,
}
