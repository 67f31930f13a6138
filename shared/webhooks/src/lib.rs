#![doc = include_str!("../README.md")]
// The nesting of futures, from the runtime down to the SDK, exceeds the compiler's default limit.
#![recursion_limit = "256"]

pub mod canary;
pub mod deliveries;
pub mod events;
pub mod subscriptions;
#[cfg(test)]
mod testing;

/// Interface for other domains, which publish their events through the outbox and use nothing else in this crate.
pub mod outbox {
    pub use crate::events::{
        EventType,
        catalogue::own as event_type,
        outbox::{Outbox, OutboxEvent},
    };
}
