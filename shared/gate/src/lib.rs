#![doc = include_str!("../README.md")]
// Nested futures, from the runtime down to the SDK, exceed the compiler's default limit.
#![recursion_limit = "256"]

mod accept;
pub mod answer;
pub mod call;
mod challenge;
mod checks;
mod coding;
pub mod endpoint;
pub mod endpoints;
mod error_page;
pub mod event;
pub mod gate;
pub mod page;
pub mod queries;
pub mod reply;
pub mod routes;
pub mod verbs;

pub use call::{Admitted, Call, EntityCall};
pub use endpoint::Endpoint;
pub use gate::Gate;
pub use reply::Reply;

pub use base::version::{SERVICE_VERSION, SERVICE_VERSION_HEADER};

/// The forms of the version that a request may use.
pub const ACCEPTED_VERSIONS: [&str; 2] = ["2.0", "2.0.0"];
