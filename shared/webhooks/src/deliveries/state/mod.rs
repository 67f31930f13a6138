//! A delivery's life: its state, the next step, and how each event changes it. Everything here is pure: no table, no
//! queue and no clock.
//!
//! | module | question |
//! |---|---|
//! | `delivery`, `attempt` | What is a delivery, and what is an attempt? |
//! | `head` | What is known about a delivery? |
//! | `decide` | What happens to a delivery whose turn it is? |
//! | `transition` | How does an event change it? |
//! | `index`, `placing` | Where is it in the indexes, and when does the sweep check it? |
//! | `wait` | Why can a delivery wait, and with what consequences? |
//! | `shown` | How does its owner see a wait? |
//! | `schedule` | When is the next attempt? |
//! | `slot` | When does a rate limit permit it? |
//! | `times` | Which time limits do claims, messages and the sweep share? |
//!
//! A new reason to wait is a variant of `Wait`, whose rules the compiler requires in `wait`. `decide` says when a
//! delivery waits for it, `store::attributes` how it is stored, and `delivery::WaitingFor` how its owner sees it (also
//! in openapi.yaml). `dispatch::act` logs it.

pub mod attempt;
pub(crate) mod decide;
pub mod delivery;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod placing;
pub mod schedule;
pub(crate) mod shown;
pub(crate) mod slot;
pub(crate) mod times;
pub(crate) mod transition;
pub(crate) mod wait;

use base::Time;
use delivery::{CancelReason, Status};
pub(crate) use wait::Wait;

/// A delivery's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It has a next attempt.
    Open(Open),
    /// An attempt succeeded.
    Delivered,
    /// No attempt succeeded, and none is due.
    Failed,
    /// It ended without success. Release 1.0.0 stored no reason for a webhook that was disabled or removed. These count
    /// as disabled, so that a recovery finds them; a removed webhook has no recovery.
    Cancelled(CancelReason),
}

/// A delivery that has a next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    /// When the next attempt is due or, if it is waiting for something whose time is unknown, when the dispatcher
    /// checks the delivery.
    pub(crate) next: Time,
    /// Whether an attempt of the current schedule has been made.
    pub(crate) is_retry: bool,
    pub(crate) wait: Wait,
    /// When the schedule continues, if the next attempt was requested in between.
    pub(crate) resume_at: Option<Time>,
    /// When a person requested the next attempt.
    pub(crate) asked_at: Option<Time>,
    pub(crate) claim: Claim,
}

/// Who may make or record the next attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Claim {
    /// The worker or reader that holds it, until the end of its lease.
    pub(crate) lease: Option<Lease>,
    /// The attempt that has already been made, to be recorded before another one is made. If it has a lease, its reader
    /// still holds it, or a worker is about to record it.
    pub(crate) unknown: Option<Unknown>,
}

/// A lease: it entitles one worker or reader to the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Proves, when the attempt is recorded, that the claim is still valid.
    pub(crate) id: String,
    pub(crate) until: Time,
}

/// An attempt whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// A reader of the webhook's feed received the delivery at this time.
    Reader(Time),
    /// A worker claimed the attempt at this time, and died without recording the outcome.
    Worker(Time),
}

impl State {
    /// The state as its owner sees it.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Open(open) if open.is_retry => Status::Retrying,
            Self::Open(_) => Status::Pending,
            Self::Delivered => Status::Delivered,
            Self::Failed => Status::Failed,
            Self::Cancelled(_) => Status::Cancelled,
        }
    }

    /// Why it was cancelled.
    pub(crate) fn cancel_reason(&self) -> Option<CancelReason> {
        match self {
            Self::Cancelled(reason) => Some(*reason),
            Self::Open(_) | Self::Delivered | Self::Failed => None,
        }
    }

    /// Its next attempt, unless it is final.
    pub(crate) fn open(&self) -> Option<&Open> {
        match self {
            Self::Open(open) => Some(open),
            Self::Delivered | Self::Failed | Self::Cancelled(_) => None,
        }
    }
}

impl Open {
    /// A first attempt that is due at this time.
    pub(crate) fn first(next: Time) -> Self {
        let claim = Claim::default();
        Self { next, is_retry: false, wait: Wait::Schedule, resume_at: None, asked_at: None, claim }
    }

    /// The earliest time of a claim: the time of the attempt, or the end of the lease.
    pub(crate) fn claimable_at(&self) -> Time {
        self.claim.lease.as_ref().map_or(self.next, |lease| lease.until)
    }

    /// Whether the next attempt is later than now, and unclaimed.
    pub(crate) fn is_later(&self, now: Time) -> bool {
        self.claim.lease.is_none() && now < self.next
    }

    /// Whether the schedule's next attempt is waiting for something other than its time.
    pub(crate) fn is_put_off(&self) -> bool {
        self.wait != Wait::Schedule
    }
}
