//! Which of a webhook's deliveries are to be recovered.

use base::Time;

/// The deliveries of a webhook that are to be recovered: of these kinds, and made from `since` on and before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryScope {
    /// The first moment.
    pub since: Time,
    /// The moment after the last.
    pub until: Time,
    /// The kinds.
    pub include: Include,
}

/// The kinds of deliveries that can be recovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    /// Those that failed, or were cancelled while their webhook was disabled.
    Failed,
    /// Those that wait for their next attempt.
    Waiting,
    /// All of these.
    #[default]
    Both,
}

impl Include {
    /// The kinds of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "failed" => Some(Self::Failed),
            "waiting" => Some(Self::Waiting),
            "both" => Some(Self::Both),
            _ => None,
        }
    }

    /// Whether it includes those that failed.
    pub fn failed(self) -> bool {
        self != Self::Waiting
    }

    /// Whether it includes those that wait.
    pub fn waiting(self) -> bool {
        self != Self::Failed
    }
}
