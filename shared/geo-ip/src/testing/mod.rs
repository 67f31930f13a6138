//! Test support: a builder of databases, and a server that misbehaves on request.

mod database;
#[cfg(test)]
mod server;

pub use database::DatabaseBuilder;
#[cfg(test)]
pub(super) use server::{Answering, Server};
