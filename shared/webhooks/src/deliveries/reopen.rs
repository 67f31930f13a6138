//! Asking for a delivery again: a final one gets a fresh schedule, and one that waits for its next attempt gets one more in
//! between, which takes nothing away from its schedule.
//!
//! Every change is on condition of what was seen before. So of several requests at the same moment one has an effect, and
//! the others find that what they ask for is done.

use std::time::Duration;

use http::StatusCode;
use tokio::time::timeout;

use super::{
    Deliveries, Delivery, GRACE, Status,
    by_webhook::Group,
    delivery::{MAX_ATTEMPTS, WholeDelivery},
    item::{HEAD, HeadItem, due_shard, partition},
    queue::{DueMessage, Lane, Notice, Queue, QueueError},
};
use crate::subscriptions::{
    Webhooks,
    problems::{webhook_disabled, webhook_removed},
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::{SharedClock, Time},
    ids::{DeliveryId, WebhookId},
    logging,
};
use gate::{EntityCall, Reply};
use problem::{Problem, nothing_said};
use storage::table::{Executed, Statement, TableError, number, read_item, text};

const LOOKING: &str = "looking at the head of a delivery";
const REOPENING: &str = "reopening a delivery";

/// How long telling the queue may take: the delivery is due already, and the sweep announces what the queue was not told.
const ANNOUNCEMENT_LIMIT: Duration = Duration::from_secs(2);

/// Everything that resending needs.
pub struct Resending {
    /// What is to be sent again.
    pub deliveries: Deliveries,
    /// Where it is to be sent.
    pub webhooks: Webhooks,
    /// Where the dispatcher listens.
    pub queue: Queue,
    /// The clock.
    pub clock: SharedClock,
}

/// What there is to do for a delivery that is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is final: a fresh schedule.
    Reopen,
    /// Its next attempt is due later: one more now.
    AttemptNow,
    /// It is due, and perhaps waits for its message.
    Announce,
    /// Somebody is making the attempt.
    Nothing,
}

impl Step {
    fn of(head: &HeadItem, now: Time) -> Self {
        match head.claimable_at {
            None => Self::Reopen,
            Some(time) if time <= now => Self::Announce,
            Some(_) if head.lease.is_some() => Self::Nothing,
            Some(_) => Self::AttemptNow,
        }
    }
}

impl Resending {
    /// Answers a request to send a delivery again.
    pub async fn resend(&self, call: &EntityCall) -> Result<Reply, Problem> {
        nothing_said(&call.body)?;
        let (entity, id) = (&call.entity, call.delivery_id()?);
        let whole = self.deliveries.with_attempts(entity, &id, self.clock.now()).await?;
        let whole = whole.ok_or_else(Problem::delivery_not_found)?;
        sendable(&self.webhooks, entity, &whole.delivery.webhook_identifier, webhook_removed).await?;
        let Some(head) = self.deliveries.head(&id).await? else { return Err(Problem::delivery_not_found()) };
        if head.delivery.attempt_count >= MAX_ATTEMPTS {
            return Err(Problem::too_many_attempts(MAX_ATTEMPTS));
        }
        let now = self.clock.now();
        let step = Step::of(&head, now);
        let changed = match step {
            Step::Reopen => self.deliveries.change(reopening(&head.delivery, now, now + GRACE)).await?,
            Step::AttemptNow => self.deliveries.change(attempt_now(&head, now)).await?,
            Step::Announce | Step::Nothing => None,
        };
        if changed.is_some() || step == Step::Announce {
            self.announce(&head.delivery, now).await;
        }
        tracing::info!(deliveryId = %id, step = ?step, done = changed.is_some(), "asked for again");
        Reply::json(StatusCode::ACCEPTED, &self.view(entity, whole, changed).await?)
    }

    /// The delivery as the request has left it: what became of it since is for the next one who looks.
    async fn view(
        &self,
        entity: &AuthorizedEntity,
        seen: WholeDelivery,
        changed: Option<Delivery>,
    ) -> Result<WholeDelivery, Problem> {
        match changed {
            Some(delivery) if delivery.attempt_count == seen.delivery.attempt_count => {
                Ok(WholeDelivery { delivery, ..seen })
            }
            // Nothing was to be changed, or it has changed since it was seen.
            _ => {
                let now = self.deliveries.with_attempts(entity, &seen.delivery.id, self.clock.now()).await?;
                now.ok_or_else(Problem::delivery_not_found)
            }
        }
    }

