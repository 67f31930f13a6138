//! The scope of a recovery: which of a webhook's deliveries it includes.

use base::Time;

/// The deliveries that a recovery includes: of these kinds, created at or after `since` and before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryScope {
    /// The first moment.
    pub since: Time,
    /// The exclusive end.
    pub until: Time,
    /// The kinds.
    pub include: Include,
}

/// The kinds of deliveries that can be recovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    /// Failed deliveries, and deliveries cancelled while their webhook was disabled.
    Failed,
    /// Deliveries waiting for their next attempt.
    Waiting,
    /// Both kinds.
    #[default]
    Both,
}

impl Include {
    /// The kinds with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "failed" => Some(Self::Failed),
            "waiting" => Some(Self::Waiting),
            "both" => Some(Self::Both),
            _ => None,
        }
    }

    /// Whether failed deliveries are included.
    pub fn failed(self) -> bool {
        self != Self::Waiting
    }

    /// Whether waiting deliveries are included.
    pub fn waiting(self) -> bool {
        self != Self::Failed
    }
}
