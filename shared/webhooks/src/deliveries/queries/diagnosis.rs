//! Diagnosis of a webhook: its status, its statistics, its latest failures, and how to remedy each cause.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        queries::{
            advice::{Advice, Cause},
            by_webhook::Counted,
            check_filter::FilterCheckRequest,
            filters::Filters,
            range::KeyRange,
        },
        state::{delivery::Status, index::IndexGroup},
        store::Deliveries,
        view::{AttemptView, DeliveryView, WholeDelivery},
    },
    subscriptions::{WebhookError, WebhookView, stats::WebhookStats, webhook::show::Showing},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

/// How many of the newest failures are shown.
const FAILURES: usize = 5;
/// How many of the oldest waiting deliveries are examined.
const WAITING: i32 = 5;
/// The maximum number of recoverable and waiting deliveries that are counted.
const MAX_COUNT: usize = 1_000;

/// Diagnoses webhooks.
pub struct Diagnosing {
    /// Shows webhooks, their health and their statistics.
    pub showing: Showing,
    /// Their deliveries.
    pub deliveries: Deliveries,
    /// The retention: older deliveries count as removed, though the table may keep them for days.
    pub retention: Duration,
}

/// A webhook's diagnosis.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    webhook: WebhookView,
    stats: WebhookStats,
    /// Failed and cancelled deliveries that can be recovered.
    recoverable: Recoverable,
    /// Deliveries whose next attempt is more than a minute away, or that are waiting for the end of a pause.
    waiting: Counted,
    /// First the causes that block the whole webhook or some deliveries, then those of failed attempts, the most
    /// frequent first, then the filter.
    findings: Vec<Finding>,
    /// The newest failures first.
    failures: Vec<FailedDelivery>,
}

/// Recoverable deliveries, and the start of a recovery that finds all of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recoverable {
    #[serde(flatten)]
    counted: Counted,
    /// When the oldest one was created; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_created_date: Option<Time>,
}

/// A cause, and how many of the failures shown it explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    #[serde(flatten)]
    advice: Advice,
    /// The facts about this webhook, without text from third parties.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    failures: usize,
}

/// A cause other than failed attempts, with the facts about the webhook.
#[derive(Debug)]
struct Obstacle {
    cause: Cause,
    detail: Option<String>,
}

/// A delivery that has not arrived, with its last attempt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedDelivery {
    #[serde(flatten)]
    delivery: DeliveryView,
    cause: Cause,
    last_attempt: AttemptView,
}

impl Diagnosing {
    /// Diagnoses a webhook of the entity.
    ///
    /// # Errors
    /// [`WebhookError::NotFound`] if the entity has no such webhook.
    pub async fn diagnose(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        now: Time,
    ) -> Result<Diagnosis, DeliveryError> {
        let (webhook, stats) =
            tokio::try_join!(self.showing.one(entity, id, now), self.showing.stats(entity, id, now))?;
        let kept = KeyRange::since(now - self.retention);
        let count = |group| self.deliveries.count_up_to(MAX_COUNT, id, group, vec![kept.clone()]);
        let counts = async {
            let counts = tokio::try_join!(
                count(IndexGroup::Recoverable),
                self.deliveries.of_group(id, IndexGroup::Recoverable, &kept, 1),
                count(IndexGroup::Waiting),
                self.of_waiting(id, &kept),
            );
            counts.map_err(DeliveryError::from)
        };
        let ((counted, oldest, waiting, of_waiting), failures, filter) =
            tokio::try_join!(counts, self.failures(entity, id, kept.clone(), now), self.filter(entity, &webhook, now))?;
        let oldest_created_date = oldest.found.first().map(DeliveryId::time);
        let recoverable = Recoverable { counted, oldest_created_date };
        let held_up_by = webhook.held_up_by().map(|cause| Obstacle { cause, detail: None });
        let obstacles = held_up_by.into_iter().chain(Obstacle::of_feed(&webhook, now)).chain(of_waiting);
        let shown = failures.iter().map(|failure| failure.cause);
        let findings = findings(obstacles, webhook.last_failure(), shown, filter);
        Ok(Diagnosis { webhook, stats, recoverable, waiting, findings, failures })
    }

    /// Why the oldest waiting deliveries are waiting: for another delivery, or for their slot.
    async fn of_waiting(&self, webhook: &WebhookId, kept: &KeyRange) -> Result<Vec<Obstacle>, TableError> {
        let waiting = self.deliveries.of_group(webhook, IndexGroup::Waiting, kept, WAITING).await?;
        let heads = self.deliveries.heads(waiting.found.iter().map(|id| (id, None)).collect()).await?;
        let waiting: Vec<_> = heads.into_iter().flatten().collect();
        let held = waiting.iter().find_map(|head| Some((&head.delivery.id, head.held_by()?)));
        let held = held.map(|(id, before)| Obstacle {
            cause: Cause::Held,
            detail: Some(format!("`{id}` is waiting for `{before}`, the previous delivery for the same subject.")),
        });
        let is_limited = waiting.iter().filter_map(|head| head.state.open()).any(|open| open.wait.slot().is_some());
        let limited = is_limited.then_some(Obstacle { cause: Cause::RateLimited, detail: None });
        Ok(held.into_iter().chain(limited).collect())
    }

