//! The operator's command that rotates the key ring: it makes a new key, which seals from then on, and seals anew what
//! older keys sealed. On AWS, and for the service that `make run` runs.
//!
//! It may be stopped at any moment: every key stays in the ring until it is asked to forget those that nothing needs,
//! and `--reseal-only` does what was left to do.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use aws_sdk_secretsmanager::{Client, error::DisplayErrorContext};
use base::{
    clock::{Clock, SystemClock},
    random::SystemRandom,
};
use clap::Parser;
use operator::{OperatorError, Which, private_file};
use operator::{
    key_ring::KeyRingSecret,
    reseal::{Counts, Resealing},
};
use serde_json::Value;
use storage::{
    sealing::{self, SealError},
    table::{Table, TableError},
};
use tokio::time::sleep;

/// Passes over the table, when items change whenever they are to be written.
const PASSES: u32 = 20;
/// The wait before the pass that is to find nothing left: whoever held an item meanwhile has written it back by then,
/// perhaps with the text that it had before. Longer than any lease.
const SETTLING: Duration = Duration::from_secs(60);
/// Progress is told whenever so many items were looked at.
const TOLD_EVERY: u64 = 1000;

/// Makes a new key for what is sealed in the table, and seals everything anew.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Make no new key; seal anew what the current one has not sealed.
    #[arg(long)]
    reseal_only: bool,
    /// Make no new key; seal anew what is left, and remove the keys that nothing can be sealed with any more: those that
    /// were replaced a quarter of an hour ago or earlier.
    #[arg(long)]
    forget: bool,
}

