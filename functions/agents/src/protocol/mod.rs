//! The Model Context Protocol over HTTP, without sessions and streams: one message in, one response out. A [`Server`]
//! provides tools, resources and prompts.
//!
//! The SDK (`rmcp`) is not an alternative. Its transport repeats the gate's checks in a different order and with
//! plain-text errors, and does not support scopes for tools. It also starts a task for each message, and the gate does
//! not see that task's panics. Its message types alone would add a dozen crates to a function whose startup time
//! matters.

mod answer;
mod headers;
pub mod json;
mod json_rpc;
mod methods;
mod revision;
mod server;
pub mod transport;

pub use server::{Refusal, Server, ToolResult};
