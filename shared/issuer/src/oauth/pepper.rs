//! The pepper of client secrets. It is a separate secret in Secrets Manager, so that a function can authenticate
//! clients without access to the keys that sign tokens.

use serde::Deserialize;
use serde_json::Value;

use base::refreshed::{Reading, Refreshed, Source};
use storage::{SecretBytes, SecretError, Secrets};

/// The secret's name after the prefix.
pub const SECRET: &str = "client-secret-pepper";

/// The pepper as stored in Secrets Manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PepperSecret {
    pepper: SecretBytes,
}

/// Parses the pepper from a secret's value, to check it before any client needs it. The error names members and shows
/// no value.
pub fn read(secret: &Value) -> Result<SecretBytes, serde_json::Error> {
    PepperSecret::deserialize(secret).map(|secret| secret.pepper)
}

/// The pepper in memory.
pub type Pepper = Refreshed<PepperSource>;

/// Reads the pepper from Secrets Manager.
pub struct PepperSource(pub Secrets);

impl Source for PepperSource {
    type Value = SecretBytes;
    type Error = SecretError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async { self.0.read::<PepperSecret>(SECRET).await.map(|secret| secret.pepper) })
    }
}
