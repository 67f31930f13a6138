//! Geo-IP databases: kept up to date from their providers, published for readers, and rolled back by an operator.
//!
//! A release is a file that never changes, named by its SHA-256; which one is current is said by one small pointer per
//! edition. Everything is checked before the pointer moves, the pointer moves by compare-and-swap, and every failure
//! leaves it where it was.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

mod archive;
pub mod configuration;
mod download;
mod edition;
mod hash;
mod lease;
mod outcome;
mod pointer;
mod publish;
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
