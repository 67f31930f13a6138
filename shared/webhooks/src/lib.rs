#![doc = include_str!("../README.md")]
// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod canary;
pub mod deliveries;
pub mod events;
pub mod subscriptions;
#[cfg(test)]
mod testing;

/// The door for other domains: they publish events of their own through the outbox, and use nothing else of this crate.
pub mod outbox {
    pub use crate::events::{
        EventType,
        catalogue::own as event_type,
        outbox::{Outbox, OutboxEvent},
    };
}
