//! The task as it is called: over HTTP, with the task key beside the token, and by the schedule.

use std::{pin::pin, time::Duration};

use aws_lc_rs::constant_time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    select,
    time::{Instant, sleep},
};

use super::{
    archive::MAX_EXPANDED,
    configuration::{Configuration, ConfiguredEdition, SECRET},
    download::Web,
    hash,
    lease::{Finished, Lease, Leases, Meeting},
    outcome::Outcome,
    store::Store,
    update::{Ready, UpdateError, Updater},
};
use crate::settings::GeoIpSettings;
use base::{clock::SharedClock, random::SharedRandom};
use base::{
    clock::Time,
    logging::{self, Metric},
};
use gate::{Call, Reply};
use problem::{JsonBody, Problem};
use storage::{aws::Aws, table::Table};
use storage::{
    secrets::{SecretError, SecretText, Secrets},
    table::TableError,
};

/// How long a call over HTTP may work: below the 27 seconds after which the gate gives up.
const HTTP_LIMIT: Duration = Duration::from_secs(24);
/// How long the schedule may work: below the function's own limit of 15 minutes.
const SCHEDULE_LIMIT: Duration = Duration::from_secs(14 * 60);
/// How often it is looked whether another update has ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much is told about one edition: what is wrong with a stranger's file may be put into many words.
const MAX_LINE: usize = 500;
/// The secret with the key of operational tasks.
const TASK_KEY: &str = "task-key";

/// The task.
pub struct Task {
    /// Where configuration and task key are.
    pub secrets: Secrets,
    /// Who does the work.
    pub updater: Updater,
    /// Who may do it at the moment.
    pub leases: Leases,
}

/// What became of all editions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether all are as they should be.
    pub success: bool,
    /// A line about each.
    pub message: String,
}

/// Why there is no report: the fault is ours.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The configuration cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The table cannot be used.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An update failed by a fault of ours.
    #[error("an edition could not be updated")]
    Update(#[source] UpdateError),
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Secret(error) => error.into(),
            TaskError::Table(error) => error.into(),
            TaskError::Update(_) => Self::internal(error),
        }
    }
}

/// The largest database that fits into so many MB of memory, beside everything else.
fn largest(memory: u64) -> u64 {
    (memory.saturating_sub(160) * 1024 * 1024).min(MAX_EXPANDED)
}

impl Task {
    /// The task of this deployment.
    pub fn new(
        (aws, table, secrets): (&Aws, &Table, Secrets),
        settings: GeoIpSettings,
        environment: String,
        (clock, random): (SharedClock, SharedRandom),
    ) -> Self {
        let updater = Updater {
            store: Store::open(settings.store, aws),
            environment,
            web: Web::within(settings.rules),
            scratch: settings.scratch,
            largest: largest(settings.memory),
            clock: clock.clone(),
            random: random.clone(),
        };
        Self { secrets, updater, leases: Leases { table: table.clone(), clock, random } }
    }

    /// The call over HTTP.
    pub async fn answer(&self, call: &Call) -> Result<Reply, Problem> {
        let live = self.admit(call).await?;
        let report = self.run(live, HTTP_LIMIT).await?;
        Reply::ok(&report)
    }

    /// The schedule's event.
    pub async fn scheduled(&self) -> Result<Report, TaskError> {
        self.run(true, SCHEDULE_LIMIT).await
    }

    /// Whether the caller may; and whether it is meant.
    async fn admit(&self, call: &Call) -> Result<bool, Problem> {
        let mut body = JsonBody::read(&call.body)?;
        let [key, environment] = ["key", "environment"].map(|name| {
            let text = body.required::<String>(name, "a text that is not empty");
            if text.as_deref() == Some("") {
                body.violations.add(name, "must not be empty");
            }
            text.unwrap_or_default()
        });
        let live = match call.query("live").as_slice() {
            [] | ["false"] => false,
            ["true"] => true,
            _ => {
                body.violations.add("live", "must be true or false, and come once");
                false
            }
        };
        body.finish()?;
        #[derive(Deserialize)]
        struct TaskKey {
            key: String,
        }
        let expected: TaskKey = self.secrets.read(TASK_KEY).await?;
        let expected = SecretText::new(expected.key);
        // Hashed, so that the comparison takes the same time whatever was sent, its length included.
        let digests = [key.as_str(), expected.expose()].map(|key| hash::sha256(key.as_bytes()));
        let known = constant_time::verify_slices_are_equal(digests[0].as_bytes(), digests[1].as_bytes()).is_ok();
        if known && !expected.expose().is_empty() && environment == self.updater.environment {
            Ok(live)
        } else {
            Err(Problem::task_refused())
        }
    }

