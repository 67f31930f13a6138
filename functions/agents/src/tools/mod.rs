//! The tools, one file for each.

mod change_webhook;
mod create_webhook;
mod diagnose_webhook;
mod explain_problem;
mod list_connections;
mod list_deliveries;
mod list_event_types;
mod list_events;
mod list_webhooks;
mod pause_webhook;
mod publish_test_event;
mod recover_deliveries;
mod remove_webhook;
mod replay_events;
mod resend_delivery;
mod resume_webhook;
mod rotate_webhook_secret;
mod show_delivery;
mod show_event;
mod show_webhook;

pub use explain_problem::EXPLAIN_PROBLEM;
pub use list_event_types::LIST_EVENT_TYPES;
pub use show_delivery::{SHOW_DELIVERY, shown as delivery};

use crate::tool::Tool;

/// Every tool, in the order in which clients list them: reading tools before changing ones.
pub const ALL: &[Tool] = &[
    LIST_EVENT_TYPES,
    list_webhooks::LIST_WEBHOOKS,
    show_webhook::SHOW_WEBHOOK,
    diagnose_webhook::DIAGNOSE_WEBHOOK,
    list_deliveries::LIST_DELIVERIES,
    SHOW_DELIVERY,
    list_events::LIST_EVENTS,
    show_event::SHOW_EVENT,
    list_connections::LIST_CONNECTIONS,
    EXPLAIN_PROBLEM,
    create_webhook::CREATE_WEBHOOK,
    change_webhook::CHANGE_WEBHOOK,
    rotate_webhook_secret::ROTATE_WEBHOOK_SECRET,
    pause_webhook::PAUSE_WEBHOOK,
    resume_webhook::RESUME_WEBHOOK,
    publish_test_event::PUBLISH_TEST_EVENT,
    resend_delivery::RESEND_DELIVERY,
    recover_deliveries::RECOVER_DELIVERIES,
    replay_events::REPLAY_EVENTS,
    remove_webhook::REMOVE_WEBHOOK,
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    ALL.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests;
