//! The content of a delivery's body.

use serde::{Deserialize, Serialize};

/// The content of a delivery's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// The whole event.
    #[default]
    Full,
    /// The event without its data, which its receiver reads from the API.
    Thin,
}

impl Payload {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Thin => "thin",
        }
    }

    /// Whether the body contains the data.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }
}
