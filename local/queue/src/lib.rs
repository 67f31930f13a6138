#![doc = include_str!("../README.md")]

pub mod wire;

use base::{SharedClock, SharedRandom};

/// All queues of a run. A clone is the same queues.
#[derive(Clone)]
pub struct Queues {
    _clock: SharedClock,
    _random: SharedRandom,
}

impl Queues {
    /// No queues yet. `address` is the server's (`http://127.0.0.2:4566`), with which the addresses of queues begin; requests
    /// are recognised by the name at their end alone.
    pub fn new(_address: &str, _region: &str, _account: &str, clock: SharedClock, random: SharedRandom) -> Self {
        Self { _clock: clock, _random: random }
    }
}
