//! The keys that the issuer signs tokens with. A key signs a token only if it stays published for the token's entire
//! lifetime.

use std::{sync::Arc, time::Duration};

use auth::Verifier;
use auth::signing::{BadSigningKey, SECRET, SigningKey, SigningKeys, SigningSecret};
use base::refreshed::{Reading, Refreshed, Source};
use base::{SharedClock, Time};
use problem::Problem;
use storage::{SecretError, Secrets, TableError};

/// Minimum time between two reads of the secret that happen because its key may no longer sign: the key is about to be
/// replaced, or was just replaced.
const RETIRED_KEY_PAUSE: Duration = Duration::from_secs(5);

/// Why no key can sign.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The secret could not be read.
    #[error("the issuer's keys could not be read")]
    Secret(#[from] SecretError),
    /// The secret is unusable.
    #[error(transparent)]
    Key(#[from] BadSigningKey),
    /// The published keys or the revocations could not be read.
    #[error("the published keys or the revocations could not be read")]
    Table(#[from] TableError),
    /// The key is revoked or not published, or would end before the token.
    #[error("the key `{0}` expires before a new token would, and no other key can sign")]
    Retired(String),
}

impl From<SigningKeyError> for Problem {
    fn from(error: SigningKeyError) -> Self {
        match error {
            SigningKeyError::Secret(error) => error.into(),
            SigningKeyError::Table(error) => error.into(),
            SigningKeyError::Key(error) => Problem::internal(error),
            SigningKeyError::Retired(_) => Problem::unavailable(error),
        }
    }
}

/// The keys in memory.
pub struct SigningKeyCache {
    secret: Refreshed<SigningSecretSource>,
    /// Knows which keys are valid.
    tokens: Arc<Verifier>,
}

impl SigningKeyCache {
    /// Reads the keys before the first request. A failure is logged, and the first request tries again.
    pub async fn start(secrets: Secrets, tokens: Arc<Verifier>, clock: SharedClock) -> Self {
        let (secret, ()) = tokio::join!(Refreshed::warm(SigningSecretSource(secrets), clock), tokens.warm_up());
        Self { secret, tokens }
    }

    /// The keys, with a current key that is valid until `end`. If the cached one is not, it was replaced or revoked, so
    /// the secret is read again at once.
    pub async fn keys_until(&self, end: Time) -> Result<Arc<SigningKeys>, SigningKeyError> {
        let keys = self.secret.get().await?;
        if self.is_valid_until(&keys.current, end).await? {
            return Ok(keys);
        }
        let retired = keys.current.kid();
        let keys = self.secret.suitable(RETIRED_KEY_PAUSE, |keys| keys.current.kid() != retired).await?;
        if self.is_valid_until(&keys.current, end).await? {
            Ok(keys)
        } else {
            Err(SigningKeyError::Retired(keys.current.kid().to_owned()))
        }
    }

    async fn is_valid_until(&self, key: &SigningKey, end: Time) -> Result<bool, TableError> {
        let (published, revoked) =
            tokio::try_join!(self.tokens.keys().for_key(key.kid()), self.tokens.revocations().key_revoked(key.kid()))?;
        Ok(!revoked && published.get(key.kid(), end).is_some())
    }
}

/// Reads the keys from Secrets Manager.
pub struct SigningSecretSource(pub Secrets);

impl Source for SigningSecretSource {
    type Value = SigningKeys;
    type Error = SigningKeyError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async {
            let secret: serde_json::Value = self.0.read(SECRET).await?;
            Ok(SigningSecret::read(&secret)?.keys()?)
        })
    }
}
