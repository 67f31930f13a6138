//! The dispatcher: an attempt from its message to its record, in the order of the steps:
//!
//! 1. `run`: one invocation receives messages; `limiter` gives each attempt a permit.
//! 2. `dispatcher`: `prefetch` reads the webhook, its health and the event, and `store::claim` claims the delivery: a
//!    first claim follows the prefetch, since it inserts the head from the event; a later one runs at the same time.
//! 3. `act`: carries out what `state::decide` says; its larger actions are in `order`, `pulled`,
//!    `probe`, `rate` and `unknown_outcome`.
//! 4. `exchange`: `request` and `signature` build the request, and the endpoint responds.
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
mod unknown_outcome;
