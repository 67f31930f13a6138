//! The issuer's own secrets: the key that signs tokens and the pepper of client secrets.

use serde::Deserialize;

use crate::{
    auth::signing::{self, BadSigningKey, SigningKey},
    http::Problem,
    refreshed::{Refreshed, Source},
    secrets::{SecretBytes, SecretError, Secrets},
};

/// The name of the pepper's secret after the prefix.
pub const PEPPER_SECRET: &str = "client-secret-pepper";

/// What an issuer needs to issue.
#[derive(Debug)]
pub struct IssuerSecrets {
    /// Signs tokens.
    pub key: SigningKey,
    /// Goes into the hash of every client secret.
    pub pepper: SecretBytes,
}

/// The pepper as it stands in Secrets Manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PepperSecret {
    pepper: SecretBytes,
}

/// Why the issuer's secrets could not be had.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// One could not be read.
    #[error("the issuer's secrets could not be read")]
    Secret(#[from] SecretError),
    /// The key is unusable.
    #[error(transparent)]
    Key(#[from] BadSigningKey),
}

impl From<IssuerError> for Problem {
    fn from(error: IssuerError) -> Self {
        match error {
            IssuerError::Secret(error) => error.into(),
            IssuerError::Key(error) => Problem::internal(error),
        }
    }
}

/// The secrets in memory.
pub type Issuer = Refreshed<IssuerSource>;

/// Where the issuer's secrets are read.
pub struct IssuerSource(pub Secrets);

impl Source for IssuerSource {
    type Value = IssuerSecrets;
    type Error = IssuerError;

    async fn load(&self) -> Result<IssuerSecrets, IssuerError> {
        let (key, pepper) =
            tokio::join!(self.0.read::<serde_json::Value>(signing::SECRET), self.0.read::<PepperSecret>(PEPPER_SECRET));
        Ok(IssuerSecrets { key: SigningKey::from_secret(&key?)?, pepper: pepper?.pepper })
    }
}
