//! Secrets Manager, and the type of a value that must not be printed.

mod together;
pub mod versions;

use std::{collections::HashMap, fmt};

use aws_sdk_secretsmanager::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_secret_value::GetSecretValueError,
};
use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, de::DeserializeOwned};

use zeroize::ZeroizeOnDrop;

use crate::aws::{Aws, CallError};
use base::{Environment, FromEnvironment};
use problem::Problem;
use together::Together;

/// Bytes that must never be seen: no `Display`, a `Debug` that says nothing, and wiped from memory when dropped. There
/// is no `==`, whose time would show how much is equal: compare in constant time. In JSON they are base 64.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Keeps these bytes from being printed.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for a computation with them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(…)")
    }
}

impl<'de> Deserialize<'de> for SecretBytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::{Engine, prelude::BASE64_STANDARD};
        let text = String::deserialize(deserializer)?;
        // The text is not repeated in the error: it is a secret, if a malformed one.
        BASE64_STANDARD.decode(text).map(Self).map_err(|_| serde::de::Error::custom("not base 64"))
    }
}

/// Text that must never be seen: no `Display`, a `Debug` that says nothing, and wiped from memory when dropped. There
/// is no `==`, and it is serialised nowhere by itself.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretText(String);

impl SecretText {
    /// Keeps this text from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for sending or sealing it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// The secrets of this deployment, by their names after the prefix.
#[derive(Debug, Clone)]
pub struct Secrets {
    client: Client,
    prefix: String,
    together: Option<Together<SecretText>>,
}

/// Why a secret could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// There is no such secret, or it is about to be deleted.
    #[error("there is no secret `{name}`")]
    Missing {
        /// Its name, prefix included.
        name: String,
    },
    /// Secrets Manager did not answer, or does not give it to this function.
    #[error("the secret `{name}` could not be read or written: {reason}")]
    Unavailable {
        /// Its name, prefix included.
        name: String,
        /// What Secrets Manager or the SDK says; never the value.
        reason: String,
    },
    /// The secret is not what this program writes.
    #[error("the secret `{name}` is malformed")]
    Malformed {
        /// Its name, prefix included.
        name: String,
        /// The fault; serde names members and types, and never the value of a secret member.
        #[source]
        source: serde_json::Error,
    },
}

impl Secrets {
    /// The secrets whose names begin with the prefix.
    pub fn connect(aws: &Aws, prefix: impl Into<String>) -> Self {
        Self::new(aws.secrets_manager(), prefix)
    }

    /// The same secrets for a program that is no function, by a client with its credentials.
    pub fn new(client: Client, prefix: impl Into<String>) -> Self {
        Self { client, prefix: prefix.into(), together: None }
    }

    /// The same, whose first readings of these come in one call: for a function that needs all of them at its start, and has
    /// the right to read several at once.
    pub fn together(self, names: &[&str]) -> Self {
        let names = names.iter().map(|name| format!("{}{name}", self.prefix)).collect();
        Self { together: Some(Together::new(names)), ..self }
    }

    /// Reads the present version of a secret.
    pub async fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T, SecretError> {
        let name = format!("{}{name}", self.prefix);
        let first = match &self.together {
            Some(together) => together.first(&name, |names| self.texts(names)).await,
            None => None,
        };
        let value = match first {
            Some(value) => value,
            None => SecretText::new(self.text(&name).await?),
        };
        serde_json::from_str(value.expose()).map_err(|source| SecretError::Malformed { name, source })
    }

    /// The values of these secrets, in one call. Those that do not come are read alone, whose error says why.
    fn texts(&self, names: Vec<String>) -> BoxFuture<'_, HashMap<String, SecretText>> {
        async move {
            let values = match self.client.batch_get_secret_value().set_secret_id_list(Some(names)).send().await {
                Ok(answer) => answer.secret_values.unwrap_or_default(),
                Err(error) => {
                    tracing::warn!(reason = reason(&error), "secrets could not be read in one call");
                    Vec::new()
                }
            };
            values.into_iter().filter_map(|value| Some((value.name?, SecretText::new(value.secret_string?)))).collect()
        }
        .boxed()
    }

    /// Boxed for the same reason as the calls of the table ([`crate::table::TableFuture`]).
    fn text<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, SecretError>> {
        async move {
            match self.client.get_secret_value().secret_id(name).send().await {
                Ok(answer) => Ok(answer.secret_string.unwrap_or_default()),
                Err(error) if error.as_service_error().is_some_and(is_gone) => {
                    Err(SecretError::Missing { name: name.to_owned() })
                }
                Err(error) => Err(SecretError::Unavailable { name: name.to_owned(), reason: reason(&error) }),
            }
        }
        .boxed()
    }
}

/// Whether an answer says that there is no such secret. One that was deleted is kept for some days first, and asking
/// for its value is an invalid request meanwhile.
/// <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html>
fn is_gone(error: &GetSecretValueError) -> bool {
    error.is_resource_not_found_exception() || error.is_invalid_request_exception()
}

/// The reason of an error for the log: never the answer itself, which could have the secret in it.
fn reason<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> String {
    match error {
        SdkError::ServiceError(_) => CallError::of(error).to_string(),
        SdkError::TimeoutError(_) => "no answer in time".to_owned(),
        SdkError::DispatchFailure(_) => "no connection".to_owned(),
        SdkError::ResponseError(_) => "an answer that cannot be read".to_owned(),
        _ => "a request that cannot be made".to_owned(),
    }
}

/// Where the secrets are: `SECRETS_PREFIX`, put before each name in Secrets Manager.
#[derive(Debug, Clone)]
pub struct SecretSettings {
    /// Ends with a slash, by convention.
    pub prefix: String,
}

impl FromEnvironment for SecretSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { prefix: environment.required("SECRETS_PREFIX")? })
    }
}

impl From<SecretError> for Problem {
    fn from(error: SecretError) -> Self {
        match error {
            // A secret that a function needs comes back when an operator puts it there.
            SecretError::Missing { .. } | SecretError::Unavailable { .. } => Self::unavailable(error),
            SecretError::Malformed { .. } => Self::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_waits_for_its_deletion_is_gone() {
        use aws_sdk_secretsmanager::types::error::{
            InternalServiceError, InvalidRequestException, ResourceNotFoundException,
        };
        let waiting = InvalidRequestException::builder().build();
        assert!(is_gone(&GetSecretValueError::InvalidRequestException(waiting)));
        assert!(is_gone(&GetSecretValueError::ResourceNotFoundException(ResourceNotFoundException::builder().build())));
        assert!(!is_gone(&GetSecretValueError::InternalServiceError(InternalServiceError::builder().build())));
    }

    #[test]
    fn what_is_secret_is_not_printed() {
        let text = SecretText::new("hunter2");
        let bytes = SecretBytes::new(b"hunter2".to_vec());
        assert_eq!(format!("{text:?} {bytes:?}"), "SecretText(…) SecretBytes(…)");
    }
}
