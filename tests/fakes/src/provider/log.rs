//! The requests to a simulated provider, each with its outcome.

use std::time::Instant;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A choice on the consent page.
    Consent,
    /// Exchange of a code for tokens.
    Exchange,
    /// Exchange of a refresh token for new tokens.
    Refresh,
    /// Revocation of access.
    Revocation,
}

/// A request's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The provider carried out the request.
    Done,
    /// The person did not consent.
    Declined,
    /// The provider refused the request, for this reason.
    Refused(String),
    /// The requested failure.
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
    /// The account of the presented code or token, if any.
    pub account: Option<String>,
    /// A request's outcome.
    pub outcome: RequestOutcome,
    /// When the request was complete.
    pub at: Instant,
}
