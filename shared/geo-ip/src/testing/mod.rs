//! Test support: a builder of databases, a server that misbehaves on request, and a provider and store for updates.

mod database;
#[cfg(test)]
mod server;
#[cfg(test)]
pub(super) mod world;

pub use database::DatabaseBuilder;
#[cfg(test)]
pub(super) use server::{Answering, Server};
