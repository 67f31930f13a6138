//! Recovers a range of a webhook's failed, cancelled and waiting deliveries: they become due again, oldest first.

use crate::deliveries::{
    jobs::{
        job::{JobItem, PAGE, PageResult, Part, Progress, count_done},
        worker::Worker,
    },
    state::{Open, delivery::MAX_ATTEMPTS, head::Head, index::IndexGroup},
    store::{Deliveries, skip_unreadable},
};
use base::{DeliveryId, Time, WebhookId};
use storage::TableError;

impl Worker {
    /// Works through a page of a recovery; also returns the number of deliveries that it made due.
    pub(super) async fn recover_page(
        &self,
        job: &JobItem,
        webhook: &WebhookId,
    ) -> Result<(PageResult, usize), TableError> {
        let found = self.enabled_webhook(job, webhook).await?;
        let Some(part) = job.part().filter(|_| found.is_some()) else {
            // A delivery that became due now would be cancelled.
            tracing::info!(webhookId = %webhook, "the recovery stopped: its webhook was removed or disabled");
            return Ok((PageResult::Over, 0));
        };
        let deliveries = &self.deliveries;
        let page = deliveries.of_group(webhook, part.group(), part.left(), PAGE).await?;
        let now = self.clock.now();
        let recovered = |id| {
            let part = &part;
            async move { recover(deliveries, job, part, &id, now).await }
        };
        let made_due = count_done(page.found, recovered).await?;
        let group = part.group().as_str();
        tracing::info!(
            webhookId = %webhook,
            group,
            madeDue = made_due,
            lookedAt = page.looked_at,
            "rescheduled one page of deliveries"
        );
        Ok((PageResult::Next(Progress::Recovered { part, up_to: page.end }), made_due))
    }
}

/// Makes a delivery due now, unless its state has changed since the index listed it.
async fn recover(
    deliveries: &Deliveries,
    job: &JobItem,
    part: &Part,
    id: &DeliveryId,
    now: Time,
) -> Result<bool, TableError> {
    let consequence = "the delivery is not recovered because its item cannot be read";
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
    Ok(deliveries.request_by_job(&head, now).await?.is_done())
}

/// Whether this part recovers the delivery.
fn is_wanted(head: &Head, part: &Part, now: Time) -> bool {
    let is_put_off = head.state.open().is_some_and(Open::is_put_off);
    if head.is_erased() {
        return false;
    }
    match part {
        Part::Failed(_) => IndexGroup::of(head, now) == IndexGroup::Recoverable,
        // A postponed attempt belongs to the schedule; any other would be an additional attempt, which the limit
        // forbids.
        Part::Waiting(_) => head.waits(now) && (is_put_off || head.delivery.attempt_count < MAX_ATTEMPTS),
        Part::PutOff(_) => head.waits(now) && is_put_off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        jobs::{Include, RecoveryScope},
        queries::range::KeyRange,
        state::{
            State, Wait,
            delivery::CancelReason,
            head::tests::{LATER, NOW, head},
        },
    };
    use auth::EntityId;
    use base::testing::CountingRandom;

    /// One part of each kind.
    fn parts() -> [Part; 3] {
        let part = |include| {
            let webhook = WebhookId::new(NOW, &CountingRandom::default());
            let mut job = JobItem::recovery(&EntityId::parse("hotel").expect("an entity"), &webhook, NOW);
            job.ask(RecoveryScope { since: NOW, until: LATER, include }).expect("few");
            job.part().expect("asked for")
        };
        [part(Include::Failed), part(Include::Waiting), Part::PutOff(KeyRange::since(NOW))]
    }

    fn wanted(head: &Head) -> [bool; 3] {
        parts().map(|part| is_wanted(head, &part, NOW))
    }

    #[test]
    fn each_part_recovers_its_kind_and_no_delivery_under_way() {
        let waiting = |wait, attempt_count| {
            let mut head = head().waiting(LATER, wait);
            head.delivery.attempt_count = attempt_count;
            head
        };
        let retry = |attempt_count| waiting(Wait::Schedule, attempt_count);
        let put_off = |attempt_count| waiting(Wait::Breaker, attempt_count);
        assert_eq!(wanted(&retry(2)), [false, true, false]);
        assert_eq!(wanted(&put_off(2)), [false, true, true]);
        assert_eq!(wanted(&retry(MAX_ATTEMPTS)), [false; 3], "it has had all that may be asked for");
        assert_eq!(wanted(&put_off(MAX_ATTEMPTS)), [false, true, true], "its schedule has this attempt anyway");
        assert_eq!(wanted(&put_off(2).leased(LATER)), [false; 3]);
        assert_eq!(wanted(&put_off(2).waiting(NOW, Wait::Breaker)), [false; 3], "it is due");
        let ended = |state| wanted(&retry(2).with(state));
        assert_eq!(ended(State::Failed), [true, false, false]);
        assert_eq!(ended(State::Cancelled(CancelReason::Owner)), [false; 3], "its owner cancelled it");
        let disabled = ended(State::Cancelled(CancelReason::WebhookDisabled));
        assert_eq!(disabled, [true, false, false], "its webhook is enabled again");
    }
}
