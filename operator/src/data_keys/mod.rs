//! Rotating the keys of sealed values: a new key becomes current and seals from then on, and the values that older keys
//! sealed are sealed anew.
//!
//! A rotation may be stopped at any moment: every key stays in the ring until an operator asks to forget the unneeded ones,
//! and a pass without a new key finishes the rest.

pub mod key_ring;
pub mod reseal;

use std::time::Duration;

use self::{
    key_ring::KeyRingSecret,
    reseal::{Counts, Resealing},
};
use crate::{Deployment, DeploymentError, deployment::ReplacedSecret};
use base::{Clock, SystemClock, SystemRandom, Time, pause};
use storage::{SealError, SecretError, Table, TableError, sealing};

/// The greatest number of passes over the table, for items that change each time that they are to be written.
const PASSES: u32 = 20;
/// The wait before the last pass, which is to find nothing: longer than any lease, so that a function that held an item has
/// written it back by then, perhaps with the old text.
const SETTLING: Duration = Duration::from_secs(60);
/// Progress is logged each time that so many more items were looked at.
const LOGGED_EVERY: u64 = 1000;

/// The kinds of rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Makes a new key and seals everything anew.
    Rotate,
    /// Makes no new key; seals anew the values that the current key has not sealed.
    Reseal,
    /// The same, until nothing is left; then removes the keys that no value needs any more.
    Forget,
}

/// The result of a rotation.
pub struct Rotated {
    /// The items that were looked at and sealed anew.
    pub counts: Counts,
    /// The name of the key that seals.
    pub current: String,
    /// The names of the keys that were removed.
    pub forgotten: Vec<String>,
    /// The names of the old keys that stay.
    pub kept: Vec<String>,
    /// The time from which [`Work::Forget`] removes them all, if their names tell.
    pub settled_at: Option<Time>,
}

/// Why the keys are not rotated, or not all of it is done.
#[derive(Debug, thiserror::Error)]
pub enum DataKeysError {
    /// The deployment cannot be worked on.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The secret cannot be read or replaced.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The key ring is malformed.
    #[error("the key ring cannot be used")]
    Ring(#[from] SealError),
    /// The table did not answer.
    #[error("not everything was sealed anew; run this again with --reseal-only")]
    Table(#[from] TableError),
    /// Items change too often.
    #[error("{0} items changed whenever they were to be written; run this again with --reseal-only")]
    Busy(u64),
}

impl DataKeysError {
    /// Whether the deployment that was named is not there, or another rotation is under way. Nothing was changed.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Deployment(error) if error.is_refusal())
    }
}

/// Rotates the keys of a deployment, or does a part of that.
pub async fn rotate(deployment: &Deployment, work: Work) -> Result<Rotated, DataKeysError> {
    let secret = ReplacedSecret::open(deployment, sealing::SECRET)?;
    let present = secret.current().await?;
    let mut ring = KeyRingSecret::read(&present.value)?;
    let mut version = present.id;
    if work == Work::Rotate {
        ring = ring.with_new_key(SystemClock.now(), &SystemRandom);
        version = secret.replace(&ring.value(), &version).await?;
        tracing::info!("the new key {} seals from now on", ring.current());
    }
    let counts = reseal(&deployment.table, &ring, work == Work::Forget).await?;
    let mut forgotten = Vec::new();
    if work == Work::Forget && counts.unreadable == 0 {
        (ring, forgotten) = ring.without_old_keys(SystemClock.now());
        if !forgotten.is_empty() {
            secret.replace(&ring.value(), &version).await?;
        }
    }
    let kept = ring.old_keys();
    let settled_at = ring.settled_at();
    Ok(Rotated { counts, current: ring.current().to_owned(), forgotten, kept, settled_at })
}

/// Passes over the table until every item could be written; for keys to be forgotten, until nothing was left to be done.
async fn reseal(table: &Table, ring: &KeyRingSecret, until_nothing_is_left: bool) -> Result<Counts, DataKeysError> {
    let keys = ring.ring()?;
    let resealing = Resealing { table, ring: &keys, random: &SystemRandom };
    let mut all = Counts::default();
    for pass in 1..=PASSES {
        let mut logged = 0;
        let found = resealing.pass(|counts| {
            if counts.seen / LOGGED_EVERY > logged {
                logged = counts.seen / LOGGED_EVERY;
                let anew = counts.webhooks + counts.connections;
                tracing::info!("pass {pass}: {} items looked at, {anew} of them written", counts.seen);
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
            tracing::info!("pass {pass} still found something; looking again in {} seconds", SETTLING.as_secs());
            pause(SETTLING).await;
        }
    }
    Err(DataKeysError::Busy(all.busy))
}
