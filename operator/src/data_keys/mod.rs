//! Rotates the keys of sealed values: a new key becomes current, and values sealed by older keys are resealed.
//!
//! A rotation may be interrupted at any moment. Every key stays in the ring until an operator forgets the unneeded
//! ones, and a pass without a new key finishes the work.

pub mod key_ring;
pub mod reseal;

use std::time::Duration;

use self::{
    key_ring::KeyRingSecret,
    reseal::{Counts, Resealing},
};
use crate::{
    Deployment, DeploymentError,
    deployment::{self, ReplacedSecret},
};
use base::{
    Clock, SystemClock, SystemRandom, Time,
    audit::{Action, Notes},
    pause,
};

use storage::{SealError, SecretError, Table, TableError, sealing};

/// The maximum number of passes over the table. Items that change often may need several.
const PASSES: u32 = 20;
/// The wait before another pass, which must find nothing. It is longer than any lease: a function that held an item has
/// written it back by then, possibly with the old value.
const SETTLING: Duration = Duration::from_secs(60);
/// The number of examined items between two progress lines in the log.
const LOGGED_EVERY: u64 = 1000;

/// The kinds of rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Creates a new key and reseals everything.
    Rotate,
    /// Reseals values sealed by older keys, without creating a new key.
    Reseal,
    /// Reseals until no value sealed by an older key is left, then removes the keys that are no longer needed.
    Forget,
}

/// A rotation's result.
pub struct Rotated {
    /// How many items were examined and resealed.
    pub counts: Counts,
    /// The name of the key that seals.
    pub current: String,
    /// The names of the removed keys.
    pub forgotten: Vec<String>,
    /// The names of the old keys that were kept.
    pub kept: Vec<String>,
    /// The time from which [`Work::Forget`] removes them all, if their names contain a time.
    pub settled_at: Option<Time>,
}

/// Why a rotation did not begin or finish.
#[derive(Debug, thiserror::Error)]
pub enum DataKeysError {
    /// The deployment cannot be used.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The secret cannot be read or replaced.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The key ring is malformed.
    #[error("the key ring cannot be used")]
    Ring(#[from] SealError),
    /// The table did not respond.
    #[error("some values were not resealed; run this again with --reseal-only")]
    Table(#[from] TableError),
    /// Items change too often.
    #[error("{0} items were not resealed because of concurrent changes; run this again with --reseal-only")]
    Busy(u64),
}

impl DataKeysError {
    /// Whether the named deployment does not exist or another rotation is in progress, in which case nothing was
    /// changed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Deployment(error) if error.is_refusal())
    }
}

/// Rotates a deployment's keys, or does part of a rotation.
pub async fn rotate(deployment: &Deployment, work: Work) -> Result<Rotated, DataKeysError> {
    let secret = ReplacedSecret::open(deployment, sealing::SECRET)?;
    let present = secret.current().await?;
    let mut ring = KeyRingSecret::read(&present.value)?;
    let mut version = present.id;
    if work == Work::Rotate {
        ring = ring.with_new_key(SystemClock.now(), &SystemRandom);
        version = secret.replace(&ring.value(), &version).await?;
        audit(deployment, Action::RotateDataKeys, ring.current());
        tracing::info!("new values are sealed with the key {}", ring.current());
    }
    let counts = reseal(&deployment.table, &ring, work == Work::Forget).await?;
    let mut forgotten = Vec::new();
    if work == Work::Forget && counts.unreadable == 0 {
        (ring, forgotten) = ring.without_old_keys(SystemClock.now());
        if !forgotten.is_empty() {
            secret.replace(&ring.value(), &version).await?;
            audit(deployment, Action::ForgetDataKeys, &forgotten.join(","));
        }
    }
    let kept = ring.old_keys();
    let settled_at = ring.settled_at();
    Ok(Rotated { counts, current: ring.current().to_owned(), forgotten, kept, settled_at })
}

fn audit(deployment: &Deployment, action: Action, keys: &str) {
    let notes = Notes::default();
    notes.subject(keys);
    deployment::audit(&deployment.environment, action, &notes);
}

/// Makes passes over the table until every item is resealed or, if keys are to be forgotten, until a pass changes
/// nothing.
async fn reseal(table: &Table, ring: &KeyRingSecret, until_nothing_is_left: bool) -> Result<Counts, DataKeysError> {
    let keys = ring.ring()?;
    let resealing = Resealing { table, ring: &keys, random: &SystemRandom };
    let mut all = Counts::default();
    for pass in 1..=PASSES {
        let mut logged = 0;
        let found = resealing.pass(|counts| {
            if counts.seen / LOGGED_EVERY > logged {
                logged = counts.seen / LOGGED_EVERY;
                let resealed = counts.webhooks + counts.connections;
                tracing::info!("pass {pass}: {} items examined, {resealed} resealed", counts.seen);
            }
        });
        let found = found.await?;
        all = Counts {
            webhooks: all.webhooks + found.webhooks,
            connections: all.connections + found.connections,
            ..found
        };
        if found.changed_nothing() || found.busy == 0 && !until_nothing_is_left {
            return Ok(all);
        }
        if until_nothing_is_left {
            tracing::info!("pass {pass} still resealed values; the next pass begins in {} seconds", SETTLING.as_secs());
            pause(SETTLING).await;
        }
    }
    Err(DataKeysError::Busy(all.busy))
}
