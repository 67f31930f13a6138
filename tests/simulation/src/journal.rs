//! A history's record: its fingerprint, and a human-readable log.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use base::Time;

use crate::{clock, endpoints::Slot, sandbox::Function};

/// An actor that does something in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The simulation itself.
    World,
    /// A client or an operator that performs a step of the plan.
    Step(usize),
    /// A sandbox, identified by its function and its number.
    Sandbox(Function, u64),
    /// A webhook's endpoint.
    Endpoint(Slot),
    /// A queue.
    Queue(&'static str),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.pad(""),
            Self::Step(number) => f.pad(&format!("step {number}")),
            Self::Sandbox(function, id) => f.pad(&format!("{} {id}", function.name())),
            Self::Endpoint((tenant, webhook)) => f.pad(&format!("endpoint {tenant}/{webhook}")),
            Self::Queue(name) => f.pad(name),
        }
    }
}

/// The record of one history.
#[derive(Debug, Default)]
pub struct Journal {
    fingerprint: DefaultHasher,
    log: Option<Log>,
    /// The number of occurrences recorded.
    pub steps: u64,
}

impl Journal {
    /// A journal that keeps only the fingerprint.
    pub fn brief() -> Self {
        Self::default()
    }

    /// A journal that also keeps a log.
    pub fn readable() -> Self {
        Self { log: Some(Log::default()), ..Self::default() }
    }

    /// Records what happened at this time.
    pub fn note(&mut self, at: Time, who: Actor, what: impl FnOnce() -> String) {
        self.steps += 1;
        let what = what();
        (at.as_millis(), who, &what).hash(&mut self.fingerprint);
        if let Some(log) = &self.log {
            log.write(at, who, what);
        }
    }

    /// Adds a line to the log but not to the fingerprint, since the line follows from other notes.
    pub fn explain(&self, at: Time, who: Actor, what: impl FnOnce() -> String) {
        if let Some(log) = &self.log {
            log.write(at, who, what());
        }
    }

    /// A number that is the same for identical histories.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }

    /// The log, if the journal keeps one.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }
}

/// A history's log, which the journal and the service's log lines share.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Line>>>);

/// A line in a log.
#[derive(Debug, Clone)]
pub struct Line {
    at: Time,
    who: String,
    what: String,
}

impl Log {
    /// Adds a line.
    pub fn write(&self, at: Time, who: impl fmt::Display, what: String) {
        let who = who.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Line { at, who, what });
    }

    /// All lines.
    pub fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for Line {
    /// Writes the time since the beginning, the actor and what happened, in columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.at.since(clock::BEGIN).as_millis();
        let seconds = millis / 1_000;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "{hours:>3}:{minutes:02}:{:02}.{:03}  ", seconds % 60, millis % 1_000)?;
        write!(f, "{:<24}  {}", self.who, self.what)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_has_the_time_since_the_beginning_who_and_what() {
        let at = clock::BEGIN + Duration::from_millis(3_723_045);
        let mut journal = Journal::readable();
        journal.note(at, Actor::Sandbox(Function::SweepDeliveries, 7), || "dies".to_owned());
        journal.explain(at, Actor::World, || "nothing happens".to_owned());
        let lines: Vec<_> = journal.log().expect("a log").lines().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "  1:02:03.045  sweep-deliveries 7        dies",
                "  1:02:03.045                            nothing happens",
            ]
        );
    }

    #[test]
    fn the_fingerprint_depends_on_what_happened_and_not_on_explanations() {
        let of = |journal: Journal, who| {
            let mut journal = journal;
            journal.note(clock::BEGIN, who, || "dies".to_owned());
            journal.explain(clock::BEGIN, who, || "in detail".to_owned());
            journal.fingerprint()
        };
        assert_eq!(of(Journal::brief(), Actor::Step(1)), of(Journal::readable(), Actor::Step(1)));
        assert_ne!(of(Journal::brief(), Actor::Step(1)), of(Journal::brief(), Actor::Step(2)));
    }
}
