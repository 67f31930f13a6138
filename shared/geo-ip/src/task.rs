//! The update task, called over HTTP with the task key and a token, or by the schedule.

use std::time::Duration;

use aws_lc_rs::constant_time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    archive::MAX_EXPANDED,
    configuration::{Configuration, ConfiguredEdition, SECRET},
    download::Web,
    hash,
    settings::GeoIpSettings,
    store::Store,
    update::{UpdateError, Updater},
};
use base::metric::{Metrics, Name, Number};
use base::{SharedClock, SharedRandom, logging};
use outbound::SharedNetwork;
use problem::{JsonBody, Problem, ProblemKind, Rule, Violation};
use storage::{SecretError, SecretText, Secrets, aws::Aws};

/// The limits of a call over HTTP, below the gate's timeout of 27 seconds.
const HTTP: RunLimits = RunLimits { whole: Duration::from_secs(24), least_share: Duration::ZERO };
/// A scheduled run's limits, below the function's timeout of 15 minutes. The minimum share is longer than all timeouts
/// of a download.
const SCHEDULE: RunLimits = RunLimits { whole: Duration::from_secs(14 * 60), least_share: Duration::from_secs(60) };
/// The longest line about one edition, in characters. An error about an untrusted file may be long.
const MAX_LINE: usize = 500;
const TASK_KEY: &str = "task-key";

/// The update task.
pub struct Task {
    /// The secrets with the configuration and the task key.
    pub secrets: Secrets,
    /// The updater of editions.
    pub updater: Updater,
}

/// A request over HTTP to run the task. It has no `Debug`, since the key is a secret.
pub struct TaskRequest {
    key: SecretText,
    environment: String,
    live: bool,
}

/// The result for all editions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether all editions are up to date.
    pub success: bool,
    /// A line about each.
    pub message: String,
}

/// The result for one edition.
struct EditionReport {
    success: bool,
    /// How much time the edition had, if that was too little.
    late_after: Option<Duration>,
    line: String,
}

/// Why the task failed without producing a report.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task key or the environment is wrong. The response does not say which, so that it does not help an attacker.
    #[error("the task key or the environment does not belong to this deployment")]
    Refused,
    /// The configuration or the task key could not be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// An update failed because of this deployment, not the provider.
    #[error("an edition could not be updated")]
    Update(#[source] UpdateError),
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Refused => {
                let detail = "The task key is wrong, or the environment does not match this deployment.";
                Self::new(ProblemKind::TaskRefused, detail)
            }
            TaskError::Secret(error) => error.into(),
            TaskError::Update(_) => Self::internal(error),
        }
    }
}

impl TaskRequest {
    /// Reads a request's body, and the values of `live` in its query.
    pub fn read(body: &[u8], live: &[&str]) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let key = body.required_text("key");
        let environment = body.required_text("environment");
        let live = match live {
            [] | ["false"] => false,
            ["true"] => true,
            _ => {
                let detail = "must be true or false, and be given only once";
                body.violations.push(Violation::query("live", Rule::UnknownValue, detail));
                false
            }
        };
        body.finish()?;
        // A missing string is a violation, so the default is never used.
        Ok(Self { key: SecretText::new(key.unwrap_or_default()), environment: environment.unwrap_or_default(), live })
    }
}

/// The maximum size of a database, in bytes, that fits into this memory (in MB) alongside everything else. Verification
/// holds it in memory, since a memory map would need `unsafe`.
fn largest(memory: u64) -> u64 {
    (memory.saturating_sub(160) * 1024 * 1024).min(MAX_EXPANDED)
}

/// A run's time limits.
struct RunLimits {
    whole: Duration,
    /// The minimum time for an edition, if that much is left.
    least_share: Duration,
}

impl RunLimits {
    /// An edition's time limit: its share of the remaining time, so that a slow provider does not use up the time of
    /// the next editions.
    fn share(&self, left: Duration, editions: usize) -> Duration {
        let editions = u32::try_from(editions).unwrap_or(u32::MAX).max(1);
        (left / editions).max(left.min(self.least_share))
    }
}

impl Task {
    /// This deployment's task.
    pub fn new(
        aws: &Aws,
        secrets: Secrets,
        settings: GeoIpSettings,
        environment: String,
        clock: SharedClock,
        random: SharedRandom,
    ) -> Self {
        let updater = Updater {
            store: Store::open(settings.store, aws),
            environment,
            web: Web::within(settings.rules),
            scratch: settings.scratch,
            largest: largest(settings.memory.into()),
            clock,
            random,
        };
        Self { secrets, updater }
    }

    /// Sets the network of the downloads.
    pub fn on(mut self, network: SharedNetwork) -> Self {
        self.updater.web.network = network;
        self
    }

    /// Runs the task for a request over HTTP, which must contain the task key and this deployment's name.
    pub async fn requested(&self, request: &TaskRequest) -> Result<Report, TaskError> {
        self.admit(request).await?;
        self.run(request.live, &HTTP).await
    }

    /// Runs the task for the schedule's event.
    pub async fn scheduled(&self) -> Result<Report, TaskError> {
        self.run(true, &SCHEDULE).await
    }

