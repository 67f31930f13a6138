//! The service's promises, checked after each history against the facts: the items with all their versions, the
//! requests that endpoints received, and the responses that clients got. docs/reliability.md describes the promises.

mod apart;
mod counted;
mod delivered;
mod exchanged;
pub(crate) mod facts;
mod keys;
pub(crate) mod ordered;
mod published;
mod readers;
mod replayed;
mod requests;
mod rest;
mod revoked;
mod signed;

use std::fmt;

use crate::{records::Records, world::World};
use facts::Facts;

/// A promise from docs/reliability.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// Every acknowledged event reaches every webhook that subscribes to it, or its delivery is final with a reason.
    Delivered,
    /// Everything open has a due time that lets the sweep find it.
    Swept,
    /// The history contains every request that an endpoint received, except one for each death.
    Recorded,
    /// A delivery's attempts do not overlap.
    OneAtATime,
    /// An ordered webhook gets a subject's deliveries one at a time, in the order of acceptance.
    Order,
    /// After a replay, every stored event in its range that matches the webhook has a delivery to it, and none has two.
    Replayed,
    /// Repeating an idempotency key has one effect and returns one response.
    Once,
    /// A webhook that was removed, disabled or moved gets no request that was claimed more than a second later.
    Obeyed,
    /// The counters agree with the history, and so do statistics and health, unless a fault prevents this.
    Counted,
    /// One tenant's trouble delays another tenant's deliveries only up to the bound.
    Apart,
    /// The pointer of every geo-IP database leads to a complete and verified database.
    Published,
    /// Every request is signed with secrets that its tenant received.
    Signed,
    /// Every job ends.
    Ended,
    /// No use case panics.
    NoPanic,
    /// The service sends only requests that AWS accepts as valid.
    Valid,
    /// A state is exchanged once, and a connection's stored tokens are the last ones issued.
    ExchangedOnce,
    /// After a minute, an ended token is refused everywhere; where credentials are created, it is refused immediately.
    Revoked,
}

impl Promise {
    /// The promise's name in docs/reliability.md.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Swept => "swept",
            Self::Recorded => "recorded",
            Self::OneAtATime => "one-at-a-time",
            Self::Order => "order",
            Self::Replayed => "replayed",
            Self::Once => "once",
            Self::Obeyed => "obeyed",
            Self::Counted => "counted",
            Self::Apart => "apart",
            Self::Signed => "signed",
            Self::Published => "published",
            Self::Ended => "ended",
            Self::NoPanic => "no-panic",
            Self::Valid => "valid",
            Self::ExchangedOnce => "exchanged-once",
            Self::Revoked => "revoked",
        }
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The promise.
    pub promise: Promise,
    /// How the promise was broken.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.name(), self.how)
    }
}

/// The promises that a history broke. `rested` says whether everything came to rest in time.
pub fn check(world: &World, records: &Records, rested: bool) -> Vec<Broken> {
    let state = world.state();
    let facts = Facts::gather(&state);
    let mut broken = Vec::new();
    let mut note = |promise, how: String| broken.push(Broken { promise, how });
    for answer in state.invalid.iter().take(1) {
        note(Promise::Valid, answer.clone());
    }
    for panic in state.panics.iter().take(1) {
        note(Promise::NoPanic, panic.clone());
    }
    rest::check(&facts, rested, &mut note);
    delivered::check(&facts, records, &mut note);
    requests::check(&facts, &mut note);
    readers::check(&facts, &records.readers, &mut note);
    ordered::check(&facts, records, &mut note);
    replayed::check(&facts, records, &mut note);
    keys::check(&facts, records, &mut note);
    exchanged::check(&state, records, world.clock.millis(), &mut note);
    revoked::check(&state, records, &mut note);
    counted::check(&facts, &mut note);
    signed::check(&facts, records, &mut note);
    apart::check(&facts, &mut note);
    published::check(&state, &mut note);
    broken
}
