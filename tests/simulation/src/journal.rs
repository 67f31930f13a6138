//! What happened in a history: its fingerprint, and a log for a reader.

use std::hash::{DefaultHasher, Hash, Hasher};

use base::Time;

/// The record of one history.
#[derive(Debug, Default)]
pub struct Journal {
    fingerprint: DefaultHasher,
    lines: Option<Vec<String>>,
    /// How many things happened.
    pub steps: u64,
}

impl Journal {
    /// A journal that keeps only the fingerprint.
    pub fn brief() -> Self {
        Self::default()
    }

    /// A journal that keeps a log as well.
    pub fn readable() -> Self {
        Self { lines: Some(Vec::new()), ..Self::default() }
    }

    /// Notes what happened at this time.
    pub fn note(&mut self, at: Time, what: impl FnOnce() -> String) {
        self.steps += 1;
        at.as_millis().hash(&mut self.fingerprint);
        let what = what();
        what.hash(&mut self.fingerprint);
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{at}  {what}"));
        }
    }

    /// A number that is equal for equal histories.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }

    /// The log.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
