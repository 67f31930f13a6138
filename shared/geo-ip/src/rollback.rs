//! The rollback to the previous release. It blocks the current one, so that no update publishes it again until it is
//! unblocked.

use super::{
    edition::EditionName,
    pointer::Release,
    store::{Store, StoreError, Swap},
};

/// Why a rollback failed. The pointer is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The store failed, or its pointer is malformed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is published.
    #[error("no release of {0} is published")]
    NothingPublished(EditionName),
    /// There is only one release.
    #[error("there is no earlier release of {0} to roll back to")]
    NothingBefore(EditionName),
    /// The previous release is missing from the store.
    #[error("the previous release of {0} is missing from the store")]
    Gone(EditionName),
    /// An update or another rollback moved the pointer.
    #[error("another process changed {0}'s pointer at the same time; check it and try again")]
    Lost(EditionName),
}

/// Why no release was unblocked. The pointer is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum UnblockError {
    /// The store failed, or its pointer is malformed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is published.
    #[error("no release of {0} is published")]
    NothingPublished(EditionName),
    /// No blocked release, or more than one, has a SHA-256 that begins with these digits.
    #[error(
        "{found} blocked releases of {edition} have a SHA-256 that begins with {beginning}; the blocked ones are: {}",
        listed(.blocked)
    )]
    NotOne {
        /// The edition.
        edition: EditionName,
        /// The beginning of a SHA-256.
        beginning: String,
        /// The number of matches.
        found: usize,
        /// All blocked releases.
        blocked: Vec<String>,
    },
    /// An update or a rollback moved the pointer.
    #[error("another process changed {0}'s pointer at the same time; check it and try again")]
    Lost(EditionName),
}

fn listed(blocked: &[String]) -> String {
    if blocked.is_empty() { "none".to_owned() } else { blocked.join(", ") }
}

/// The releases involved in a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The release that was current, and is blocked now.
    pub from: Release,
    /// The release that is current now.
    pub to: Release,
}

/// Returns to the previous release.
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

/// Unblocks the only blocked release whose SHA-256 begins with these digits and returns the whole SHA-256.
pub async fn unblock(
    store: &Store,
    environment: &str,
    edition: &EditionName,
    beginning: &str,
) -> Result<String, UnblockError> {
    let published = store.pointer(environment, edition, None).await?.found();
    let (pointer, tag) = published.ok_or_else(|| UnblockError::NothingPublished(edition.clone()))?;
    let beginning = beginning.to_ascii_lowercase();
    let blocked = pointer.blocked.clone();
    let found: Vec<_> = blocked.iter().filter(|sha256| sha256.starts_with(&beginning)).cloned().collect();
    let unblocked = match found.as_slice() {
        [sha256] => pointer.unblocked(sha256).map(|pointer| (sha256.clone(), pointer)),
        _ => None,
    };
    let Some((sha256, pointer)) = unblocked else {
        return Err(UnblockError::NotOne { edition: edition.clone(), beginning, found: found.len(), blocked });
    };
    match store.swap_pointer(environment, &pointer, Some(&tag)).await? {
        Swap::Swapped => Ok(sha256),
        Swap::Lost => Err(UnblockError::Lost(edition.clone())),
    }
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