    /// Updates every configured edition, one after another; one that fails leaves the others alone.
    async fn run(&self, live: bool, limit: Duration) -> Result<Report, TaskError> {
        let (began, until) = (self.updater.clock.now(), Instant::now() + limit);
        let value: Value = self.secrets.read(SECRET).await?;
        let editions = match Configuration::read(&value) {
            Ok(Configuration { editions }) if editions.is_empty() => {
                let message = "no edition is configured; the secret `geo-ip` says which are kept".to_owned();
                return Ok(Report { success: false, message });
            }
            Ok(Configuration { editions }) => editions,
            Err(error) => {
                tracing::error!(%error, "the geo-IP configuration cannot be used");
                return Ok(Report { success: false, message: error.to_string() });
            }
        };
        let (mut success, mut lines, mut fault) = (true, Vec::new(), None);
        for configured in &editions {
            let edition = &configured.edition;
            let line = match self.update(configured, live, began, until).await {
                Ok(Ok(line)) => {
                    tracing::info!(%edition, outcome = line, "geo-IP");
                    line
                }
                Ok(Err(line)) => {
                    success = false;
                    line
                }
                Err(error) => {
                    tracing::error!(%edition, error = %logging::chain(&error), "geo-IP: the update failed");
                    success = false;
                    let line = error.to_string();
                    fault = fault.or(Some(error));
                    line
                }
            };
            lines.push(format!("{edition}: {line}"));
            self.tell_age(configured).await;
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Report { success, message: lines.join("; ") }),
        }
    }

    /// What became of one edition, well or not: by this call's own work, or by that of another that it met.
    async fn update(
        &self,
        configured: &ConfiguredEdition,
        live: bool,
        began: Time,
        until: Instant,
    ) -> Result<Result<String, String>, TaskError> {
        let edition = &configured.edition;
        let lease = loop {
            let late = Instant::now() + LOOK_EVERY >= until;
            let standing = self.leases.look(edition).await?;
            match standing.meet(began, live, self.updater.clock.now()) {
                Meeting::Done(Finished { success, line, .. }) => return Ok(if success { Ok(line) } else { Err(line) }),
                Meeting::HeldSince(since) if late => {
                    return Ok(Err(format!("another update is under way since {since}")));
                }
                Meeting::HeldSince(_) => sleep(LOOK_EVERY).await,
                Meeting::Free if late => return Ok(Err(UpdateError::Late.to_string())),
                Meeting::Free => match self.leases.take(edition, &standing).await? {
                    Some(lease) => break lease,
                    None => continue, // somebody was quicker, and perhaps is done already
                },
            }
        };
        let outcome = self.work(configured, live, until, &lease).await;
        // What has to do with this call alone tells those nothing who wait: they try for themselves.
        let for_all = outcome.as_ref().map_or_else(|error| !error.is_ours() && !error.is_passing(), |_| true);
        let outcome = match outcome {
            Ok(outcome) => Ok(Ok(outcome.to_string())),
            Err(UpdateError::Table(error)) => Err(TaskError::Table(error)),
            Err(error) if error.is_ours() => Err(TaskError::Update(error)),
            Err(error) => {
                let line: String = logging::chain(&error).chars().take(MAX_LINE).collect();
                tracing::error!(%edition, error = line, "geo-IP: nothing was published");
                Ok(Err(line))
            }
        };
        let finished = outcome.as_ref().ok().filter(|_| for_all).map(|outcome| {
            let (Ok(line) | Err(line)) = outcome;
            let finished_at = self.updater.clock.now();
            Finished { finished_at, live, success: outcome.is_ok(), line: line.clone() }
        });
        if let Err(error) = self.leases.give_back(&lease, finished).await {
            tracing::warn!(%edition, error = %logging::chain(&error), "a lease was not given back and ends by itself");
        }
        outcome
    }

    /// The work, by the one who has the lease and for as long as it is theirs.
    async fn work(
        &self,
        configured: &ConfiguredEdition,
        live: bool,
        until: Instant,
        lease: &Lease,
    ) -> Result<Outcome, UpdateError> {
        let mut keeping = pin!(self.leases.keep(lease));
        let ready = select! {
            ready = self.updater.make_ready(configured, live, until) => ready?,
            () = &mut keeping => return Err(UpdateError::LeaseLost),
        };
        let publication = match ready {
            Ready::Done(outcome) => return Ok(outcome),
            Ready::Publish(publication) => publication,
        };
        if !self.leases.renew(lease).await? {
            return Err(UpdateError::LeaseLost);
        }
        let mut publishing = pin!(self.updater.publish(*publication));
        select! {
            outcome = &mut publishing => outcome,
            // Whoever gave up now would not know whether it is published; the compare-and-swap keeps it right.
            () = &mut keeping => publishing.await,
        }
    }

    /// Tells how old the published database is, for the alarms.
    async fn tell_age(&self, configured: &ConfiguredEdition) {
        let Ok(Some((pointer, _))) = self.updater.pointer(&configured.edition).await else { return };
        let now = self.updater.clock.now();
        let built = i64::try_from(pointer.current.build_epoch).unwrap_or(i64::MAX);
        Metric {
            name: "GeoIpAgeDays",
            value: now.as_seconds().saturating_sub(built).max(0) as f64 / 86_400.0,
            dimensions: &[("Environment", &self.updater.environment), ("Edition", configured.edition.as_str())],
            at: now,
        }
        .tell();
    }
}
