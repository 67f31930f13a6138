//! The objects of a store, and the results of reads and writes.

use std::io;

/// A tag that identifies an object's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(pub(super) String);

/// A small object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The object's content.
    pub content: Vec<u8>,
    /// The tag of the object's state.
    pub tag: Tag,
}

/// The result of a conditional or unconditional read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// The object has the known tag.
    Same,
    /// The object does not exist.
    Absent,
    /// The object has another tag, or no tag was known.
    Found(T),
}

impl<T> Reading<T> {
    /// The object of an unconditional read.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Same | Self::Absent => None,
        }
    }
}

/// The outcome of a compare-and-swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// The object has the new content.
    Swapped,
    /// Another writer changed it first.
    Lost,
}

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system failed.
    #[error("the store's folder could not be used: {doing} {key}")]
    Folder {
        /// The step.
        doing: &'static str,
        /// The object.
        key: String,
        /// The file system's error.
        source: io::Error,
    },
    /// S3 did not respond, or refused the call.
    #[error("the store's bucket could not be used: {doing} {key}")]
    S3 {
        /// The step.
        doing: &'static str,
        /// The object.
        key: String,
        /// The error of the SDK.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A pointer could not be parsed or serialized.
    #[error("the pointer {0} in the store is malformed")]
    Pointer(String, #[source] serde_json::Error),
}
