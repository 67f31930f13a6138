//! Diagnosis of a webhook: its status, its statistics, its last failures, and the remedy for each cause.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use serde::Serialize;

use crate::{
    deliveries::{
        attempt::Attempt,
        delivery::{Delivery, Status, WholeDelivery},
        error::DeliveryError,
        queries::{
            advice::{Advice, Cause},
            by_webhook::Counted,
            filters::Filters,
            range::KeyRange,
        },
        store::{Deliveries, StoredHead, index_group::IndexGroup},
    },
    subscriptions::{WebhookView, show::Showing, stats::WebhookStats},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

/// How many of the newest failures are shown.
const FAILURES: usize = 5;
/// How many of the oldest waiting deliveries are looked at.
const WAITING: i32 = 5;
/// The limit up to which recoverable and waiting deliveries are counted.
const MAX_COUNT: usize = 1_000;

/// Diagnoses webhooks.
pub struct Diagnosing {
    /// Shows webhooks, their health and their statistics.
    pub showing: Showing,
    /// Their deliveries.
    pub deliveries: Deliveries,
    /// The retention: older deliveries count as gone, though the table may keep them for days.
    pub retention: Duration,
}

/// The diagnosis of a webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    webhook: WebhookView,
    stats: WebhookStats,
    /// Failed and cancelled deliveries that can be recovered.
    recoverable: Recoverable,
    /// Deliveries that wait for an attempt that is more than a minute away, or for the end of a pause.
    waiting: Counted,
    /// The causes that hold up the whole webhook or some deliveries, then those of failed attempts, the most frequent
    /// first.
    findings: Vec<Finding>,
    /// The newest failures first.
    failures: Vec<FailedDelivery>,
}

/// Recoverable deliveries, and the time from which a recovery finds all of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recoverable {
    #[serde(flatten)]
    counted: Counted,
    /// When the oldest was created; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_created_date: Option<Time>,
}

/// A cause, and how many of the shown failures have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Finding {
    #[serde(flatten)]
    advice: Advice,
    failures: usize,
}

/// A delivery that has not arrived, with its last attempt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedDelivery {
    #[serde(flatten)]
    delivery: Delivery,
    cause: Cause,
    last_attempt: Attempt,
}

impl Diagnosing {
    /// Diagnoses a webhook of the entity.
    ///
    /// # Errors
    /// [`WebhookError::NotFound`](crate::subscriptions::WebhookError::NotFound), when the entity has no such webhook.
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
                self.holds_deliveries(id, &kept),
            );
            counts.map_err(DeliveryError::from)
        };
        let ((counted, oldest, waiting, is_held), failures) =
            tokio::try_join!(counts, self.failures(entity, id, kept.clone(), now))?;
        let oldest_created_date = oldest.found.first().map(DeliveryId::time);
        let recoverable = Recoverable { counted, oldest_created_date };
        let held_up_by = webhook.held_up_by().into_iter().chain(is_held.then_some(Cause::Held));
        let findings = findings(held_up_by, webhook.last_failure(), failures.iter().map(|failure| failure.cause));
        Ok(Diagnosis { webhook, stats, recoverable, waiting, findings, failures })
    }

    /// Whether one of the oldest waiting deliveries is held until another is final.
    async fn holds_deliveries(&self, webhook: &WebhookId, kept: &KeyRange) -> Result<bool, TableError> {
        let waiting = self.deliveries.of_group(webhook, IndexGroup::Waiting, kept, WAITING).await?;
        let heads = self.deliveries.heads(&waiting.found).await?;
        Ok(heads.into_iter().filter_map(StoredHead::head).any(|head| head.delivery.held_by.is_some()))
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

impl FailedDelivery {
    /// `None` when it has arrived since it was listed.
    fn of(mut whole: WholeDelivery) -> Option<Self> {
        let last_attempt = whole.attempts.pop()?;
        Some(Self { cause: Cause::of_attempt(&last_attempt)?, delivery: whole.delivery, last_attempt })
    }
}

/// The findings on what holds up a webhook or its deliveries, and on its failures. The last failure in its health may
/// belong to a delivery that is not shown.
fn findings(
    held_up_by: impl Iterator<Item = Cause>,
    last_failure: Option<Cause>,
    shown: impl Iterator<Item = Cause>,
) -> Vec<Finding> {
    let mut causes = BTreeMap::from_iter(last_failure.map(|cause| (cause, 0)));
    for cause in shown {
        *causes.entry(cause).or_default() += 1;
    }
    let mut causes = Vec::from_iter(causes);
    causes.sort_by_key(|(_, failures)| Reverse(*failures));
    let held_up_by = held_up_by.map(|cause| (cause, 0));
    held_up_by.chain(causes).map(|(cause, failures)| Finding { advice: cause.advice(), failures }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(held_up_by: Option<Cause>, last_failure: Option<Cause>, shown: &[Cause]) -> Vec<(&'static str, usize)> {
        let findings = findings(held_up_by.into_iter(), last_failure, shown.iter().copied());
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
}
