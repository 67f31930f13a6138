//! Recovering: a webhook's failed and cancelled deliveries of a range become due again, the oldest first.

use futures::{StreamExt, stream};

use super::{CHANGES_AT_ONCE, JobItem, PAGE, Piece, Ranges, Work, Worker};
use crate::deliveries::{by_webhook::Group, item::HeadItem};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, ids::DeliveryId};
use storage::table::TableError;

impl Worker {
    /// Works through a page; says with what became of the job how many deliveries are due now.
    pub(super) async fn recover_page(&self, job: &JobItem, ranges: &Ranges) -> Result<(Piece, usize), TableError> {
        let entity = AuthorizedEntity::owning_delivery(job.entity.clone());
        let webhook = self.webhooks.find(&entity, &job.webhook).await?;
        let Some(range) = ranges.first().filter(|_| webhook.is_some_and(|found| found.webhook.enabled)) else {
            // Whatever became due now would end as cancelled.
            tracing::info!(webhookId = %job.webhook, "a recovery ended: its webhook is gone or disabled");
            return Ok((Piece::Over, 0));
        };
        let page = self.deliveries.of_group(&job.webhook, Group::Recoverable, range.left(), PAGE).await?;
        let now = self.clock.now();
        let reopenings = stream::iter(page.found).map(|id| async move { self.recover_one(job, &id, now).await });
        let outcomes: Vec<_> = reopenings.buffer_unordered(CHANGES_AT_ONCE).collect().await;
        let mut reopened = 0;
        for outcome in outcomes {
            reopened += usize::from(outcome?);
        }
        tracing::info!(webhookId = %job.webhook, reopened, lookedAt = page.looked_at, "recovered a page");
        let (range, end) = (range.clone(), page.end);
        let change = move |work: &mut Work| {
            if let Work::Recover(ranges) = work {
                ranges.done(&range, end.as_ref());
            }
        };
        Ok((Piece::Next(Box::new(change)), reopened))
    }

    /// Makes a delivery due again, unless it is another than the index says.
    async fn recover_one(&self, job: &JobItem, id: &DeliveryId, now: Time) -> Result<bool, TableError> {
        let head = self.deliveries.head(id).await?;
        let delivery = head.as_ref().map(HeadItem::delivery).filter(|delivery| {
            let group = Group::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
            let is_its = delivery.owner_identifier == job.entity && delivery.webhook_identifier == job.webhook;
            is_its && group == Some(Group::Recoverable)
        });
        match delivery {
            Some(delivery) => self.deliveries.reopen(delivery, now).await,
            None => Ok(false),
        }
    }
}
