#![doc = include_str!("../README.md")]
// The futures nest deeper, from the runtime down to the SDK, than the compiler's default limit.
#![recursion_limit = "256"]

pub mod applications;
pub mod oauth;
pub mod panel;
pub mod rotation;
pub mod settings;
