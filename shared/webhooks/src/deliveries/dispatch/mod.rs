//! The dispatcher: an attempt, from its message to its record, in the order of the steps:
//!
//! 1. `run`: one invocation receives messages; `limiter` gives each attempt a permit.
//! 2. `dispatcher`: `claim` takes the delivery while `prefetch` reads the webhook, its health and the event.
//! 3. `breaker_check`: an open breaker puts the attempt off.
//! 4. `exchange`: `request` and `signature` build the request, and the endpoint answers.
//! 5. `schedule` decides on the next attempt, and `transition` on the change of the delivery's head.
//! 6. `counting` and `metrics` count the attempt for its webhook's health and statistics, and for the metrics.
//! 7. `order` holds deliveries until the one before them about the same subject is final, and wakes them.
//! 8. `pulled` puts deliveries into the feeds of webhooks that are pulled, instead of the steps from 3 on.

mod breaker_check;
pub(crate) mod claim;
pub(crate) mod counting;
pub mod dispatcher;
pub(crate) mod exchange;
mod limiter;
mod metrics;
mod order;
mod prefetch;
mod pulled;
mod rate;
pub(crate) mod request;
mod run;
pub mod schedule;
pub(crate) mod signature;
mod transition;
