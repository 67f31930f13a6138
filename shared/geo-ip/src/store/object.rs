//! The objects of a store, and how reading and writing them ends.

use std::io;

/// A tag that tells one state of an object from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(pub(super) String);

/// A small object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its content.
    pub content: Vec<u8>,
    /// Its state.
    pub tag: Tag,
}

/// The result of reading an object, perhaps on condition that it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// The object is in the known state.
    Same,
    /// There is no object, or no longer.
    Absent,
    /// The object is in another state, or no state was known.
    Found(T),
}

impl<T> Reading<T> {
    /// The object of a reading without a known state.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Same | Self::Absent => None,
        }
    }
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// The object has the new content.
    Swapped,
    /// Another writer changed it first.
    Lost,
}

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("the store's folder could not be used: {doing} {key}")]
    Folder {
        /// The step.
        doing: &'static str,
        /// The object.
        key: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// S3 did not answer, or refused.
    #[error("the store's bucket could not be used: {doing} {key}")]
    S3 {
        /// The step.
        doing: &'static str,
        /// The object.
        key: String,
        /// The error of the SDK.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object has the name of a pointer and is none.
    #[error("the pointer {0} in the store is malformed")]
    Pointer(String, #[source] serde_json::Error),
}
