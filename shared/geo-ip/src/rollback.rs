//! Back to the release before the current one. What is left is never published again, so that the next update does not
//! bring it back.

use super::{
    edition::EditionName,
    pointer::{Pointer, Release},
    store::{Object, Store, StoreError, Swap},
};

/// Why there was no rollback; the pointer is where it was.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The store did not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store holds is no pointer.
    #[error("the pointer of {0} is malformed")]
    Malformed(EditionName, #[source] serde_json::Error),
    /// Nothing is published.
    #[error("nothing is published of {0}")]
    NothingPublished(EditionName),
    /// There is only one release.
    #[error("there is no release of {0} before the current one to go back to")]
    NothingBefore(EditionName),
    /// The release before is gone from the store.
    #[error("the release of {0} before the current one is no longer in the store")]
    Gone(EditionName),
    /// An update or another rollback moved the pointer.
    #[error("the pointer of {0} was changed at the same time; look at it and try again")]
    Lost(EditionName),
}

/// The releases of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// What was current, and is blocked now.
    pub from: Release,
    /// What is current now.
    pub to: Release,
}

/// Goes back to the release before the current one.
pub async fn roll_back(store: &Store, environment: &str, edition: &EditionName) -> Result<RolledBack, RollbackError> {
    let key = Pointer::key(environment, edition);
    let object = store.read(&key).await?.ok_or_else(|| RollbackError::NothingPublished(edition.clone()))?;
    let Object { content, tag } = object;
    let pointer: Pointer =
        serde_json::from_slice(&content).map_err(|source| RollbackError::Malformed(edition.clone(), source))?;
    let from = pointer.current.clone();
    let pointer = pointer.rolled_back().ok_or_else(|| RollbackError::NothingBefore(edition.clone()))?;
    let to = pointer.current.clone();
    let keys = store.list(&format!("{environment}/{edition}/")).await?;
    if !keys.contains(&to.key(environment, edition)) {
        return Err(RollbackError::Gone(edition.clone()));
    }
    let content =
        serde_json::to_vec_pretty(&pointer).map_err(|source| RollbackError::Malformed(edition.clone(), source))?;
    match store.swap(&key, &content, Some(&tag)).await? {
        Swap::Swapped => Ok(RolledBack { from, to }),
        Swap::Lost => Err(RollbackError::Lost(edition.clone())),
    }
}
