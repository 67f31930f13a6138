//! The tools, a file for each or for a few that belong together.

mod list_event_types;
mod list_webhooks;

use crate::tool::Tool;

/// Every tool, in the order in which clients list them: what shows comes before what changes.
pub const ALL: &[Tool] = &[list_event_types::LIST_EVENT_TYPES, list_webhooks::LIST_WEBHOOKS];

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    ALL.iter().find(|tool| tool.name == name)
}
