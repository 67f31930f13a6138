#![doc = include_str!("../README.md")]
// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

pub mod archive;
pub mod configuration;
pub mod download;
pub mod edition;
pub mod hash;
pub mod lease;
pub mod outcome;
pub mod pointer;
pub mod publish;
pub mod reader;
pub mod rollback;
pub mod scratch;
pub mod settings;
pub mod source;
pub mod store;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod update;
pub mod verify;

pub use configuration::Configuration;
pub use edition::EditionName;
pub use pointer::{Pointer, Release};
pub use reader::DatabaseReader;
pub use store::{Store, StoreAddress, StoreError};
pub use task::Task;
pub use update::Updater;
