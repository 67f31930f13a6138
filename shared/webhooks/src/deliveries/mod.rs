//! Deliveries: one event on its way to one webhook, and every attempt to deliver it.
//!
//! DynamoDB is the truth; the queue only says "look now". So losing, repeating or delaying a
//! message costs time only.

pub mod attempt;
pub mod by_entity;
pub mod by_webhook;
pub mod claim;
pub mod cursor;
pub mod delivery;
pub mod dispatch;
pub mod filters;
pub mod group;
pub mod item;
pub mod jobs;
pub mod lease;
pub mod list;
pub mod places;
pub mod queue;
pub mod recover;
pub mod reopen;
pub mod resend;
mod round;
pub mod schedule;
mod sendable;
pub mod signature;
pub mod store;
pub mod sweep;

pub use attempt::Attempt;
pub use delivery::{Delivery, Status};
pub use store::Deliveries;
