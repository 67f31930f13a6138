//! A secret that an operator replaces.

use std::fs::File;

use serde_json::Value;

use crate::{Deployment, DeploymentError};
use base::{SystemRandom, random};
use storage::SecretError;
use storage::secrets::versions::{SecretVersions, Version, Versioned};

/// The label of a version before it is the current one. Secrets Manager's own label is that of its rotations.
const UNFINISHED: &str = "WAYPOSTPENDING";

/// A secret of a deployment. On one machine no second rotation begins for as long as it is open.
pub struct ReplacedSecret {
    /// The versions in Secrets Manager.
    pub versions: SecretVersions,
    _lock: Option<File>,
}

impl ReplacedSecret {
    /// The secret of this name after the prefix.
    pub fn open(deployment: &Deployment, name: &str) -> Result<Self, DeploymentError> {
        let lock = deployment.folder().map(|folder| folder.lock()).transpose()?;
        Ok(Self { versions: deployment.versions(name), _lock: lock })
    }

    /// The version that the functions read.
    pub async fn current(&self) -> Result<Version, SecretError> {
        self.versions.current().await
    }

    /// Makes this the value in place of that version, and returns the new version's name. The new version becomes current only
    /// if that one still is: a value that another operator made meanwhile is not lost.
    pub async fn replace(&self, value: &Value, in_place_of: &str) -> Result<String, SecretError> {
        let id = random::uuid(&SystemRandom);
        self.versions.put(&id, value, UNFINISHED).await?;
        self.versions.make_current(&id, in_place_of).await?;
        Ok(id)
    }
}
