//! Back to the release before the current one. The current one is blocked, so that the next update does not bring it
//! back.

use super::{
    edition::EditionName,
    pointer::Release,
    store::{Store, StoreError, Swap},
};

/// Why there was no rollback; the pointer is where it was.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The store failed, or holds no good pointer.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// The release that was current, and is blocked now.
    pub from: Release,
    /// The release that is current now.
    pub to: Release,
}

/// Goes back to the release before the current one.
pub async fn roll_back(store: &Store, environment: &str, edition: &EditionName) -> Result<RolledBack, RollbackError> {
    let published = store.pointer(environment, edition, None).await?.found();
    let (pointer, tag) = published.ok_or_else(|| RollbackError::NothingPublished(edition.clone()))?;
    let from = pointer.current.clone();
    let pointer = pointer.rolled_back().ok_or_else(|| RollbackError::NothingBefore(edition.clone()))?;
    let to = pointer.current.clone();
    let keys = store.list(&format!("{environment}/{edition}/")).await?;
    if !keys.contains(&to.key(environment, edition)) {
        return Err(RollbackError::Gone(edition.clone()));
    }
    match store.swap_pointer(environment, &pointer, Some(&tag)).await? {
        Swap::Swapped => Ok(RolledBack { from, to }),
        Swap::Lost => Err(RollbackError::Lost(edition.clone())),
    }
}
