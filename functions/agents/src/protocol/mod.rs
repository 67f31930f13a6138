//! The Model Context Protocol over HTTP, without sessions and streams: one message in, one response out. A [`Server`]
//! provides tools, resources and prompts.

mod answer;
mod headers;
mod json;
mod json_rpc;
mod methods;
mod revision;
mod server;
pub mod transport;

pub use server::{Refusal, Server, ToolResult};
