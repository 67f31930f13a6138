//! A page of a pass over a changed webhook's deliveries. A delivery whose attempt was under way may begin to wait after
//! the first pass, so [`Passes`] goes through them again.

use crate::deliveries::{
    jobs::{
        job::{JobItem, PAGE, PageResult, Progress, count_done},
        passes::{Pass, Passes},
        worker::Worker,
    },
    state::{Wait, head::Head, index::IndexGroup},
    store::{Deliveries, skip_unreadable},
};
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

impl Worker {
    /// Works through a page of a pass; also returns the number of deliveries that it made due.
    pub(super) async fn pass_page(
        &self,
        pass: Pass,
        (job, webhook): (&JobItem, &WebhookId),
        passes: &Passes,
    ) -> Result<(PageResult, usize), TableError> {
        let now = self.clock.now();
        if let Some(result) = self.result_without_page(pass, (job, webhook), now).await? {
            return Ok((result, 0));
        }
        let (group, done) = match pass {
            Pass::Cancel => (IndexGroup::Waiting, "cancelled"),
            Pass::Release => (IndexGroup::Unread, "released"),
            Pass::Resume => (IndexGroup::Waiting, "resumed"),
        };
        let deliveries = &self.deliveries;
        let passes = passes.next_pass(now);
        let page = deliveries.of_group(webhook, group, &passes.left, PAGE).await?;
        let listed = page.found.len();
        let changed = count_done(page.found, |id| async move {
            match pass {
                Pass::Cancel => Ok(deliveries.cancel_waiting(&id, webhook, &job.entity, now).await?.is_done()),
                Pass::Release => deliveries.release_unread(&id, webhook, now).await,
                Pass::Resume => resume(deliveries, webhook, &id, now).await,
            }
        })
        .await?;
        tracing::info!(webhookId = %webhook, changed, lookedAt = page.looked_at, "{done} one page of deliveries");
        // The index also lists deliveries waiting for something other than the end of the pause.
        let has_found = if pass == Pass::Resume { changed > 0 } else { listed > 0 };
        let made_due = if pass == Pass::Cancel { 0 } else { changed };
        Ok((PageResult::of_pass(passes, has_found, page.end.as_ref(), now), made_due))
    }

    /// The result of a page for which no delivery is read, since the webhook has changed again.
    async fn result_without_page(
        &self,
        pass: Pass,
        (job, webhook): (&JobItem, &WebhookId),
        now: Time,
    ) -> Result<Option<PageResult>, TableError> {
        Ok(match pass {
            Pass::Cancel => None,
            Pass::Release => {
                let is_pulled = self.enabled_webhook(job, webhook).await?.is_some_and(|found| found.is_pulled());
                is_pulled.then_some(PageResult::Over)
            }
            Pass::Resume => match self.enabled_webhook(job, webhook).await? {
                // A delivery that became due now would be cancelled. Enabling the webhook writes another job.
                None => Some(PageResult::Over),
                // Its owner changed the end, or began another pause.
                Some(found) => found
                    .pause(now)
                    .map(|pause| pause.until.map_or(PageResult::Over, |end| PageResult::Wait(Progress::Seen, end))),
            },
        })
    }
}

/// Makes a delivery due now if it is waiting for the end of a pause.
async fn resume(deliveries: &Deliveries, webhook: &WebhookId, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
    let consequence = "the delivery's item cannot be read; the delivery is on hold until the dispatcher checks it";
    let head = skip_unreadable(deliveries.head(id).await, id, consequence)?.flatten();
    let waits = |head: &Head| {
        let is_paused = head.state.open().is_some_and(|open| open.wait == Wait::Pause);
        head.delivery().webhook_identifier == *webhook && is_paused && head.waits(now)
    };
    let Some(head) = head.filter(waits) else { return Ok(false) };
    Ok(deliveries.request_by_job(&head, now).await?.is_done())
}
