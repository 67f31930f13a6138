//! Deliveries: one event on its way to one webhook, and every attempt to deliver it.
//!
//! The table is the truth; the queue only says "look now". So a message that is lost, repeated or late costs time only.

mod attempt;
pub mod by_entity;
mod by_webhook;
mod claim;
mod counting;
pub mod cursor;
pub mod delivery;
pub mod dispatch;
mod exchange;
pub mod filters;
pub mod group;
pub mod inbox;
pub mod item;
pub mod jobs;
mod lease;
pub mod list;
mod meter;
pub mod notice;
mod places;
pub mod queue;
pub mod recover;
mod reopen;
mod request;
pub mod resend;
mod round;
pub mod schedule;
pub(crate) mod signature;
mod store;
pub mod sweep;

pub use delivery::{Delivery, Status};
pub use store::Deliveries;
