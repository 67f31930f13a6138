//! Taking the deliveries out of a feed whose webhook is removed, disabled or no longer pulled. Each becomes due, and
//! the dispatcher sends it, cancels it, or puts it into the feed again. A delivery that a reader holds becomes due at
//! the end of its lease, unless the reader answers before.

use crate::{
    deliveries::{
        jobs::{
            job::{PAGE, PageResult, count_done},
            passes::Passes,
        },
        state::index::IndexGroup,
        store::Deliveries,
    },
    subscriptions::webhook::store::Webhooks,
};
use auth::{AuthorizedEntity, EntityId};
use base::{Time, WebhookId};
use storage::TableError;

/// Works through a page of a feed; also returns the number of deliveries that it made due.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhooks: &Webhooks,
    (entity, webhook): (&EntityId, &WebhookId),
    passes: &Passes,
    now: Time,
) -> Result<(PageResult, usize), TableError> {
    let owner = AuthorizedEntity::owning_delivery(entity.clone());
    let found = webhooks.find(&owner, webhook).await?.map(|found| found.webhook);
    if found.is_some_and(|found| found.enabled && found.is_pulled()) {
        return Ok((PageResult::Over, 0));
    }
    let pass = passes.next_pass(now);
    let page = deliveries.of_group(webhook, IndexGroup::Unread, &pass.left, PAGE).await?;
    let unread = page.found.len();
    let released =
        count_done(page.found, |id| async move { deliveries.release_unread(&id, webhook, now).await }).await?;
    tracing::info!(webhookId = %webhook, released, unread, "released one page of feed deliveries");
    Ok((PageResult::of_pass(pass, unread > 0, page.end.as_ref(), now), released))
}
