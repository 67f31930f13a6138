#![doc = include_str!("../README.md")]
// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod canary;
pub mod deliveries;
pub mod events;
pub mod outbox;
pub mod subscriptions;
#[cfg(test)]
mod testing;
