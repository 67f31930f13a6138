//! One value that is not as it should be.

use serde::Serialize;

/// One value that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where: a member (`eventUrl`), an element (`eventList[2]`), a header's name, or `body` for the whole.
    pub field: String,
    /// What it must be, as the end of a sentence that begins with the field.
    pub message: String,
}
