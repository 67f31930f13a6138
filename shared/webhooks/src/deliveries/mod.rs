//! Deliveries: one event on its way to one webhook, and every attempt to deliver it.
//!
//! The table is the truth; the queue only says "look now". So a message that is lost or late costs time only, and one that
//! is repeated costs at most an event that arrives twice.

mod admission;
pub mod advice;
mod attempt;
pub mod by_owner;
mod by_webhook;
mod claim;
mod counting;
pub mod cursor;
pub mod delivery;
pub mod diagnosis;
pub mod dispatch;
mod ending;
pub mod error;
mod exchange;
pub mod filters;
pub mod inbox;
mod index_group;
pub mod item;
pub mod jobs;
pub(crate) mod lease_times;
pub mod list;
mod listed_status;
mod meter;
pub mod notice;
mod of_event;
mod prefetch;
pub mod queue;
pub mod recover;
mod reopen;
mod request;
pub mod resend;
mod round;
pub mod schedule;
pub(crate) mod signature;
mod slots;
mod store;
pub mod sweep;
mod waiting;

pub use delivery::{Delivery, Status};
pub use error::DeliveryError;
pub use store::Deliveries;
