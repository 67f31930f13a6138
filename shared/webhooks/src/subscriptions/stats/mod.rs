//! A webhook's statistics per hour: attempts, successes and response times. An attempt that gets no response, such as a
//! refused connection, has no response time, since that would make a dead endpoint look fast.
//!
//! | item | pk / sk |
//! |---|---|
//! | an hour | `ENT#{entity}` / `STA#{webhook}#2026-11-20T09` |
//! An hour contains both counts, and a histogram: an attribute for each range of durations, named after its shortest
//! duration in milliseconds (`d14`). One update adds the counts that a process holds for a webhook (`held.rs`). Reading
//! the statistics adds up the hours.

mod attempt_count;
mod held;
mod histogram;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::try_join_all;
use serde::Serialize;

use crate::subscriptions::{
    health::tally::AttemptOutcome,
    stats::{
        attempt_count::{Count, HourItem},
        held::{Held, Ready, WebhookKey},
    },
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId, logging, pause};
use storage::table::{Change, Query, Table, TableError};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long hours are kept: a day longer than they are shown.
pub(super) const RETENTION: Duration = Duration::from_secs(8 * 24 * 60 * 60);
/// The maximum age of counts that a process holds because there are too few to be written. A sandbox that freezes in
/// the meantime writes them at its next event.
const HOLDING: Duration = Duration::from_secs(2);

/// The statistics in the table.
#[derive(Debug, Clone)]
pub struct Stats {
    table: Table,
    held: Arc<Mutex<Held>>,
}

/// A webhook's statistics on the wire.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStats {
    /// The current hour and the 24 before it.
    last24_hours: Summary,
    /// The current hour and the 168 before it.
    last7_days: Summary,
    /// The hours of `last24_hours` that had attempts, oldest first.
    hours: Vec<Hour>,
}

/// The attempts of one hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Hour {
    start_date: Time,
    attempts: u64,
    succeeded: u64,
}

/// The attempts of a period. Without attempts there is no rate, and without responses there are no times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    attempts: u64,
    succeeded: u64,
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    success_rate: Option<f64>,
    /// The median of the attempts that got a response, in milliseconds, to within a tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<u64>,
}

impl Count {
    fn summary(&self) -> Summary {
        if self.attempts == 0 {
            return Summary::default();
        }
        #[expect(clippy::cast_precision_loss, reason = "the numbers of attempts are below 2^53")]
        let rate = self.succeeded as f64 / self.attempts as f64;
        Summary {
            attempts: self.attempts,
            succeeded: self.succeeded,
            success_rate: Some((rate * 10_000.0).round() / 10_000.0),
            p50_ms: self.durations.percentile(50),
            p95_ms: self.durations.percentile(95),
        }
    }
}

impl Stats {
    /// The statistics in this table.
    pub fn new(table: Table) -> Self {
        // If the response is lost, a repeated addition would count twice.
        Self { table: table.once(), held: Arc::default() }
    }

    /// Counts attempts, once per webhook and batch: in memory until enough of them are held.
    pub(crate) async fn count(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        outcomes: &[AttemptOutcome],
        now: Time,
    ) -> Result<(), TableError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let key = WebhookKey { entity: entity.clone(), webhook: webhook.clone() };
        let (ready, begins) = self.held().add(key.clone(), hour(now), &Count::of(outcomes));
        if begins {
            let stats = self.clone();
            tokio::spawn(async move { stats.write_later(key).await });
        }
        self.write(ready, now).await
    }

    async fn write_later(&self, key: WebhookKey) {
        pause(HOLDING).await;
        let ready = self.held().take(&key);
        // The item's retention counts from the end of the hour.
        let now = ready.as_ref().and_then(|ready| Time::of_client(&format!("{}:59:59Z", ready.hour)));
        let Some((ready, now)) = ready.zip(now) else { return };
        if let Err(error) = self.write(vec![ready], now).await {
            tracing::warn!(
                error = %logging::chain(&error),
                webhookId = %key.webhook,
                "a webhook's attempts were not counted and are missing from its statistics"
            );
        }
    }

    async fn write(&self, ready: Vec<Ready>, now: Time) -> Result<(), TableError> {
        let writes = ready.into_iter().map(|Ready { key, hour, count }| {
            let item = (partition(&key.entity), format!("{}{hour}", prefix(&key.webhook)));
            let change = Change::of(item).set("expiresAt", (now + RETENTION).as_seconds());
            let change = count.additions().fold(change, |change, (name, count)| change.add(name, count));
            self.table.write(change, "counting a webhook's attempts")
        });
        try_join_all(writes).await.map(drop)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // The counts of a poisoned lock are still valid.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn of(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<WebhookStats, TableError> {
        const DOING: &str = "reading a webhook's statistics";
        let prefix = prefix(webhook);
        let hours: Vec<HourItem> = self.table.all(hours(entity, &prefix), DOING).await?;
        Ok(summarized(&hours, &prefix, now))
    }
}

