#![doc = include_str!("../README.md")]
// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the
// compiler expects.
#![recursion_limit = "256"]

pub mod applications;
pub mod oauth;
pub mod panel;
pub mod rotation;
pub mod settings;