    async fn admit(&self, request: &TaskRequest) -> Result<(), TaskError> {
        #[derive(Deserialize)]
        struct TaskKey {
            key: String,
        }
        let expected: TaskKey = self.secrets.read(TASK_KEY).await?;
        let expected = SecretText::new(expected.key);
        // The keys are hashed, so that the comparison's duration does not depend on their lengths.
        let digests = [&request.key, &expected].map(|key| hash::sha256(key.expose().as_bytes()));
        let known = constant_time::verify_slices_are_equal(digests[0].as_bytes(), digests[1].as_bytes()).is_ok();
        let admitted = known && !expected.expose().is_empty() && request.environment == self.updater.environment;
        if admitted { Ok(()) } else { Err(TaskError::Refused) }
    }

    /// Updates all configured editions, and reports the outcome.
    async fn run(&self, live: bool, limits: &RunLimits) -> Result<Report, TaskError> {
        let until = Instant::now() + limits.whole;
        let value: Value = self.secrets.read(SECRET).await?;
        let editions = match Configuration::read(&value) {
            Ok(Configuration { editions }) if editions.is_empty() => {
                let message =
                    "no edition is configured: add editions and their sources to the secret `geo-ip`".to_owned();
                return Ok(Report { success: false, message });
            }
            Ok(Configuration { editions }) => editions,
            Err(error) => {
                tracing::error!(%error, "the geo-IP configuration is invalid: correct the secret `geo-ip`");
                return Ok(Report { success: false, message: error.to_string() });
            }
        };
        let results = self.update_all(&editions, live, limits, until).await;
        let mut success = true;
        let mut lines = Vec::new();
        let mut fault = None;
        for (configured, result) in editions.iter().zip(results) {
            let edition = &configured.edition;
            let line = match result {
                Ok(report) => {
                    success &= report.success;
                    report.line
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
            self.measure_age(configured).await;
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Report { success, message: lines.join("; ") }),
        }
    }

    /// Updates the editions, one after another. A failure does not affect the other editions.
    async fn update_all(
        &self,
        editions: &[ConfiguredEdition],
        live: bool,
        limits: &RunLimits,
        until: Instant,
    ) -> Vec<Result<EditionReport, TaskError>> {
        let left = || until.saturating_duration_since(Instant::now());
        let mut results = Vec::new();
        for (position, configured) in editions.iter().enumerate() {
            let time = limits.share(left(), editions.len() - position);
            results.push(self.update(configured, live, time).await);
        }
        // An edition that needed more than its share gets the time that the others left unused, if that is more.
        let late_after = |result: &Result<EditionReport, TaskError>| result.as_ref().ok()?.late_after;
        for position in 0..results.len() {
            let Some(had) = late_after(&results[position]) else { continue };
            let late = results[position..].iter().filter(|result| late_after(result).is_some()).count();
            let time = limits.share(left(), late);
            if time > had {
                results[position] = self.update(&editions[position], live, time).await;
            }
        }
        results
    }

    /// Updates one edition within this time and logs the outcome.
    async fn update(
        &self,
        configured: &ConfiguredEdition,
        live: bool,
        time: Duration,
    ) -> Result<EditionReport, TaskError> {
        let edition = &configured.edition;
        match self.updater.update(configured, live, Instant::now() + time).await {
            Ok(outcome) => {
                let line = outcome.to_string();
                tracing::info!(%edition, outcome = line, "geo-IP");
                Ok(EditionReport { success: true, late_after: None, line })
            }
            Err(error) if error.is_ours() => Err(TaskError::Update(error)),
            Err(error) => {
                let line: String = logging::chain(&error).chars().take(MAX_LINE).collect();
                tracing::error!(%edition, error = line, "geo-IP: nothing was published");
                let late_after = matches!(error, UpdateError::Late).then_some(time);
                Ok(EditionReport { success: false, late_after, line })
            }
        }
    }

    /// Reports the published database's age as a metric, for the alarms.
    async fn measure_age(&self, configured: &ConfiguredEdition) {
        let Ok(Some((pointer, _))) = self.updater.pointer(&configured.edition).await else { return };
        let now = self.updater.clock.now();
        let built = i64::try_from(pointer.current.build_epoch).unwrap_or(i64::MAX);
        let days = now.as_seconds().saturating_sub(built).max(0) as f64 / 86_400.0;
        Metrics {
            environment: &self.updater.environment,
            by: &[configured.edition.as_str()],
            numbers: &[Number::real(Name::GeoIpAgeDays, days)],
            at: now,
        }
        .publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_provider_leaves_time_for_the_next_editions() {
        let seconds = Duration::from_secs;
        assert_eq!(SCHEDULE.share(SCHEDULE.whole, 4), seconds(210));
        assert_eq!(SCHEDULE.share(seconds(630), 3), seconds(210), "the first took its share");
        assert_eq!(SCHEDULE.share(seconds(830), 3).as_secs(), 276, "it was quick, and left its time to the others");
        assert_eq!(SCHEDULE.share(seconds(100), 1), seconds(100), "the last has all that is left");
        assert_eq!(SCHEDULE.share(seconds(600), 20), SCHEDULE.least_share);
        assert_eq!(SCHEDULE.share(Duration::ZERO, 3), Duration::ZERO);
        assert_eq!(HTTP.share(HTTP.whole, 20), Duration::from_millis(1_200));
        assert_eq!(HTTP.share(seconds(12), 1), seconds(12));
    }
}
