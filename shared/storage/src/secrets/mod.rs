//! Secrets Manager, and types for values that must not be printed.

pub mod versions;

use std::fmt;

use aws_sdk_secretsmanager::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_secret_value::GetSecretValueError,
    types::{Filter, FilterNameStringType},
};
use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, de::DeserializeOwned};

use zeroize::ZeroizeOnDrop;

use crate::aws::{Aws, CallError};
use base::{Environment, FromEnvironment};
use problem::Problem;

/// Secret bytes: without `Display`, with a `Debug` that hides them, and wiped from memory when dropped. There is no
/// `==`, since its duration would reveal the bytes: compare in constant time. In JSON they are Base64.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Wraps these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, to compute with.
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
        // The error does not repeat the text: it may be a malformed secret.
        BASE64_STANDARD.decode(text).map(Self).map_err(|_| serde::de::Error::custom("not Base64"))
    }
}

/// Secret text: without `Display`, `==` and `Serialize`, with a `Debug` that hides it, and wiped from memory when
/// dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps this text.
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

/// This deployment's secrets, by their names after the prefix.
#[derive(Debug, Clone)]
pub struct Secrets {
    client: Client,
    prefix: String,
}

/// A secret could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The secret does not exist, or is scheduled for deletion.
    #[error("there is no secret `{name}`")]
    Missing {
        /// The secret's name, prefix included.
        name: String,
    },
    /// Secrets Manager did not respond or denied access.
    #[error("the secret `{name}` could not be read or written: {reason}")]
    Unavailable {
        /// The secret's name, prefix included.
        name: String,
        /// The error of Secrets Manager or the SDK; never the value.
        reason: String,
    },
    /// The secret does not have the format that this program writes.
    #[error("the secret `{name}` is malformed")]
    Malformed {
        /// The secret's name, prefix included.
        name: String,
        /// The fault; serde names members and types, but never a secret member's value.
        #[source]
        source: serde_json::Error,
    },
}

impl Secrets {
    /// The secrets whose names begin with the prefix.
    pub fn connect(aws: &Aws, prefix: impl Into<String>) -> Self {
        Self::new(aws.secrets_manager(), prefix)
    }

    /// The secrets whose names begin with the prefix, read by this client, for programs outside of Lambda.
    pub fn new(client: Client, prefix: impl Into<String>) -> Self {
        Self { client, prefix: prefix.into() }
    }

    /// Reads a secret's current version.
    pub async fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T, SecretError> {
        let name = format!("{}{name}", self.prefix);
        let value = SecretText::new(self.text(&name).await?);
        serde_json::from_str(value.expose()).map_err(|source| SecretError::Malformed { name, source })
    }

    /// The names of the secrets that begin with this string, without the deployment's prefix.
    pub async fn names(&self, beginning: &str) -> Result<Vec<String>, SecretError> {
        let beginning = format!("{}{beginning}", self.prefix);
        let names = self.full_names(&beginning).await?;
        let names = names.iter().filter(|name| name.starts_with(&beginning));
        Ok(names.filter_map(|name| name.strip_prefix(&self.prefix)).map(str::to_owned).collect())
    }

    /// Reads the names of secrets. Boxed for the same reason as calls to the table ([`crate::table::TableFuture`]).
    fn full_names<'a>(&'a self, beginning: &'a str) -> BoxFuture<'a, Result<Vec<String>, SecretError>> {
        async move {
            let filter = Filter::builder().key(FilterNameStringType::Name).values(beginning).build();
            let mut pages = self.client.list_secrets().filters(filter).into_paginator().send();
            let mut names = Vec::new();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| SecretError::Unavailable {
                    name: format!("{beginning}…"),
                    reason: reason(&error),
                })?;
                names.extend(page.secret_list.into_iter().flatten().filter_map(|entry| entry.name));
            }
            Ok(names)
        }
        .boxed()
    }

    /// Reads a secret's text. Boxed for the same reason as calls to the table ([`crate::table::TableFuture`]).
    fn text<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, SecretError>> {
        async move {
            match self.client.get_secret_value().secret_id(name).send().await {
                Ok(response) => Ok(response.secret_string.unwrap_or_default()),
                Err(error) if error.as_service_error().is_some_and(is_gone) => {
                    Err(SecretError::Missing { name: name.to_owned() })
                }
                Err(error) => Err(SecretError::Unavailable { name: name.to_owned(), reason: reason(&error) }),
            }
        }
        .boxed()
    }
}

/// Whether an error means that the secret does not exist. A deleted secret is kept for some days, during which reading
/// it is an invalid request. <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html>
fn is_gone(error: &GetSecretValueError) -> bool {
    error.is_resource_not_found_exception() || error.is_invalid_request_exception()
}

/// The reason for an error, for the log, without the response, which could contain the secret.
fn reason<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> String {
    match error {
        SdkError::ServiceError(_) => CallError::of(error).to_string(),
        SdkError::TimeoutError(_) => "no response in time".to_owned(),
        SdkError::DispatchFailure(_) => "no connection".to_owned(),
        SdkError::ResponseError(_) => "an unreadable response".to_owned(),
        _ => "an invalid request".to_owned(),
    }
}

/// The prefix of the secrets' names in Secrets Manager: `SECRETS_PREFIX`.
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
            // A missing secret is available again once an operator has stored it.
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
    fn a_secret_is_not_printed() {
        let text = SecretText::new("hunter2");
        let bytes = SecretBytes::new(b"hunter2".to_vec());
        assert_eq!(format!("{text:?} {bytes:?}"), "SecretText(…) SecretBytes(…)");
    }
}
