//! Deliveries: one event on its way to one webhook, and everything that was tried.
//!
//! DynamoDB is the truth; the queue only says "look now". So losing, repeating or delaying a message costs time only.

pub mod attempt;
pub mod by_entity;
pub mod by_webhook;
pub mod cursor;
pub mod delivery;
pub mod dispatch;
pub mod filters;
pub mod item;
pub mod jobs;
pub mod list;
pub mod places;
pub mod queue;
pub mod recover;
pub mod reopen;
mod round;
pub mod schedule;
pub mod signature;
pub mod store;
pub mod sweep;

pub use attempt::Attempt;
pub use delivery::{Delivery, Status};
pub use store::Deliveries;

use std::time::Duration;

/// How long a worker holds a delivery: the whole exchange and the time to record it.
pub const LEASE: Duration = Duration::from_secs(25);

/// How long after a message was sent the sweep waits before it sends another, the first time. It doubles with each,
/// so that a backlog in the queue is not made longer by the sweep.
pub const GRACE: Duration = Duration::from_secs(10);
