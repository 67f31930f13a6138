//! Recovering: a webhook's failed and cancelled deliveries of a range become due again, the oldest first.

use super::{
    job::{JobItem, PAGE, Piece, Progress, count_done},
    recover_ranges::Ranges,
};
use crate::{
    deliveries::{index_group::IndexGroup, item::HeadItem, store::Deliveries},
    subscriptions::store::Webhooks,
};
use auth::AuthorizedEntity;
use base::{Clock, DeliveryId, Time};
use storage::TableError;

/// Works through a page; the number is of the deliveries that are due now.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhooks: &Webhooks,
    job: &JobItem,
    ranges: &Ranges,
    clock: &dyn Clock,
) -> Result<(Piece, usize), TableError> {
    let entity = AuthorizedEntity::owning_delivery(job.entity.clone());
    let webhook = webhooks.find(&entity, &job.webhook).await?;
    let Some(range) = ranges.first().filter(|_| webhook.is_some_and(|found| found.webhook.enabled)) else {
        // A delivery that became due now would end as cancelled.
        tracing::info!(webhookId = %job.webhook, "a recovery ended: its webhook is gone or disabled");
        return Ok((Piece::Over, 0));
    };
    let page = deliveries.of_group(&job.webhook, IndexGroup::Recoverable, range.left(), PAGE).await?;
    let now = clock.now();
    let reopened = count_done(page.found, |id| async move { recover(deliveries, job, &id, now).await }).await?;
    tracing::info!(webhookId = %job.webhook, reopened, lookedAt = page.looked_at, "recovered a page");
    Ok((Piece::Next(Progress::Recovered { range: range.clone(), up_to: page.end }), reopened))
}

/// Makes a delivery due again, unless its state has changed since it stood in the index.
async fn recover(deliveries: &Deliveries, job: &JobItem, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
    let head = deliveries.head(id).await?;
    let delivery = head.as_ref().map(HeadItem::delivery).filter(|delivery| {
        let group = IndexGroup::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
        let is_its = delivery.owner_identifier == job.entity && delivery.webhook_identifier == job.webhook;
        is_its && group == Some(IndexGroup::Recoverable)
    });
    match delivery {
        Some(delivery) => Ok(deliveries.reopen_for_sweep(delivery, now).await?.is_done()),
        None => Ok(false),
    }
}