fn summarized(hours: &[HourItem], prefix: &str, now: Time) -> WebhookStats {
    let day = recent(hours, prefix, DAY, now);
    let shown = day.iter().filter_map(|(hour, item)| {
        let count = sum([*item]);
        let start_date = Time::of_client(&format!("{hour}:00:00Z"))?;
        Some(Hour { start_date, attempts: count.attempts, succeeded: count.succeeded })
    });
    WebhookStats {
        last24_hours: sum(day.iter().map(|(_, item)| *item)).summary(),
        last7_days: sum(recent(hours, prefix, DAY * 7, now).into_iter().map(|(_, item)| item)).summary(),
        hours: shown.collect(),
    }
}

/// The hours that began at most this long ago, with their names, in the order of the items.
fn recent<'a>(hours: &'a [HourItem], prefix: &str, ago: Duration, now: Time) -> Vec<(&'a str, &'a HourItem)> {
    let first = hour(now - ago);
    let named = hours.iter().filter_map(|item| Some((item.sk.strip_prefix(prefix)?, item)));
    // The names sort in the order of the hours.
    named.filter(|(hour, _)| *hour >= first.as_str()).collect()
}

fn sum<'a>(hours: impl IntoIterator<Item = &'a HourItem>) -> Count {
    let mut count = Count::default();
    hours.into_iter().for_each(|hour| count.add(hour));
    count
}

fn partition(entity: &AuthorizedEntity) -> String {
    format!("ENT#{}", entity.id())
}

fn hours(entity: &AuthorizedEntity, prefix: &str) -> Query {
    Query::partition(partition(entity)).beginning_with("sk", prefix)
}

fn prefix(webhook: &WebhookId) -> String {
    format!("STA#{webhook}#")
}

