//! Why an exchange did not complete.

/// Why an exchange did not complete: a stable code and a sentence, neither of which says anything of this service's
/// inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The name does not resolve.
    #[error("dns: {0}")]
    Dns(&'static str),
    /// There was no connection, or it broke, or what came over it was not HTTP.
    #[error("connect: {0}")]
    Connect(&'static str),
    /// TLS failed.
    #[error("tls: {0}")]
    Tls(&'static str),
    /// It took too long.
    #[error("timeout: {0}")]
    Timeout(&'static str),
    /// The target may not be dialled.
    #[error("blocked: {0}")]
    Blocked(&'static str),
}
