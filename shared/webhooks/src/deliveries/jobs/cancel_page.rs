//! Cancelling the waiting deliveries of a removed webhook. Deliveries whose next attempt is due soon are left to that
//! attempt, which finds that there is no webhook.

use crate::deliveries::{
    jobs::{
        job::{PAGE, PageResult, count_done},
        passes::Passes,
    },
    state::index::IndexGroup,
    store::Deliveries,
};
use auth::EntityId;
use base::{Time, WebhookId};
use storage::TableError;

/// Works through a page of a removed webhook's deliveries.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    (entity, webhook): (&EntityId, &WebhookId),
    passes: &Passes,
    now: Time,
) -> Result<PageResult, TableError> {
    let pass = passes.next_pass(now);
    let page = deliveries.of_group(webhook, IndexGroup::Waiting, &pass.left, PAGE).await?;
    let waiting = page.found.len();
    let cancelled = count_done(page.found, |id| async move {
        Ok(deliveries.cancel_waiting(&id, webhook, entity, now).await?.is_done())
    })
    .await?;
    tracing::info!(webhookId = %webhook, cancelled, waiting, "cancelled one page of deliveries");
    Ok(PageResult::of_pass(pass, waiting > 0, page.end.as_ref(), now))
}
