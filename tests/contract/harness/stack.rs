//! A deployed stack in the place of the bundle that tests share: a file describes it, in the form of `service.env`.

use std::{collections::BTreeMap, fs, panic, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{Secrets, aws::secrets_manager, bundle::variables};

/// The variable that names the file. Without it, the tests start a bundle.
pub const VARIABLE: &str = "DEPLOYED";

/// A stack that runs elsewhere, and that this program neither starts nor ends.
pub struct Stack {
    /// The variables of `service.env`, and those that only a stack has: `STACK`, its name; `API_ADDRESS`, where requests to
    /// its `BASE_URL` are sent; `FUNCTION_…`, what the functions are called there; and its outputs by their names.
    pub env: Arc<BTreeMap<String, String>>,
    /// What it signs tokens with.
    pub signing_key: Value,
}

/// Why a test says nothing of a deployed stack: it asked for what only a bundle of this machine has.
pub struct NeedsBundle(pub &'static str);

/// Ends the test, which asked a deployed stack for this.
pub fn needs_bundle(what: &'static str) -> ! {
    panic::panic_any(NeedsBundle(what))
}

impl Stack {
    /// Reads the description of a stack, and gives the stack the secrets that an operator would put there.
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

    /// The options and variables with which the operator's program finds it.
    pub fn for_admin(&self) -> ([&str; 2], Vec<(&str, String)>) {
        let aws = self.env.iter().filter(|(name, _)| name.starts_with("AWS_"));
        (["--stack", &self.env["STACK"]], aws.map(|(name, value)| (name.as_str(), value.clone())).collect())
    }
}

/// The name of a secret of the service.
pub fn secret(env: &BTreeMap<String, String>, name: &str) -> String {
    format!("waypost/{}/{name}", env["ENVIRONMENT"])
}
