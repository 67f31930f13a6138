//! The time and randomness that the use cases receive.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use base::{Clock, Random, Time};
use fastrand::Rng;
use tokio::time::Instant;

/// The beginning of every history: 2027-01-15T08:00:00Z.
pub const BEGIN: Time = Time::from_millis(1_800_000_000_000);

/// A history's true time, which follows the runtime's paused clock.
#[derive(Debug, Clone, Copy)]
pub struct TrueClock(Instant);

impl TrueClock {
    /// The clock for a history that begins now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The current time.
    pub fn now(self) -> Time {
        BEGIN + self.0.elapsed()
    }

    /// The number of milliseconds since the Unix epoch.
    pub fn millis(self) -> u64 {
        u64::try_from(self.now().as_millis()).unwrap_or_default()
    }
}

impl Clock for TrueClock {
    fn now(&self) -> Time {
        TrueClock::now(*self)
    }
}

/// The clock of one sandbox. It differs from the true time, and jumps when it is corrected.
#[derive(Debug, Clone)]
pub struct SandboxClock {
    true_clock: TrueClock,
    skew: Arc<AtomicI64>,
}

impl SandboxClock {
    /// A clock with this difference from the true time, in milliseconds.
    pub fn new(true_clock: TrueClock, skew: i64) -> Self {
        Self { true_clock, skew: Arc::new(AtomicI64::new(skew)) }
    }

    /// Changes the difference from the true time.
    pub fn jump(&self, skew: i64) {
        self.skew.store(skew, Relaxed);
    }
}

impl Clock for SandboxClock {
    fn now(&self) -> Time {
        Time::from_millis(self.true_clock.now().as_millis() + self.skew.load(Relaxed))
    }
}

/// Random bytes that are the same for the same seed.
#[derive(Debug)]
pub struct SeededRandom(Mutex<Rng>);

impl SeededRandom {
    /// A source that takes its bytes from this generator.
    pub fn new(rng: Rng) -> Self {
        Self(Mutex::new(rng))
    }
}

impl Random for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
    }
}
