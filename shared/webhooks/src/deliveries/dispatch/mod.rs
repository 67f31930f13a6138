//! The dispatcher: an attempt, from its message to its record, in the order of the steps:
//!
//! 1. `run`: one invocation receives messages; `limiter` gives each attempt a permit.
//! 2. `dispatcher`: claims the delivery (`store::claim`) while `prefetch` reads the webhook, its health and the event.
//! 3. `act`: carries out what `state::decide` says; `order`, `pulled`, `probe` and `rate` are its larger actions.
//! 4. `exchange`: `request` and `signature` build the request, and the endpoint answers.
//! 5. `counting` and `metrics` count the attempt for its webhook's health and statistics, and for the metrics.

mod act;
pub(crate) mod counting;
pub mod dispatcher;
pub(crate) mod exchange;
mod limiter;
mod metrics;
mod order;
mod prefetch;
mod probe;
mod pulled;
mod rate;
pub(crate) mod request;
mod run;
pub(crate) mod signature;
mod turn;
