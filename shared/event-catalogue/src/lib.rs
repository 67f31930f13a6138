#![doc = include_str!("../README.md")]

mod catalogue;
pub mod code;
pub mod compatibility;
// Publishing and the filters also use this file, but no deployed program contains this crate.
#[path = "../../webhooks/src/events/json_text.rs"]
mod json_text;
mod list;
mod parts;
mod read;
mod schemas;
mod source;
#[cfg(test)]
mod tests;

pub use catalogue::{Catalogue, RESERVED, SERVICE, TRAVEL, Type};
pub use read::read;
pub use source::Mistake;
