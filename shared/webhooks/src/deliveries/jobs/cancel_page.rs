//! Cancelling: the deliveries that wait for a webhook that was removed end. Those whose next attempt is due soon are
//! left to that attempt, which finds that there is no webhook.

use crate::deliveries::{
    jobs::{
        cancel_progress::Cancellation,
        job::{PAGE, PageResult, Progress, count_done},
    },
    store::{Deliveries, index_group::IndexGroup},
};
use base::{Time, WebhookId};
use storage::TableError;

/// Works through a page of a removed webhook's deliveries.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhook: &WebhookId,
    cancellation: &Cancellation,
    now: Time,
) -> Result<PageResult, TableError> {
    let looking = cancellation.looking(now);
    let page = deliveries.of_group(webhook, IndexGroup::Waiting, &looking.left, PAGE).await?;
    let waiting = page.found.len();
    let cancelled =
        count_done(page.found, |id| async move { Ok(deliveries.cancel_waiting(&id, webhook, now).await?.is_done()) })
            .await?;
    tracing::info!(webhookId = %webhook, cancelled, waiting, "cancelled a page");
    let looked = looking.looked(waiting > 0, page.end.as_ref());
    let is_over = looked.left.is_empty() && !looked.is_done();
    let next = looked.next(now);
    let progress = Progress::Cancelled(looked);
    Ok(if is_over { PageResult::Wait(progress, next) } else { PageResult::Next(progress) })
}
