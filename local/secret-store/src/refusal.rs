//! The operations' errors, with Secrets Manager's names, and file errors.
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html>

use std::{io, path::PathBuf};

use http::StatusCode;
use serde_json::{Value, json};

/// A file that cannot be used. The error does not contain the file's content.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system refused the operation.
    #[error("{path} cannot be used")]
    Io {
        /// The path of the file or the folder.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// Another program changed the versions file.
    #[error("{0} is damaged; remove it. The secret's current value is safe in the .json file of the same name")]
    Versions(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("Secrets Manager can't find the specified secret.")]
    NoSecret,
    #[error("Secrets Manager can't find the specified secret value for staging label: {0}")]
    NoLabel(String),
    #[error("Secrets Manager can't find the specified secret value for VersionId: {0}")]
    NoVersion(String),
    #[error("You can't perform this operation on the secret because it was marked for deletion.")]
    MarkedForDeletion,
    #[error("You can't create this secret because a secret with this name is already scheduled for deletion.")]
    NameMarkedForDeletion,
    #[error("The operation failed because the secret {0} already exists.")]
    SecretExists(String),
    #[error("You can't use ClientRequestToken {0} because that value is already in use for a version of this secret.")]
    VersionExists(String),
    #[error("You provided a VersionStage that is not associated to the provided VersionId.")]
    OtherVersion,
    #[error("You must provide either SecretString or SecretBinary.")]
    NoValue,
    #[error("No Lambda rotation function ARN is associated with this secret.")]
    NoRotation,
    /// A parameter has an invalid value.
    #[error("{0}")]
    Parameter(String),
    /// A well-formed request for an unsupported feature.
    #[error("{0} is not supported by the local Secrets Manager.")]
    Unsupported(&'static str),
    #[error("{0} is not an operation of the local Secrets Manager.")]
    Operation(String),
    /// Leave out serde's error, since it may repeat a member's value.
    #[error("The request is not valid JSON for this operation.")]
    Form,
    #[error("One of the secret's files could not be read or written{}.", reason(.0))]
    File(#[from] FileError),
    #[error("The operation ended unexpectedly.")]
    Panic,
}

/// The system's reason, in a word. Only the operator's log shows the path.
fn reason(error: &FileError) -> String {
    match error {
        FileError::Io { source, .. } => format!(": {}", source.kind()),
        FileError::Versions(_) => String::new(),
    }
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSecret | Self::NoLabel(_) | Self::NoVersion(_) => "ResourceNotFoundException",
            Self::MarkedForDeletion
            | Self::NameMarkedForDeletion
            | Self::OtherVersion
            | Self::NoValue
            | Self::NoRotation => "InvalidRequestException",
            Self::SecretExists(_) | Self::VersionExists(_) => "ResourceExistsException",
            Self::Parameter(_) | Self::Unsupported(_) => "InvalidParameterException",
            Self::Operation(_) => "UnknownOperationException",
            Self::Form => "SerializationException",
            Self::File(_) | Self::Panic => "InternalServiceError",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::File(_) | Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    pub fn content(&self) -> Value {
        json!({ "__type": self.code(), "Message": self.to_string() })
    }

    /// Logs a fault on this machine for the operator. All other refusals concern only the caller.
    pub fn log(&self) {
        if let Self::File(error) = self {
            tracing::error!("{}", base::logging::chain(error));
        }
    }
}
