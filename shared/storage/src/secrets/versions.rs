//! One secret's versions in Secrets Manager during a rotation. Each has a name and staging labels; functions read the
//! version with the `AWSCURRENT` label.
//! <https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html#term_version>

use std::{fmt, future::Future};

use aws_sdk_secretsmanager::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_secret_value::{GetSecretValueError, GetSecretValueOutput},
};
use serde_json::Value;

use super::{SecretError, Secrets, reason};

/// The current version's label.
pub const CURRENT: &str = "AWSCURRENT";
/// The label of a rotation's new version.
pub const PENDING: &str = "AWSPENDING";

/// One version.
#[derive(Clone)]
pub struct Version {
    /// The name: the rotation's token.
    pub id: String,
    /// The staging labels.
    pub labels: Vec<String>,
    /// The value. Never printed.
    pub value: Value,
}

impl Version {
    /// Whether the version has this label.
    pub fn is(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Version").field("id", &self.id).field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// A secret whose versions can be read and changed.
pub trait Versioned: Send + Sync {
    /// Whether this is the secret's name or its ARN.
    fn is_called(&self, id: &str) -> bool;

    /// The current version.
    fn current(&self) -> impl Future<Output = Result<Version, SecretError>> + Send;

    /// The version with this name, if it exists and has a value.
    fn version(&self, id: &str) -> impl Future<Output = Result<Option<Version>, SecretError>> + Send;

    /// Creates a version with this name and only this label. Fails if it exists with another value.
    fn put(&self, id: &str, value: &Value, label: &str) -> impl Future<Output = Result<(), SecretError>> + Send;

    /// Makes this version the current one, if `previous` is still the current one.
    fn make_current(&self, id: &str, previous: &str) -> impl Future<Output = Result<(), SecretError>> + Send;

    /// The version with a rotation's label, whether or not the rotation is finished.
    fn pending(&self) -> impl Future<Output = Result<Option<Version>, SecretError>> + Send;

    /// Removes this label from this version.
    fn take_label(&self, id: &str, label: &str) -> impl Future<Output = Result<(), SecretError>> + Send;

    /// Ends an unfinished rotation and returns its version. The version loses its label even if it is already current,
    /// because Secrets Manager begins no other rotation while another version has the label.
    fn abandon_pending(&self) -> impl Future<Output = Result<Option<Version>, SecretError>> + Send {
        async {
            let pending = self.pending().await?;
            if let Some(version) = &pending {
                self.take_label(&version.id, PENDING).await?;
            }
            Ok(pending)
        }
    }
}

/// A secret in Secrets Manager.
#[derive(Debug, Clone)]
pub struct SecretVersions {
    client: Client,
    name: String,
}

impl SecretVersions {
    /// The secret with this full name.
    pub fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }

    /// One of a deployment's secrets.
    pub fn of(secrets: &Secrets, name: &str) -> Self {
        Self::new(secrets.client.clone(), format!("{}{name}", secrets.prefix))
    }

    /// The version in a response; `None` if there is no version with a value.
    fn found(
        &self,
        response: Result<GetSecretValueOutput, SdkError<GetSecretValueError>>,
    ) -> Result<Option<Version>, SecretError> {
        let response = match response {
            Ok(response) => response,
            Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
                return Ok(None);
            }
            Err(error) => return Err(self.failure(&error)),
        };
        let Some(text) = response.secret_string.filter(|text| !text.is_empty()) else { return Ok(None) };
        let malformed = |source| SecretError::Malformed { name: self.name.clone(), source };
        let value = serde_json::from_str(&text).map_err(malformed)?;
        let id = response.version_id.unwrap_or_default();
        let labels = response.version_stages.unwrap_or_default();
        Ok(Some(Version { id, labels, value }))
    }

    fn failure<E: ProvideErrorMetadata + std::error::Error + 'static>(&self, error: &SdkError<E>) -> SecretError {
        SecretError::Unavailable { name: self.name.clone(), reason: reason(error) }
    }
}

impl Versioned for SecretVersions {
    fn is_called(&self, id: &str) -> bool {
        // Secrets Manager appends a hyphen and six characters to the name in an ARN.
        let in_arn = id.split_once(":secret:").and_then(|(_, name)| name.rsplit_once('-')).map(|(name, _)| name);
        id == self.name || in_arn == Some(&self.name)
    }

    async fn current(&self) -> Result<Version, SecretError> {
        let response = self.client.get_secret_value().secret_id(&self.name).send().await;
        self.found(response)?.ok_or_else(|| SecretError::Missing { name: self.name.clone() })
    }

    async fn version(&self, id: &str) -> Result<Option<Version>, SecretError> {
        let response = self.client.get_secret_value().secret_id(&self.name).version_id(id).send().await;
        self.found(response)
    }

    async fn put(&self, id: &str, value: &Value, label: &str) -> Result<(), SecretError> {
        let put = self.client.put_secret_value().secret_id(&self.name).client_request_token(id);
        let put = put.secret_string(value.to_string()).version_stages(label).send().await;
        put.map(drop).map_err(|error| self.failure(&error))
    }

    async fn make_current(&self, id: &str, previous: &str) -> Result<(), SecretError> {
        let change = self.client.update_secret_version_stage().secret_id(&self.name).version_stage(CURRENT);
        let changed = change.move_to_version_id(id).remove_from_version_id(previous).send().await;
        changed.map(drop).map_err(|error| self.failure(&error))
    }

    async fn pending(&self) -> Result<Option<Version>, SecretError> {
        let response = self.client.get_secret_value().secret_id(&self.name).version_stage(PENDING).send().await;
        self.found(response)
    }

    async fn take_label(&self, id: &str, label: &str) -> Result<(), SecretError> {
        let change = self.client.update_secret_version_stage().secret_id(&self.name).version_stage(label);
        change.remove_from_version_id(id).send().await.map(drop).map_err(|error| self.failure(&error))
    }
}
