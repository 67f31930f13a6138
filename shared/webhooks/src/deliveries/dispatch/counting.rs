//! Counting attempts for the health and the statistics of their webhooks.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::subscriptions::{breaker::HealthItem, health_tracker::HealthTracker, stats::Stats, tally::AttemptOutcome};
use auth::AuthorizedEntity;
use base::{Time, WebhookId, logging};

/// An attempt that was made, to be counted.
pub(crate) struct CompletedAttempt {
    pub(crate) entity: AuthorizedEntity,
    pub(crate) webhook: WebhookId,
    pub(crate) outcome: AttemptOutcome,
    /// The webhook's health before the attempt.
    pub(crate) health_before: Option<HealthItem>,
    /// Whether it carried an operational event, which changes no health.
    pub(crate) operational: bool,
}

/// Counts attempts, once per webhook and call, and returns how many breakers opened. No delivery depends on it, so an
/// error is logged.
pub(crate) async fn count(
    tried: Vec<CompletedAttempt>,
    health_tracker: &HealthTracker,
    stats: &Stats,
    now: Time,
) -> usize {
    let mut by_webhook: BTreeMap<WebhookId, Vec<CompletedAttempt>> = BTreeMap::new();
    for attempt in tried {
        by_webhook.entry(attempt.webhook.clone()).or_default().push(attempt);
    }
    let counted = by_webhook.into_iter().map(|(webhook, tried)| count_for(webhook, tried, health_tracker, stats, now));
    join_all(counted).await.into_iter().filter(|opened| *opened).count()
}

/// Counts attempts of one webhook, and returns whether its breaker opened.
async fn count_for(
    webhook: WebhookId,
    tried: Vec<CompletedAttempt>,
    health_tracker: &HealthTracker,
    stats: &Stats,
    now: Time,
) -> bool {
    let Some(entity) = tried.first().map(|attempt| attempt.entity.clone()) else { return false };
    let for_health = || tried.iter().filter(|attempt| !attempt.operational);
    // If the batch holds a probe, use the health that it saw: the others saw the breaker closed.
    let seen = for_health().filter_map(|attempt| attempt.health_before.as_ref());
    let seen = seen.max_by_key(|health| health.open_until).cloned();
    let for_health: Vec<_> = for_health().map(|attempt| attempt.outcome.clone()).collect();
    let outcomes: Vec<_> = tried.into_iter().map(|attempt| attempt.outcome).collect();
    let (watched, counted) = tokio::join!(
        health_tracker.count(&entity, &webhook, &for_health, seen.as_ref(), now),
        stats.count(&entity, &webhook, &outcomes, now)
    );
    for error in [watched.as_ref().err(), counted.as_ref().err()].into_iter().flatten() {
        tracing::warn!(error = %logging::chain(error), webhookId = %webhook, "attempts were not counted");
    }
    watched.is_ok_and(|opened| opened)
}