    async fn announce(&self, delivery: &Delivery, now: Time) {
        let message = DueMessage { delivery: delivery.id.clone(), attempt: delivery.attempt_count.saturating_add(1) };
        let notice = Notice::new(message, delivery.owner_identifier.clone(), delivery.webhook_identifier.clone());
        // A dispatcher looks whether it belongs there.
        let announced = self.queue.announce(Lane::Quick, notice, now, now);
        if let Err(error) = timeout(ANNOUNCEMENT_LIMIT, announced).await.unwrap_or(Err(QueueError::Late)) {
            tracing::warn!(error = %logging::chain(&error), deliveryId = %delivery.id, "not announced; the sweep will find it");
        }
    }
}

/// Whether anything can be sent to a webhook: it is there (or the Problem that it is not), and enabled.
pub(super) async fn sendable(
    webhooks: &Webhooks,
    entity: &AuthorizedEntity,
    webhook: &WebhookId,
    missing: fn() -> Problem,
) -> Result<(), Problem> {
    let found = webhooks.find(entity, webhook).await?.ok_or_else(missing)?;
    if found.webhook.enabled { Ok(()) } else { Err(webhook_disabled()) }
}

/// A final delivery becomes open, with a fresh schedule that begins now; the sweep looks after it from `due` on. It is kept as
/// long as before: what is past its time stays as it is.
fn reopening(seen: &Delivery, now: Time, due: Time) -> Statement {
    Statement::update(partition(&seen.id), HEAD)
        .set("status", text(Status::Pending.as_str()))
        .set("scheduleBase", number(seen.attempt_count))
        .set("nextAttemptDate", text(now))
        .set("claimableAt", text(now))
        .set("dueShard", text(due_shard(&seen.id)))
        .set("dueAt", text(due))
        .set("sweeps", number(0))
        .set("lastUpdate", text(now))
        .remove("putOff")
        .remove("webhookKey")
        .only_if("status", "=", text(seen.status.as_str()))
        .only_if("attemptCount", "=", number(seen.attempt_count))
        .only_if("expiresAt", ">", number(now.as_seconds()))
}

/// An open delivery's next attempt becomes due now, and what its schedule had is remembered. One that was put off is itself
/// that of the schedule: it waits for nothing that the schedule has.
fn attempt_now(seen: &HeadItem, now: Time) -> Statement {
    let scheduled = seen.delivery.next_attempt_date.filter(|_| seen.resume_at.is_none() && !seen.put_off);
    let statement = Statement::update(&seen.pk, HEAD)
        .set_if("resumeAt", scheduled.map(text))
        .set("nextAttemptDate", text(now))
        .set("claimableAt", text(now))
        .set("dueAt", text(now + GRACE))
        .set("sweeps", number(0))
        .set("lastUpdate", text(now))
        .only_if("attemptCount", "=", number(seen.delivery.attempt_count))
        .only_if("expiresAt", ">", number(now.as_seconds()))
        .only_without("lease");
    seen.claimable_at.iter().fold(statement, |statement, time| statement.only_if("claimableAt", "=", text(time)))
}

impl Deliveries {
    /// The head of a delivery, as it is at this moment.
    pub(super) async fn head(&self, id: &DeliveryId) -> Result<Option<HeadItem>, TableError> {
        self.table.read((partition(id), HEAD.to_owned()), LOOKING).await
    }

    /// Makes a delivery that is over due again, and leaves its announcement to the sweep; false when it is not as it was seen.
    pub(super) async fn reopen(&self, seen: &Delivery, now: Time) -> Result<bool, TableError> {
        Ok(self.change(reopening(seen, now, now)).await?.is_some())
    }

