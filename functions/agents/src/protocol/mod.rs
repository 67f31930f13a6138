//! The Model Context Protocol over HTTP, without sessions and without streams: a message in, its answer out. What is offered
//! by it is a [`Server`]'s.

mod answer;
pub mod door;
mod headers;
mod json;
mod json_rpc;
mod methods;
mod revision;
mod server;

pub use server::{Refusal, Server, ToolResult};
