//! The response to a removal.

use std::fmt::Display;

use serde::Serialize;

/// The response to a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The identifier of the resource that was removed, entirely or in part.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
    message: &'static str,
}

impl Removed {
    /// The response for this resource, with a sentence about the consequences.
    pub fn new(id: impl Display, message: &'static str) -> Self {
        Self { id: id.to_string(), success: None, message }
    }

    /// The response for an application or a webhook. Published clients of similar platforms read `success`.
    pub fn with_success(id: impl Display, message: &'static str) -> Self {
        Self { success: Some(true), ..Self::new(id, message) }
    }
}
