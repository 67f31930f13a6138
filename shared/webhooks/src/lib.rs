//! Events, webhooks (subscriptions of endpoints), and the delivery of every event to every webhook that wants it.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod deliveries;
pub mod events;
pub mod outbox;
pub mod subscriptions;
#[cfg(test)]
mod testing;
