//! Recovering: a webhook's failed and cancelled deliveries of a range, and those that wait, become due again, the
//! oldest first.

use crate::{
    deliveries::{
        delivery::MAX_ATTEMPTS,
        jobs::job::{JobItem, PAGE, PageResult, Part, Progress, count_done},
        store::{Deliveries, index_group::IndexGroup, item::HeadItem},
    },
    subscriptions::store::Webhooks,
};
use auth::AuthorizedEntity;
use base::{Clock, DeliveryId, Time, logging};
use storage::TableError;

/// Works through a page; the number is of the deliveries that are due now.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhooks: &Webhooks,
    job: &JobItem,
    clock: &dyn Clock,
) -> Result<(PageResult, usize), TableError> {
    let entity = AuthorizedEntity::owning_delivery(job.entity.clone());
    let webhook = webhooks.find(&entity, &job.webhook).await?;
    let Some(part) = job.part().filter(|_| webhook.is_some_and(|found| found.webhook.enabled)) else {
        // A delivery that became due now would end as cancelled.
        tracing::info!(webhookId = %job.webhook, "a recovery ended: its webhook is gone or disabled");
        return Ok((PageResult::Over, 0));
    };
    let page = deliveries.of_group(&job.webhook, part.group(), part.left(), PAGE).await?;
    let now = clock.now();
    let recovered = |id| {
        let part = &part;
        async move { recover(deliveries, job, part, &id, now).await }
    };
    let made_due = count_done(page.found, recovered).await?;
    let group = part.group().as_str();
    tracing::info!(webhookId = %job.webhook, group, madeDue = made_due, lookedAt = page.looked_at, "recovered a page");
    Ok((PageResult::Next(Progress::Recovered { part, up_to: page.end }), made_due))
}

/// Makes a delivery due now, unless its state has changed since it stood in the index.
async fn recover(
    deliveries: &Deliveries,
    job: &JobItem,
    part: &Part,
    id: &DeliveryId,
    now: Time,
) -> Result<bool, TableError> {
    let head = match deliveries.head(id).await {
        // It stays unreadable, and must not keep the job from the deliveries behind it.
        Err(error @ TableError::Item { .. }) => {
            tracing::error!(error = %logging::chain(&error), deliveryId = %id, "not recovered");
            return Ok(false);
        }
        head => head?,
    };
    let head = head.filter(|head| {
        let delivery = head.delivery();
        delivery.owner_identifier == job.entity && delivery.webhook_identifier == job.webhook
    });
    let Some(head) = head.filter(|head| is_wanted(head, part, now)) else { return Ok(false) };
    let written = match part {
        Part::Failed(_) => deliveries.reopen_for_sweep(head.delivery(), now).await?,
        Part::Waiting(_) | Part::PutOff(_) => deliveries.hasten_for_sweep(&head, now).await?,
    };
    Ok(written.is_done())
}

/// Whether a delivery is one of those that this part recovers.
fn is_wanted(head: &HeadItem, part: &Part, now: Time) -> bool {
    let delivery = head.delivery();
    match part {
        Part::Failed(_) => {
            let group = IndexGroup::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now);
            group == Some(IndexGroup::Recoverable)
        }
        // An attempt that was put off is the schedule's own; any other is one more, of which there is a limit.
        Part::Waiting(_) => head.waits(now) && (head.put_off || delivery.attempt_count < MAX_ATTEMPTS),
        Part::PutOff(_) => head.waits(now) && head.put_off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        delivery::Status,
        jobs::{Include, RecoveryScope},
        queries::by_owner::KeyRange,
        store::item::tests::{LATER, NOW, head},
    };
    use auth::EntityId;
    use base::{WebhookId, testing::CountingRandom};

    /// A part of each kind.
    fn parts() -> [Part; 3] {
        let part = |include| {
            let webhook = WebhookId::new(NOW, &CountingRandom::default());
            let mut job = JobItem::recovery(&EntityId::parse("hotel").expect("an entity"), &webhook, NOW);
            job.ask(RecoveryScope { since: NOW, until: LATER, include }).expect("few");
            job.part().expect("asked for")
        };
        [part(Include::Failed), part(Include::Waiting), Part::PutOff(KeyRange::since(NOW))]
    }

    fn wanted(head: &HeadItem) -> [bool; 3] {
        parts().map(|part| is_wanted(head, &part, NOW))
    }

    #[test]
    fn each_part_takes_what_is_its_own_and_leaves_what_is_under_way() {
        let waiting = |put_off, attempt_count| {
            let mut head = HeadItem { claimable_at: Some(LATER), put_off, ..head() };
            (head.delivery.next_attempt_date, head.delivery.attempt_count) = (Some(LATER), attempt_count);
            head
        };
        assert_eq!(wanted(&waiting(false, 2)), [false, true, false]);
        assert_eq!(wanted(&waiting(true, 2)), [false, true, true]);
        assert_eq!(wanted(&waiting(false, MAX_ATTEMPTS)), [false; 3], "it has had all that may be asked for");
        assert_eq!(wanted(&waiting(true, MAX_ATTEMPTS)), [false, true, true], "its schedule has this attempt anyway");
        assert_eq!(wanted(&HeadItem { lease: Some("worker".into()), ..waiting(true, 2) }), [false; 3]);
        assert_eq!(wanted(&HeadItem { claimable_at: Some(NOW), ..waiting(true, 2) }), [false; 3], "it is due");
        let mut failed = HeadItem { claimable_at: None, ..waiting(false, 2) };
        (failed.delivery.status, failed.delivery.next_attempt_date) = (Status::Failed, None);
        assert_eq!(wanted(&failed), [true, false, false]);
    }
}
