//! Making the deliveries of a webhook due at the end of the pause that its owner began. A delivery whose attempt was under
//! way may begin to wait after the first pass, so the deliveries are looked through again.

use crate::{
    deliveries::{
        jobs::{
            job::{PAGE, PageResult, Progress, count_done},
            passes::Passes,
        },
        state::{Wait, head::Head, index::IndexGroup},
        store::{Deliveries, skip_unreadable},
    },
    subscriptions::webhook::store::Webhooks,
};
use auth::{AuthorizedEntity, EntityId};
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

/// Works through a page; also returns the number of deliveries that it made due.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhooks: &Webhooks,
    (entity, webhook): (&EntityId, &WebhookId),
    passes: &Passes,
    now: Time,
) -> Result<(PageResult, usize), TableError> {
    let owner = AuthorizedEntity::owning_delivery(entity.clone());
    let found = webhooks.find(&owner, webhook).await?.map(|found| found.webhook);
    // A delivery that became due now would be cancelled. Enabling the webhook writes another job.
    let Some(found) = found.filter(|found| found.enabled) else { return Ok((PageResult::Over, 0)) };
    if let Some(pause) = found.pause(now) {
        // Its owner changed the end, or began another pause.
        return Ok((pause.until.map_or(PageResult::Over, |end| PageResult::Wait(Progress::Seen, end)), 0));
    }
    let pass = passes.next_pass(now);
    let page = deliveries.of_group(webhook, IndexGroup::Waiting, &pass.left, PAGE).await?;
    let made_due = count_done(page.found, |id| async move { resume(deliveries, webhook, &id, now).await }).await?;
    tracing::info!(webhookId = %webhook, madeDue = made_due, lookedAt = page.looked_at, "resumed one page of deliveries");
    Ok((PageResult::of_pass(pass, made_due > 0, page.end.as_ref(), now), made_due))
}

/// Makes a delivery due now, unless it does not wait for the end of a pause.
async fn resume(deliveries: &Deliveries, webhook: &WebhookId, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
    let consequence = "the delivery waits until the dispatcher looks at it, since its item cannot be read";
    let head = skip_unreadable(deliveries.head(id).await, id, consequence)?.flatten();
    let waits = |head: &Head| {
        let is_paused = head.state.open().is_some_and(|open| open.wait == Wait::Pause);
        head.delivery().webhook_identifier == *webhook && is_paused && head.waits(now)
    };
    let Some(head) = head.filter(waits) else { return Ok(false) };
    Ok(deliveries.request_by_job(&head, now).await?.is_done())
}
