#![doc = include_str!("../README.md")]
// The futures, from the runtime down to the SDK, nest deeper than the default limit.
#![recursion_limit = "256"]

mod archive;
pub mod configuration;
mod download;
mod edition;
mod foreign;
mod hash;
mod pointer;
pub mod reader;
pub mod rollback;
mod scratch;
pub mod settings;
mod source;
pub mod store;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod update;
mod verify;

pub use configuration::Configuration;
pub use edition::EditionName;
pub use pointer::Release;
pub use reader::DatabaseReader;
pub use store::{Store, StoreAddress, StoreError};
pub use task::Task;
