//! Why a step of a rotation was not done.

use auth::{
    jws::JwsFault,
    keys::RevokedKey,
    signing::{BadSigningKey, SECRET},
};
use base::Time;
use storage::{SecretError, TableError, secrets::versions::PENDING};

/// Why a step was not done. Secrets Manager or the operator tries again.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    #[error("this function rotates the secret `{SECRET}` of its own deployment, and no other")]
    Foreign,
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Key(#[from] BadSigningKey),
    #[error("no version of this name is labelled {PENDING} and follows the current one; begin with createSecret")]
    NotPending,
    #[error(transparent)]
    Revoked(#[from] RevokedKey),
    #[error("the key {0} is not published, or not any more, and can sign nothing")]
    NotPublished(String),
    #[error("the key {kid} is published, but not for long enough: it can sign from {ready} on")]
    TooYoung { kid: String, ready: Time },
    #[error("the key {0} cannot sign")]
    CannotSign(String),
    #[error("what the key {kid} signs cannot be verified with what is published")]
    Unverifiable { kid: String, source: JwsFault },
}

impl RotationError {
    /// The error's name in the audit trail.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Foreign => "foreign-secret",
            Self::Secret(_) | Self::Table(_) => "service-unavailable",
            Self::Key(_) => "malformed-secret",
            Self::NotPending => "not-pending",
            Self::Revoked(_) => "key-revoked",
            Self::NotPublished(_) => "key-not-published",
            Self::TooYoung { .. } => "key-too-young",
            Self::CannotSign(_) | Self::Unverifiable { .. } => "key-unusable",
        }
    }
}
