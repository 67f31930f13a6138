//! The objects of a store, and how reading and writing them ends.

use std::io;

/// The ending of the name of a file that is still being written.
pub const UNFINISHED: &str = ".unfinished";

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

/// The result of reading an object again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reread {
    /// The object is as it was.
    Same,
    /// There is no object, or no longer.
    Absent,
    /// It has changed.
    Changed(Object),
}

/// How the writing of a new object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It was not there.
    Created,
    /// It was there already, with the same content.
    Exists,
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// The object is what it should become.
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
        /// What was being done.
        doing: &'static str,
        /// With which object.
        key: String,
        /// What the file system says.
        source: io::Error,
    },
    /// S3 did not answer, or refused.
    #[error("the store's bucket could not be used: {doing} {key}")]
    S3 {
        /// What was being done.
        doing: &'static str,
        /// With which object.
        key: String,
        /// What the SDK says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Under a name that says its content, there is another content.
    #[error("the store holds something else under the name {0}")]
    Damaged(String),
}
