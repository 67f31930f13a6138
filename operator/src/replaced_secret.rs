//! A secret that an operator replaces: in Secrets Manager, and on one machine also in the file from which the next start
//! loads it.

use std::{fs::File, io, path::PathBuf};

use serde_json::Value;

use crate::{Deployment, DeploymentError, private_file};
use base::{SystemRandom, random};
use storage::SecretError;
use storage::secrets::versions::{SecretVersions, Version, Versioned};

/// The label of a version before it is the current one. Secrets Manager's own label is that of its rotations.
const UNFINISHED: &str = "WAYPOSTPENDING";

/// A secret of a deployment. On one machine no second rotation begins for as long as it is open.
pub struct ReplacedSecret {
    /// The versions in Secrets Manager.
    pub versions: SecretVersions,
    file: Option<PathBuf>,
    _lock: Option<File>,
}

/// Why a secret was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The deployment cannot be worked on.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The file for the next start cannot be used.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// The file for the next start is malformed.
    #[error("{path} is not JSON")]
    Form {
        /// The file.
        path: PathBuf,
        /// Where it stops being JSON.
        source: serde_json::Error,
    },
    /// Secrets Manager did not answer, or refused.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl ReplacedSecret {
    /// The secret of this name after the prefix.
    pub fn open(deployment: &Deployment, name: &str) -> Result<Self, DeploymentError> {
        let folder = deployment.folder();
        let lock = folder.map(|folder| folder.lock()).transpose()?;
        let file = folder.map(|folder| folder.secret_file(name));
        Ok(Self { versions: deployment.versions(name), file, _lock: lock })
    }

    /// The version that the functions read. On one machine the file counts: where it differs, an earlier replacement was stopped
    /// after its first step, and is finished.
    pub async fn current(&self) -> Result<Version, ReplaceError> {
        let loaded = self.versions.current().await?;
        let Some(path) = &self.file else { return Ok(loaded) };
        let text = std::fs::read_to_string(path).map_err(|source| ReplaceError::File { path: path.clone(), source })?;
        let kept: Value =
            serde_json::from_str(&text).map_err(|source| ReplaceError::Form { path: path.clone(), source })?;
        if kept == loaded.value {
            return Ok(loaded);
        }
        let id = self.load(&kept, &loaded.id).await?;
        Ok(Version { id, value: kept, ..loaded })
    }

    /// Makes this the value in place of that version, and returns the new version's name. On one machine the file is written
    /// first, so that no start after this moment loads the old value.
    pub async fn replace(&self, value: &Value, in_place_of: &str) -> Result<String, ReplaceError> {
        self.keep(value)?;
        self.load(value, in_place_of).await
    }

    /// On one machine, lets the next start load this value.
    pub fn keep(&self, value: &Value) -> Result<(), ReplaceError> {
        let Some(path) = &self.file else { return Ok(()) };
        let written = private_file::write(path, format!("{value}\n").as_bytes());
        written.map_err(|source| ReplaceError::File { path: path.clone(), source })
    }

    /// The new version becomes current only if that one still is: a value that another operator made meanwhile is not lost.
    async fn load(&self, value: &Value, in_place_of: &str) -> Result<String, ReplaceError> {
        let id = random::uuid(&SystemRandom);
        self.versions.put(&id, value, UNFINISHED).await?;
        self.versions.make_current(&id, in_place_of).await?;
        Ok(id)
    }
}