/// Why the keys are not rotated, or not all of it is done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// There is no such deployment.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A file cannot be used.
    #[error("{path} cannot be used")]
    File { path: PathBuf, source: io::Error },
    /// Secrets Manager did not answer, or refused.
    #[error("the secret {name} cannot be read or written: {reason}")]
    Secret { name: String, reason: String },
    /// The secret has a value that is none of ours.
    #[error("the secret `data-keys` holds something else than JSON")]
    Form(#[source] serde_json::Error),
    /// The ring is not one.
    #[error("the key ring cannot be used")]
    Ring(#[from] SealError),
    /// The table did not answer.
    #[error("not everything was sealed anew; run this again with --reseal-only")]
    Table(#[from] TableError),
    /// Items change too often.
    #[error("{0} items changed whenever they were to be written; run this again with --reseal-only")]
    Busy(u64),
    /// Items cannot be opened.
    #[error("{0} items have something that no key of the ring opens, named above; no key was forgotten")]
    Unreadable(u64),
}

#[tokio::main]
async fn main() -> ExitCode {
    operator::begin("rotate_data_keys");
    operator::end(rotate(&Arguments::parse()).await)
}

async fn rotate(arguments: &Arguments) -> Result<(), Failure> {
    let deployment = Deployment::of(&arguments.which).await?;
    let Present { mut ring, mut version } = deployment.read().await?;
    if !arguments.reseal_only && !arguments.forget {
        ring = ring.with_new_key(SystemClock.now(), &SystemRandom);
        version = deployment.keep(&ring, &version).await?;
        tracing::info!("the new key {} seals from now on", ring.current());
    }
    let counts = reseal(&deployment.table, &ring, arguments.forget).await?;
    let mut forgotten = Vec::new();
    if arguments.forget && counts.unreadable == 0 {
        (ring, forgotten) = ring.without_old_keys(SystemClock.now());
        if !forgotten.is_empty() {
            deployment.keep(&ring, &version).await?;
        }
    }
    let Counts { seen, webhooks, connections, deliveries, busy: _, unreadable } = counts;
    println!(
        "{seen} items looked at: {webhooks} webhooks and {connections} connections sealed anew, {unreadable} unreadable, \
         {deliveries} deliveries masked; current key {}, {} keys forgotten",
        ring.current(),
        forgotten.len()
    );
    if unreadable > 0 { Err(Failure::Unreadable(unreadable)) } else { Ok(()) }
}

/// Passes over the table until every item could be written; for keys to be forgotten, until nothing was left to be done.
async fn reseal(table: &Table, ring: &KeyRingSecret, until_nothing_is_left: bool) -> Result<Counts, Failure> {
    let keys = ring.ring()?;
    let resealing = Resealing { table, ring: &keys, random: &SystemRandom };
    let mut all = Counts::default();
    for _ in 0..PASSES {
        let pass = resealing.pass(|counts| {
            if counts.seen % TOLD_EVERY == 0 {
                tracing::info!("{} items looked at", counts.seen);
            }
        });
        let pass = pass.await?;
        all = Counts {
            webhooks: all.webhooks + pass.webhooks,
            connections: all.connections + pass.connections,
            deliveries: all.deliveries + pass.deliveries,
            ..pass
        };
        if pass.changed_nothing() || pass.busy == 0 && !until_nothing_is_left {
            return Ok(all);
        }
        if until_nothing_is_left {
            tracing::info!("something was left; looking again in {} seconds", SETTLING.as_secs());
            sleep(SETTLING).await;
        }
    }
    Err(Failure::Busy(all.busy))
}

/// Where the keys and the table are.
struct Deployment {
    table: Table,
    secrets: Client,
    secret: String,
    /// On one machine, the file from which the next start loads the secret, and the lock that keeps a second rotation out.
    file: Option<(PathBuf, File)>,
}

/// The key ring as it is.
struct Present {
    ring: KeyRingSecret,
    /// The version that Secrets Manager calls current.
    version: String,
}

impl Deployment {
    async fn of(which: &Which) -> Result<Self, Failure> {
        let operator::Deployment { table, secrets, secrets_prefix, here } = operator::Deployment::of(which).await?;
        let file = here.map(|here| Ok::<_, OperatorError>((here.secret_file(sealing::SECRET), here.lock()?)));
        Ok(Self { table, secrets, secret: format!("{secrets_prefix}{}", sealing::SECRET), file: file.transpose()? })
    }

    /// The ring as the next start will find it.
    async fn read(&self) -> Result<Present, Failure> {
        let answer = self.secrets.get_secret_value().secret_id(&self.secret).send().await;
        let answer = answer.map_err(|error| self.failure(DisplayErrorContext(error)))?;
        let version = answer.version_id().unwrap_or_default().to_owned();
        let loaded = ring(answer.secret_string().unwrap_or_default())?;
        let Some((path, _)) = &self.file else { return Ok(Present { ring: loaded, version }) };
        let text = fs::read_to_string(path).map_err(|source| Failure::File { path: path.clone(), source })?;
        let kept = ring(&text)?;
        if kept == loaded {
            return Ok(Present { ring: kept, version });
        }
        // An earlier rotation was stopped between the two.
        let version = self.load(&kept, &version).await?;
        Ok(Present { ring: kept, version })
    }

    /// Makes this the ring, in place of that version of it.
    async fn keep(&self, ring: &KeyRingSecret, version: &str) -> Result<String, Failure> {
        if let Some((path, _)) = &self.file {
            let written = private_file::write(path, format!("{}\n", ring.value()).as_bytes());
            written.map_err(|source| Failure::File { path: path.clone(), source })?;
        }
        self.load(ring, version).await
    }

    /// Gives Secrets Manager the ring. It becomes current only if that version still is: a key that somebody else made in
    /// the meantime is not lost.
    async fn load(&self, ring: &KeyRingSecret, version: &str) -> Result<String, Failure> {
        let put = self.secrets.put_secret_value().secret_id(&self.secret).secret_string(ring.value().to_string());
        let put = put.version_stages("WAYPOSTPENDING").send().await;
        let put = put.map_err(|error| self.failure(DisplayErrorContext(error)))?;
        let new = put.version_id().unwrap_or_default();
        let promotion = self.secrets.update_secret_version_stage().secret_id(&self.secret).version_stage("AWSCURRENT");
        let promoted = promotion.move_to_version_id(new).remove_from_version_id(version).send().await;
        promoted.map_err(|error| self.failure(DisplayErrorContext(error)))?;
        Ok(new.to_owned())
    }

    fn failure(&self, reason: impl ToString) -> Failure {
        Failure::Secret { name: self.secret.clone(), reason: reason.to_string() }
    }
}

fn ring(text: &str) -> Result<KeyRingSecret, Failure> {
    let value: Value = serde_json::from_str(text).map_err(Failure::Form)?;
    Ok(KeyRingSecret::read(&value)?)
}
