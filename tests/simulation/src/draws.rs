//! Choices that depend only on the seed and on the subject of the choice.

use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;

/// The choices of one history.
///
/// Each choice has its own generator, derived from the seed and the choice's subject. When another step is removed from
/// the history, the choices about a call therefore stay the same, which makes shrinking possible.
#[derive(Debug, Clone, Copy)]
pub struct Draws(u64);

impl Draws {
    /// The choices of the history with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator for choices about this subject.
    pub fn about(self, subject: &impl Hash) -> Rng {
        Rng::with_seed(self.hash(subject))
    }

    /// A number that is derived from this subject.
    pub fn hash(self, subject: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        subject.hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether an event with this probability, in parts per 10 000, occurs.
pub fn occurs(rng: &mut Rng, chance: u16) -> bool {
    rng.u16(0..10_000) < chance
}
