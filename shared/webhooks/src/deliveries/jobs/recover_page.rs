//! Recovering a range of a webhook's failed, cancelled and waiting deliveries: they become due again, the oldest first.

use crate::{
    deliveries::{
        delivery::{CancelReason, MAX_ATTEMPTS},
        jobs::job::{JobItem, PAGE, PageResult, Part, Progress, count_done},
        store::{Deliveries, index_group::IndexGroup, item::HeadItem, skip_unreadable},
    },
    subscriptions::store::Webhooks,
};
use auth::AuthorizedEntity;
use base::{Clock, DeliveryId, Time, WebhookId};
use storage::TableError;

/// Works through a page; also returns the number of deliveries that it made due.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    webhooks: &Webhooks,
    (job, webhook): (&JobItem, &WebhookId),
    clock: &dyn Clock,
) -> Result<(PageResult, usize), TableError> {
    let entity = AuthorizedEntity::owning_delivery(job.entity.clone());
    let found = webhooks.find(&entity, webhook).await?;
    let Some(part) = job.part().filter(|_| found.is_some_and(|found| found.webhook.enabled)) else {
        // A delivery that became due now would be cancelled.
        tracing::info!(webhookId = %webhook, "a recovery ended: its webhook is removed or disabled");
        return Ok((PageResult::Over, 0));
    };
    let page = deliveries.of_group(webhook, part.group(), part.left(), PAGE).await?;
    let now = clock.now();
    let recovered = |id| {
        let part = &part;
        async move { recover(deliveries, job, part, &id, now).await }
    };
    let made_due = count_done(page.found, recovered).await?;
    let group = part.group().as_str();
    tracing::info!(webhookId = %webhook, group, madeDue = made_due, lookedAt = page.looked_at, "recovered a page");
    Ok((PageResult::Next(Progress::Recovered { part, up_to: page.end }), made_due))
}

/// Makes a delivery due now, unless its state has changed since the index listed it.
async fn recover(
    deliveries: &Deliveries,
    job: &JobItem,
    part: &Part,
    id: &DeliveryId,
    now: Time,
) -> Result<bool, TableError> {
    let consequence = "the delivery is not recovered, since its item cannot be read";
    let head = skip_unreadable(deliveries.head(id).await, id, consequence)?.flatten();
    let head = head.filter(|head| {
        let delivery = head.delivery();
        delivery.owner_identifier == job.entity && Some(&delivery.webhook_identifier) == job.webhook.as_ref()
    });
    if let Some(expired) = head.as_ref().filter(|head| !head.is_kept(now)) {
        // Otherwise the count of the remaining deliveries would never reach 0.
        deliveries.set_aside(expired, now).await?;
        return Ok(false);
    }
    let Some(head) = head.filter(|head| is_wanted(head, part, now)) else { return Ok(false) };
    let written = match part {
        Part::Failed(_) => deliveries.reopen_for_sweep(head.delivery(), now).await?,
        Part::Waiting(_) | Part::PutOff(_) => deliveries.expedite_for_sweep(&head, now).await?,
    };
    Ok(written.is_done())
}

/// Whether this part recovers the delivery.
fn is_wanted(head: &HeadItem, part: &Part, now: Time) -> bool {
    let delivery = head.delivery();
    if head.is_erased() || delivery.cancel_reason.is_some_and(CancelReason::forbids_recovery) {
        return false;
    }
    match part {
        Part::Failed(_) => {
            IndexGroup::of(delivery.status, delivery.attempt_count, delivery.next_attempt_date, now)
                == IndexGroup::Recoverable
        }
        // A put-off attempt belongs to the schedule; any other would be an additional attempt, which the limit forbids.
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
        queries::range::KeyRange,
        store::item::tests::{LATER, NOW, head},
    };
    use auth::EntityId;
    use base::testing::CountingRandom;

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
    fn each_part_recovers_its_kind_and_no_delivery_under_way() {
        let waiting = |put_off, attempt_count| {
            let mut head = HeadItem { claimable_at: Some(LATER), put_off, ..head() };
            head.delivery.next_attempt_date = Some(LATER);
            head.delivery.attempt_count = attempt_count;
            head
        };
        assert_eq!(wanted(&waiting(false, 2)), [false, true, false]);
        assert_eq!(wanted(&waiting(true, 2)), [false, true, true]);
        assert_eq!(wanted(&waiting(false, MAX_ATTEMPTS)), [false; 3], "it has had all that may be asked for");
        assert_eq!(wanted(&waiting(true, MAX_ATTEMPTS)), [false, true, true], "its schedule has this attempt anyway");
        assert_eq!(wanted(&HeadItem { lease: Some("worker".into()), ..waiting(true, 2) }), [false; 3]);
        assert_eq!(wanted(&HeadItem { claimable_at: Some(NOW), ..waiting(true, 2) }), [false; 3], "it is due");
        let mut failed = HeadItem { claimable_at: None, ..waiting(false, 2) };
        failed.delivery.status = Status::Failed;
        failed.delivery.next_attempt_date = None;
        assert_eq!(wanted(&failed), [true, false, false]);
        failed.delivery.cancel_reason = Some(CancelReason::Owner);
        assert_eq!(wanted(&failed), [false; 3], "its owner cancelled it");
        failed.delivery.cancel_reason = Some(CancelReason::WebhookDisabled);
        assert_eq!(wanted(&failed), [true, false, false], "its webhook is enabled again");
    }
}
