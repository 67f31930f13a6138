//! The ground of all other crates: identifiers, time, randomness, the environment, logs, metrics.
//!
//! The clock, the dice and the environment are read in [`clock`], [`random`] and [`environment`] only, so that tests
//! can set them.

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
pub mod version;
pub mod wait;
