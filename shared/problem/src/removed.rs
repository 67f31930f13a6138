//! The response to a removal.

use std::fmt::Display;

use serde::Serialize;

/// The response to a removal, with the members that the published client reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The identifier of the resource that was removed, or whose part was.
    pub id: String,
    success: bool,
    message: &'static str,
}

impl Removed {
    /// The response for this resource, with a sentence on the consequences.
    pub fn new(id: impl Display, message: &'static str) -> Self {
        Self { id: id.to_string(), success: true, message }
    }
}
