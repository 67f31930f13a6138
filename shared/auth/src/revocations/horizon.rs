//! The horizon of the list: no revocation was made after it. A function that finds it behind what it has read already
//! reads nothing of the list, which is most readings where revocations are rare.
//!
//! | item | pk / sk |
//! |---|---|
//! | the horizon | `REVOKED#HORIZON` / `HORIZON` |
//!
//! It is moved before a revocation is written, and not in its transaction: transactions that share an item end each other.
//! A crash in between leaves a horizon with nothing at it, which costs a few readings. It only ever moves ahead.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;

use base::Time;
use storage::table::{Change, Key, Table, TableError, absent, less};

const PK: &str = "REVOKED#HORIZON";
const SK: &str = "HORIZON";
const UNTIL: &str = "until";
const READING: &str = "reading the horizon of the revocations";
const MOVING: &str = "moving the horizon of the revocations";

/// How far beyond a revocation the horizon is moved, so that a process which makes many moves it once in a while.
const AHEAD: Duration = Duration::from_secs(5 * 60);
/// How far ahead a new one lies: functions of a release that does not move it may be under way for as long.
const AHEAD_AT_FIRST: Duration = Duration::from_secs(60 * 60);

/// As of when something is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// With every write that was acknowledged before.
    Now,
    /// Perhaps without the writes of the last moments, at half the price.
    MomentsAgo,
}

/// The horizon in the table.
#[derive(Debug, Clone)]
pub struct Horizon {
    table: Table,
    /// As far as this process knows, in milliseconds.
    known: Arc<AtomicI64>,
}

/// A time that the horizon has reached: a revocation may be made at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached(pub(super) Time);

#[derive(Deserialize)]
struct HorizonItem {
    /// In milliseconds.
    until: i64,
}

impl Horizon {
    /// The horizon in this table.
    pub fn new(table: Table) -> Self {
        Self { table, known: Arc::new(AtomicI64::new(i64::MIN)) }
    }

    /// Moves the horizon to this time or later, where a revocation is about to be made.
    ///
    /// # Errors
    /// The table's. Nothing is revoked then, since functions might not find it.
    pub async fn reach(&self, time: Time) -> Result<Reached, TableError> {
        if self.known.load(Ordering::Relaxed) < time.as_millis() {
            self.move_beyond(time).await?;
        }
        Ok(Reached(time))
    }

    /// Moves the horizon some way beyond this time, unless it lies there already.
    pub(super) async fn move_beyond(&self, time: Time) -> Result<(), TableError> {
        let until = (time + AHEAD).as_millis();
        self.table.write(change(until).only_if(absent(UNTIL).or(less(UNTIL, until))), MOVING).await?;
        self.known.fetch_max(until, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the horizon, if there is none, where this is the present.
    pub(super) async fn begin(&self, now: Time) -> Result<(), TableError> {
        let until = (now + AHEAD_AT_FIRST).as_millis();
        self.table.write(change(until).only_if(absent(UNTIL)), MOVING).await.map(drop)
    }

    /// The horizon, `None` where there is none, in one call with other reads that are made so at this moment.
    pub(super) async fn see(&self, seen: Seen) -> Result<Option<Time>, TableError> {
        let key = (PK.to_owned(), SK.to_owned());
        let item: Option<HorizonItem> = match seen {
            Seen::Now => self.table.read(key, READING).await?,
            Seen::MomentsAgo => self.table.glance(key, READING).await?,
        };
        Ok(item.map(|item| Time::from_millis(item.until)))
    }
}

fn change(until: i64) -> Change {
    Change::of(Key::new(PK, SK)).set(UNTIL, until)
}
