//! Queries about deliveries: lists of deliveries and events, an event's deliveries, and diagnoses of webhooks.

pub mod advice;
pub(crate) mod by_webhook;
pub mod check_filter;
pub mod cursor;
pub mod diagnosis;
pub mod filters;
pub mod list;
pub mod list_events;
mod merge;
pub(crate) mod next_page;
mod of_event;
mod of_events;
mod page;
pub mod range;
pub(crate) mod replayable;
mod streams;
