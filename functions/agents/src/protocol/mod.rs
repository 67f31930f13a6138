//! The Model Context Protocol over HTTP, without sessions and without streams: a message in, its answer out.

mod answer;
pub mod door;
mod headers;
mod json;
mod json_rpc;
mod methods;
mod revision;
mod server;
mod tool_call;
mod tool_list;
