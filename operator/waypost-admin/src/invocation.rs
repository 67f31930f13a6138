//! Invokes one of a deployment's functions, as its schedule does. IAM authorizes the call.

use aws_sdk_lambda::{
    Client,
    config::{Builder, retry::RetryConfig},
    primitives::Blob,
};
use operator::{Deployment, DeploymentError, deployment::Location};
use serde::de::DeserializeOwned;
use serde_json::Value;
use storage::aws::CallError;

/// A function that operators invoke: its name on one machine, and the stack output that contains its name.
pub struct Invoked {
    /// The function's name in the bundle.
    pub name: &'static str,
    /// The output with the function's name on AWS.
    pub output: &'static str,
}

/// Why an invocation returned no result.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// The deployment does not name the function.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    #[error("{name} did not answer; it may still be running, see its log: {reason}")]
    NoAnswer { name: &'static str, reason: String },
    #[error("{name} failed, see its log: {reason}")]
    Failed { name: &'static str, reason: String },
    #[error("{0} returned an unexpected result; this program and the deployment come from different releases")]
    Form(&'static str, #[source] serde_json::Error),
}

impl InvocationError {
    /// Whether the deployment does not exist, or does not name the function, in which case nothing was done.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Deployment(error) if error.is_refusal())
    }
}

impl Invoked {
    /// Invokes the function with a schedule's event, and waits for its result.
    pub async fn invoke<T: DeserializeOwned>(&self, deployment: &Deployment) -> Result<T, InvocationError> {
        let Self { name, output } = *self;
        let (config, function) = match &deployment.location {
            Location::Stack(stack) => (Builder::from(&stack.aws), stack.output(output)?),
            Location::Folder(folder) => {
                (Builder::from(&folder.aws().await?).endpoint_url(folder.value("LAMBDA_ENDPOINT")?), name)
            }
        };
        // No retries: a second invocation could begin while the first one is still running.
        let client = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
        let answer = client.invoke().function_name(function).payload(Blob::new("{}")).send().await;
        let answer = answer.map_err(|error| {
            let reason = CallError::of(&error).to_string();
            InvocationError::NoAnswer { name, reason }
        })?;
        let payload = answer.payload.map(Blob::into_inner).unwrap_or_default();
        if answer.function_error.is_some() {
            let said: Value = serde_json::from_slice(&payload).unwrap_or_default();
            let reason = said["errorMessage"].as_str().unwrap_or("without a reason").to_owned();
            return Err(InvocationError::Failed { name, reason });
        }
        serde_json::from_slice(&payload).map_err(|error| InvocationError::Form(name, error))
    }
}
