//! A fixed clock and repeatable randomness for tests.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU8, Ordering},
};

use crate::{
    clock::{Clock, Time},
    random::Random,
};

/// A clock that a test sets.
#[derive(Debug, Clone)]
pub struct FixedClock(Arc<AtomicI64>);

impl FixedClock {
    /// A clock set to this moment.
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.as_millis())))
    }

    /// Moves the clock.
    pub fn set(&self, time: Time) {
        self.0.store(time.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Bytes that count upwards, so that two draws differ and all runs are equal.
#[derive(Debug, Default)]
pub struct CountingRandom(AtomicU8);

impl Random for CountingRandom {
    fn fill(&self, buffer: &mut [u8]) {
        for byte in buffer {
            *byte = self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
