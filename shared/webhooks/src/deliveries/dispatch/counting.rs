//! Counts attempts for their webhooks' health and statistics.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::subscriptions::{
    health::{breaker::HealthItem, tally::AttemptOutcome, tracker::HealthTracker},
    stats::Stats,
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId, logging};

/// A recorded attempt that has yet to be counted.
pub(crate) struct RecordedAttempt {
    pub(crate) entity: AuthorizedEntity,
    pub(crate) webhook: WebhookId,
    pub(crate) outcome: AttemptOutcome,
    /// The webhook's health before the attempt.
    pub(crate) health_before: Option<HealthItem>,
    /// Whether it carried an operational event, which does not affect health.
    pub(crate) operational: bool,
}

/// Counts attempts, with one write per webhook and call. Returns how many breakers opened. Errors are only logged,
/// since no delivery depends on the counts.
pub(crate) async fn count(
    recorded: Vec<RecordedAttempt>,
    health_tracker: &HealthTracker,
    stats: &Stats,
    now: Time,
) -> usize {
    let mut by_webhook: BTreeMap<WebhookId, Vec<RecordedAttempt>> = BTreeMap::new();
    for attempt in recorded {
        by_webhook.entry(attempt.webhook.clone()).or_default().push(attempt);
    }
    let counted =
        by_webhook.into_iter().map(|(webhook, recorded)| count_for(webhook, recorded, health_tracker, stats, now));
    join_all(counted).await.into_iter().filter(|opened| *opened).count()
}

/// Counts one webhook's attempts and returns whether its breaker opened.
async fn count_for(
    webhook: WebhookId,
    recorded: Vec<RecordedAttempt>,
    health_tracker: &HealthTracker,
    stats: &Stats,
    now: Time,
) -> bool {
    let Some(entity) = recorded.first().map(|attempt| attempt.entity.clone()) else { return false };
    let for_health = || recorded.iter().filter(|attempt| !attempt.operational && !attempt.outcome.interrupted);
    // If the batch contains a probe, use the health that the probe saw: the other attempts saw a closed breaker.
    let seen = for_health().filter_map(|attempt| attempt.health_before.as_ref());
    let seen = seen.max_by_key(|health| health.open_until).cloned();
    let for_health: Vec<_> = for_health().map(|attempt| attempt.outcome.clone()).collect();
    let outcomes: Vec<_> = recorded.into_iter().map(|attempt| attempt.outcome).collect();
    let (watched, counted) = tokio::join!(
        health_tracker.count(&entity, &webhook, &for_health, seen.as_ref(), now),
        stats.count(&entity, &webhook, &outcomes, now)
    );
    for error in [watched.as_ref().err(), counted.as_ref().err()].into_iter().flatten() {
        tracing::warn!(
            error = %logging::chain(error),
            webhookId = %webhook,
            "a webhook's attempts were not counted and are missing from its health and statistics"
        );
    }
    watched.is_ok_and(|opened| opened)
}
