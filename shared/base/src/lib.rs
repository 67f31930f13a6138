#![doc = include_str!("../README.md")]

pub mod audit;
pub mod clock;
pub mod environment;
pub mod gather;
pub mod ids;
pub mod logging;
pub mod metric;
pub mod random;
pub mod refreshed;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;
pub mod version;
pub mod wait;