    /// Ends a delivery that waits for a webhook that is gone; one that is claimed at this moment is left to its worker.
    pub(super) async fn cancel_waiting(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<bool, TableError> {
        let cancelled = Statement::update(partition(id), HEAD)
            .set("status", text(Status::Cancelled.as_str()))
            .set("lastUpdate", text(now))
            .remove("nextAttemptDate")
            .remove("claimableAt")
            .remove("resumeAt")
            .remove("dueShard")
            .remove("dueAt")
            // Nothing of a webhook that is gone is recovered.
            .remove("webhookKey")
            .only_if("webhookKey", "=", text(Group::Waiting.key(webhook)))
            // Any time will do: one that is final has none.
            .only_if("claimableAt", ">", text(Time::from_millis(0)))
            .only_without("lease");
        if self.change(cancelled).await?.is_some() {
            return Ok(true);
        }
        // An earlier release, after a roll-back, may have ended it and left it among those that wait.
        let stale = Statement::update(partition(id), HEAD)
            .remove("webhookKey")
            .only_if("webhookKey", "=", text(Group::Waiting.key(webhook)))
            .only_without("claimableAt");
        self.change(stale).await?;
        Ok(false)
    }

    /// Changes a head; gives the delivery as it is then, or nothing if it was not as it was seen.
    async fn change(&self, statement: Statement) -> Result<Option<Delivery>, TableError> {
        match self.table.execute(statement).await? {
            Executed::Done(item) => read_item(item.unwrap_or_default(), REOPENING).map(Some),
            Executed::ConditionLost(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::{Event, catalogue},
        subscriptions::Webhook,
    };
    use auth::entity::EntityId;
    use base::{ids::EventId, testing::CountingRandom};
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    const NOW: Time = Time::from_millis(1_795_167_900_000);
    const LATER: Time = Time::from_millis(1_795_167_960_000);

    fn head() -> HeadItem {
        let (random, entity) = (CountingRandom::default(), EntityId::parse("hotel").expect("an entity"));
        let data = RawValue::from_string("{}".to_owned()).expect("JSON");
        let kind = catalogue::find("booking.created").expect("it exists");
        let event = Event::new(EventId::new(NOW, &random), kind, NOW, entity.clone(), &data).expect("small");
        let webhook = webhook(WebhookId::new(NOW, &random), entity);
        HeadItem::new(&event, &webhook, NOW, Duration::from_secs(60))
    }

    fn webhook(id: WebhookId, owner_identifier: EntityId) -> Webhook {
        let mut webhook = serde_json::json!({
            "createdDate": NOW, "enabled": true, "eventList": [], "eventUrl": "https://hooks.example.com/",
            "headers": BTreeMap::<String, String>::new(), "id": id, "lastUpdate": NOW, "name": "test",
            "ownerIdentifier": owner_identifier, "version": 1,
        });
        serde_json::from_value(webhook.take()).expect("a webhook")
    }

    #[test]
    fn what_there_is_to_do_depends_on_where_the_delivery_stands() {
        let at =
            |claimable_at, lease: Option<&str>| HeadItem { claimable_at, lease: lease.map(str::to_owned), ..head() };
        assert_eq!(Step::of(&at(None, None), NOW), Step::Reopen);
        assert_eq!(Step::of(&at(Some(LATER), None), NOW), Step::AttemptNow);
        assert_eq!(Step::of(&at(Some(NOW), None), NOW), Step::Announce);
        assert_eq!(Step::of(&at(Some(LATER), Some("worker")), NOW), Step::Nothing);
        assert_eq!(Step::of(&at(Some(NOW), Some("dead worker")), NOW), Step::Announce);
    }

    #[test]
    fn a_pause_that_a_breaker_makes_is_no_time_of_the_schedule_to_go_on_at() {
        let waiting = || {
            let mut head = HeadItem { claimable_at: Some(LATER), ..head() };
            head.delivery.next_attempt_date = Some(LATER);
            head
        };
        let resumes = |head: &HeadItem| format!("{:?}", attempt_now(head, NOW)).contains("resumeAt");
        assert!(resumes(&waiting()));
        assert!(!resumes(&HeadItem { put_off: true, ..waiting() }), "it is itself the attempt of the schedule");
        assert!(!resumes(&HeadItem { resume_at: Some(LATER), ..waiting() }), "what is remembered stays");
    }

    #[test]
    fn what_is_past_its_time_counts_as_gone_at_its_last_second() {
        let head = head();
        assert!(head.is_kept(NOW + Duration::from_millis(59_999)));
        assert!(!head.is_kept(NOW + Duration::from_secs(60)));
    }
}
