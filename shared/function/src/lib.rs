#![doc = include_str!("../README.md")]
// Nested futures, from the runtime down to the SDK, exceed the compiler's default limit.
#![recursion_limit = "256"]

pub mod clients;
pub mod events;
pub mod idempotency;
pub mod runtime;
pub mod serve;
pub mod service;

pub use clients::ClientPresence;
pub use events::{Scheduled, Traced};
pub use idempotency::{idempotent_request, remove_once};
pub use runtime::run;
pub use service::{Service, Settings, StartError};