/// The hour of a time: `2026-11-20T09`.
fn hour(time: Time) -> String {
    let mut text = time.to_string();
    text.truncate("2026-11-20T09".len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::stats::histogram::LONGEST;
    use proptest::prelude::*;
    use serde_json::Value;

    const NOW: Time = Time::from_millis(1_795_167_900_123); // 2026-11-20T09:45:00.123Z

    fn outcome(status: Option<u16>, millis: u64) -> AttemptOutcome {
        AttemptOutcome {
            http_status: status,
            confirmed: false,
            of_reader: false,
            interrupted: false,
            error: None,
            duration: Duration::from_millis(millis),
        }
    }

    fn row(hour: &str, count: &Count) -> HourItem {
        let counts = count.additions().map(|(name, count)| (name, Value::from(count)));
        let others = [("pk".to_owned(), "ENT#demo-hotel".into()), ("expiresAt".to_owned(), 1.into())];
        HourItem { sk: format!("STA#whk#{hour}"), counts: counts.chain(others).collect() }
    }

    #[test]
    fn a_webhook_without_attempts_has_neither_rates_nor_times() {
        let stats = summarized(&[], "STA#whk#", NOW);
        assert_eq!(
            serde_json::to_value(stats).expect("JSON")["last7Days"],
            serde_json::json!({"attempts": 0, "succeeded": 0})
        );
    }

    #[test]
    fn an_attempt_that_was_not_answered_counts_and_has_no_response_time() {
        let answered = |millis| outcome(Some(200), millis);
        let refused = || outcome(None, 1);
        let count = Count::of(&[answered(80), refused(), refused(), answered(80), outcome(None, 15_000)]).summary();
        assert_eq!((count.attempts, count.succeeded, count.success_rate), (5, 2, Some(0.4)));
        assert!(count.p50_ms.is_some_and(|millis| (72..=88).contains(&millis)), "{count:?}");
        assert_eq!(count.p95_ms, count.p50_ms);
        let dead = Count::of(&[refused()]).summary();
        assert_eq!((dead.attempts, dead.success_rate, dead.p50_ms, dead.p95_ms), (1, Some(0.0), None, None));
    }

    #[test]
    fn hours_are_added_up_for_as_long_as_they_count() {
        let count = |attempts: u64| {
            Count::of(
                &(0..attempts).map(|number| outcome(Some(if number == 0 { 500 } else { 200 }), 9)).collect::<Vec<_>>(),
            )
        };
        let hours = [
            row("2026-11-13T08", &count(100)),
            row("2026-11-13T09", &count(1)),
            row("2026-11-19T08", &count(2)),
            row("2026-11-19T09", &count(3)),
            row("2026-11-20T09", &count(5)),
        ];
        let stats = summarized(&hours, "STA#whk#", NOW);
        assert_eq!((stats.last24_hours.attempts, stats.last24_hours.succeeded), (8, 6));
        assert_eq!((stats.last7_days.attempts, stats.last7_days.succeeded), (11, 7));
        assert_eq!(stats.last24_hours.success_rate, Some(0.75));
        let by_hour: Vec<_> =
            stats.hours.iter().map(|hour| (hour.start_date.to_string(), hour.attempts, hour.succeeded)).collect();
        let expected = [("2026-11-19T09:00:00.000Z".to_owned(), 3, 2), ("2026-11-20T09:00:00.000Z".to_owned(), 5, 4)];
        assert_eq!(by_hour, expected, "the hours of the day, without those that had no attempts");
        assert_eq!((stats.last24_hours.p50_ms, stats.last24_hours.p95_ms), (Some(9), Some(9)));
        let json = serde_json::to_value(stats).expect("JSON");
        assert!(json["last24Hours"]["p95Ms"].is_u64() && json["last7Days"]["successRate"].is_f64(), "{json}");
    }

    #[test]
    fn an_hour_with_every_duration_is_one_write_unit() {
        let all: Vec<_> = (0..LONGEST).map(|millis| outcome(Some(200), millis)).collect();
        let bytes: usize = Count::of(&all).additions().map(|(name, _)| name.len() + 6).sum();
        assert!(bytes < 850, "{bytes} bytes, beside a key of up to 180");
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_a_tenth_of_the_exact_one(
            durations in proptest::collection::vec(prop_oneof![0u64..50, 0u64..15_000], 1..300),
            percent in proptest::sample::select(vec![50u64, 95]),
            parts in 1usize..5,
        ) {
            // Counted in several batches, and added up from several hours.
            let mut whole = Count::default();
            for batch in durations.chunks(durations.len().div_ceil(parts)) {
                let batch: Vec<_> = batch.iter().map(|millis| outcome(Some(200), *millis)).collect();
                whole.add(&row("2026-11-20T09", &Count::of(&batch)));
            }
            let mut sorted = durations.clone();
            sorted.sort_unstable();
            let rank = (sorted.len() * usize::try_from(percent).expect("small")).div_ceil(100);
            let exact = sorted[rank - 1];
            let shown = whole.durations.percentile(percent).expect("there are some");
            prop_assert!(shown.abs_diff(exact) * 10 <= exact, "{exact} is shown as {shown}");
            prop_assert_eq!(whole.attempts, durations.len() as u64);
        }
    }
}