    /// The webhook's filter, with the number of recent events that it excludes. The number is left out if the entity
    /// has tried filters too often.
    async fn filter(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookView,
        now: Time,
    ) -> Result<Option<Obstacle>, DeliveryError> {
        let Some((filter, event_list)) = webhook.filter() else { return Ok(None) };
        let request = FilterCheckRequest::of_webhook(filter, event_list.to_vec());
        let detail = match self.deliveries.check_filter(entity, &request, now).await {
            Ok(check) => Some(outcome(check.unmatched(), check.wanted())),
            Err(DeliveryError::Webhook(WebhookError::TooManyRequests { .. })) => None,
            Err(error) => return Err(error),
        };
        Ok(Some(Obstacle { cause: Cause::Filtered, detail }))
    }

    /// The newest failed and retrying deliveries, among those that one page of a list reads.
    async fn failures(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        kept: KeyRange,
        now: Time,
    ) -> Result<Vec<FailedDelivery>, DeliveryError> {
        let statuses = vec![Status::Failed, Status::Retrying];
        let filters = Filters { statuses, webhook: Some(webhook.clone()), ..Filters::default() };
        let (found, _) = self.deliveries.page(entity, &filters, kept, None, FAILURES, now).await?;
        let whole = found.iter().map(|head| self.deliveries.with_attempts(entity, &head.delivery().id, now));
        Ok(try_join_all(whole).await?.into_iter().flatten().filter_map(FailedDelivery::of).collect())
    }
}

/// A sentence with the outcome of a filter's dry run.
fn outcome(unmatched: usize, wanted: usize) -> String {
    match (unmatched, wanted) {
        (_, 0) => "No recent event of this webhook's types is stored, so the filter could not be tried.".to_owned(),
        (0, wanted) => format!("The last {wanted} stored events of this webhook's types all matched the filter."),
        (unmatched, wanted) => {
            format!("{unmatched} of the last {wanted} stored events of this webhook's types did not match the filter.")
        }
    }
}

impl Obstacle {
    /// A feed that has deliveries but no reader.
    fn of_feed(webhook: &WebhookView, now: Time) -> Option<Self> {
        let oldest = webhook.without_reader_since(now)?;
        let read = match webhook.last_read() {
            Some(read) => format!("The feed was last read at {read}"),
            None => "The feed was never read".to_owned(),
        };
        let detail = format!("{read}, and its oldest delivery was published at {oldest}.");
        Some(Self { cause: Cause::Unread, detail: Some(detail) })
    }
}

impl FailedDelivery {
    /// `None` if the delivery has arrived since it was listed.
    fn of(mut whole: WholeDelivery) -> Option<Self> {
        let last_attempt = whole.attempts.pop()?;
        Some(Self { cause: Cause::of_attempt(&last_attempt.attempt)?, delivery: whole.delivery, last_attempt })
    }
}

/// Findings about what blocks a webhook or its deliveries, about its failures, and about its filter. The latest failure
/// in its health data may belong to a delivery that is not shown.
fn findings(
    obstacles: impl Iterator<Item = Obstacle>,
    last_failure: Option<Cause>,
    shown: impl Iterator<Item = Cause>,
    filter: Option<Obstacle>,
) -> Vec<Finding> {
    let mut causes = BTreeMap::from_iter(last_failure.map(|cause| (cause, 0)));
    for cause in shown {
        *causes.entry(cause).or_default() += 1;
    }
    let mut causes = Vec::from_iter(causes);
    causes.sort_by_key(|(_, failures)| Reverse(*failures));
    let of_obstacle = |Obstacle { cause, detail }| Finding { advice: cause.advice(), detail, failures: 0 };
    let of_failures = |(cause, failures): (Cause, _)| Finding { advice: cause.advice(), detail: None, failures };
    let of_failures = causes.into_iter().map(of_failures);
    obstacles.map(of_obstacle).chain(of_failures).chain(filter.map(of_obstacle)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(cause: Cause) -> Obstacle {
        Obstacle { cause, detail: None }
    }

    fn found(held_up_by: Option<Cause>, last_failure: Option<Cause>, shown: &[Cause]) -> Vec<(&'static str, usize)> {
        let findings = findings(held_up_by.map(obstacle).into_iter(), last_failure, shown.iter().copied(), None);
        findings.iter().map(|finding| (finding.advice.cause, finding.failures)).collect()
    }

    #[test]
    fn the_cause_for_the_whole_webhook_comes_first_then_the_most_frequent() {
        assert_eq!(found(None, None, &[]), []);
        let shown = [Cause::Broken, Cause::Timeout, Cause::Dns, Cause::Timeout];
        let expected = [("paused", 0), ("timeout", 2), ("dns", 1), ("broken", 1)];
        assert_eq!(found(Some(Cause::Paused), Some(Cause::Timeout), &shown), expected);
    }

    #[test]
    fn a_failure_that_only_the_health_knows_is_explained() {
        assert_eq!(found(None, Some(Cause::Tls), &[]), [("tls", 0)]);
        assert_eq!(
            found(Some(Cause::Disabled), Some(Cause::Gone), &[Cause::Broken]),
            [("disabled", 0), ("broken", 1), ("gone", 0)]
        );
    }

    #[test]
    fn the_filter_comes_last_with_the_number_of_events_that_it_keeps_back() {
        let filter = Obstacle { cause: Cause::Filtered, detail: Some(outcome(12, 100)) };
        let findings = findings([obstacle(Cause::Held)].into_iter(), None, [Cause::Dns].into_iter(), Some(filter));
        let causes: Vec<_> = findings.iter().map(|finding| finding.advice.cause).collect();
        assert_eq!(causes, ["held", "dns", "filtered"]);
        let said = findings[2].detail.as_deref();
        assert_eq!(said, Some("12 of the last 100 stored events of this webhook's types did not match the filter."));
        assert!(outcome(0, 7).contains("all matched the filter") && outcome(0, 0).contains("No recent event"));
    }
}
