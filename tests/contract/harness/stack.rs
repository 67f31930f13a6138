//! A deployed stack that replaces the shared bundle, described by a file in the format of `service.env`.

use std::{collections::BTreeMap, fs, panic, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{Secrets, aws::secrets_manager, bundle::variables};

/// The variable with the file's path. Without this variable, the tests start a bundle.
pub const VARIABLE: &str = "DEPLOYED";

/// A running stack, which this program neither starts nor stops.
pub struct Stack {
    /// The variables in `service.env`, and those that only a stack has: `STACK`, its name; `API_ADDRESS`, the address
    /// for requests to its `BASE_URL`; `FUNCTION_…`, the functions' names; and its outputs by name.
    pub env: Arc<BTreeMap<String, String>>,
    /// The key that signs the stack's tokens.
    pub signing_key: Value,
}

/// The panic of a test that needs a feature of a local bundle; the test is then ignored.
pub struct NeedsBundle(pub &'static str);

/// Ends the test, which needs this feature of a local bundle.
pub fn needs_bundle(what: &'static str) -> ! {
    panic::panic_any(NeedsBundle(what))
}

impl Stack {
    /// Reads a stack's description, and stores the operator's secrets in the stack.
    pub async fn of(file: &Path, secrets: &Secrets) -> Result<Self, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let env = Arc::new(variables(&text));
        for (name, value) in secrets {
            let request = json!({ "Name": secret(&env, name), "SecretString": value.to_string() });
            secrets_manager(&env, "CreateSecret", &request).await?;
        }
        let request = json!({ "SecretId": secret(&env, "signing-key") });
        let answer = secrets_manager(&env, "GetSecretValue", &request).await?;
        let signing_key = serde_json::from_str(answer["SecretString"].as_str().unwrap_or_default());
        Ok(Self { env, signing_key: signing_key.map_err(|error| format!("the secret signing-key: {error}"))? })
    }

    /// The options and variables that the operator's program needs to find the stack.
    pub fn for_admin(&self) -> ([&str; 2], Vec<(&str, String)>) {
        let aws = self.env.iter().filter(|(name, _)| name.starts_with("AWS_"));
        (["--stack", &self.env["STACK"]], aws.map(|(name, value)| (name.as_str(), value.clone())).collect())
    }
}

/// The name of one of the service's secrets.
pub fn secret(env: &BTreeMap<String, String>, name: &str) -> String {
    format!("waypost/{}/{name}", env["ENVIRONMENT"])
}
