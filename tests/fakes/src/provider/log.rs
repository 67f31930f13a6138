//! The requests to the simulated providers, each with its outcome.

use std::time::Instant;

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A choice on the consent page.
    Consent,
    /// Exchanging a code for tokens.
    Exchange,
    /// Exchanging a refresh token for new tokens.
    Refresh,
    /// Revoking access.
    Revocation,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The provider carried out the request.
    Done,
    /// The person did not consent.
    Declined,
    /// The provider refused the request, for this reason.
    Refused(String),
    /// The provider failed as requested.
    Failed,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The provider's name.
    pub provider: String,
    /// The kind of request.
    pub kind: Kind,
    /// The code or token that was presented.
    pub presented: String,
    /// The account that the code or token belongs to, if any.
    pub account: Option<String>,
    /// The outcome of the request.
    pub outcome: RequestOutcome,
    /// When the complete request had been received.
    pub at: Instant,
}
