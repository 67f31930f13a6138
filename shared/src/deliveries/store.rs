//! Deliveries in the table. Every change is conditional, so that whatever comes twice, late or out of order changes
//! nothing that it must not.

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{
        AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, Put, ReturnValue, TransactWriteItem, Update,
    },
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{
    Attempt, GRACE, LEASE, Status,
    delivery::{Claimed, WholeDelivery},
    item::{ATTEMPT, AttemptItem, DueEntry, HEAD, HeadItem, partition, shard_key},
    queue::MAX_DELAY,
    schedule::Next,
};
use crate::{
    auth::entity::AuthorizedEntity,
    clock::Time,
    events::{Event, store::Events},
    ids::DeliveryId,
    table::{Item, PAUSES, Table, TableError, Transacted, number, passing_code, read_item, text, write_item},
    webhooks::Webhook,
};

/// As many statements as one call takes.
const BATCH: usize = 25;
/// As many calls at once as one publish may make.
const CALLS_AT_ONCE: usize = 8;
/// How much earlier than its time an attempt may be claimed: what the clocks of two machines may be apart.
const CLOCK_SKEW: std::time::Duration = std::time::Duration::from_secs(1);

/// The deliveries in the table.
#[derive(Debug, Clone)]
pub struct Deliveries {
    table: Table,
    events: Events,
}

/// What came of a claim.
#[derive(Debug)]
pub enum Claim {
    /// The attempt is the caller's to make.
    Started(Box<Claimed>),
    /// It was made already, somebody else is making it, it is not due yet, or the delivery is final or gone.
    NotNow,
}

/// What came of recording an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is in the history, and the delivery stands where the outcome puts it.
    Yes,
    /// The claim had run out, and somebody else made the attempt as well. Theirs counts.
    ClaimLost,
}

impl Deliveries {
    /// The deliveries in this table.
    pub fn new(table: Table) -> Self {
        Self { events: Events::new(table.clone()), table }
    }

    /// Opens one delivery of the event for each webhook. One that exists already stays as it is.
    ///
    /// The event's body must be kept before: a head never lacks its body.
    pub async fn open_for_event(
        &self,
        entity: &AuthorizedEntity,
        event: &Event,
        webhooks: impl IntoIterator<Item = &Webhook>,
        first_attempt: Time,
    ) -> Result<(), TableError> {
        debug_assert_eq!(entity.id(), &event.entity);
        let heads = webhooks
            .into_iter()
            .map(|webhook| HeadItem::new(DeliveryId::of(&event.id, &webhook.id), event, webhook, first_attempt));
        let heads: Vec<Item> = heads.map(|head| write_item(&head, OPENING)).collect::<Result<_, _>>()?;
        let batches: Vec<Vec<Item>> = heads.chunks(BATCH).map(<[Item]>::to_vec).collect();
        let batches = stream::iter(batches).map(|batch| async move { self.insert(&batch).await });
        batches.buffer_unordered(CALLS_AT_ONCE).try_collect().await
    }

    /// Inserts items that do not exist yet: one round trip at the price of single writes, each with its own outcome. What
    /// the table could not take at the moment is tried again, and only that.
    async fn insert(&self, items: &[Item]) -> Result<(), TableError> {
        let mut statements = items.iter().map(|item| self.insertion(item)).collect::<Result<Vec<_>, _>>()?;
        let mut pauses = PAUSES.iter();
        loop {
            let call = self.table.client.batch_execute_statement().set_statements(Some(statements.clone()));
            let answer = call.send().await.map_err(TableError::sdk(OPENING))?;
            let mut again = Vec::new();
            for (statement, response) in statements.into_iter().zip(answer.responses.unwrap_or_default()) {
                match response.error.and_then(|error| error.code) {
                    None | Some(BatchStatementErrorCodeEnum::DuplicateItem) => {}
                    Some(code) if passing_code(code.as_str()) => again.push(statement),
                    Some(code) => return Err(TableError::code(OPENING, code.as_str())),
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            let Some(pause) = pauses.next() else { return Err(TableError::code(OPENING, "ThrottlingError")) };
            sleep(*pause).await;
            statements = again;
        }
    }

    fn insertion(&self, item: &Item) -> Result<BatchStatementRequest, TableError> {
        let names: Vec<_> = item.keys().collect();
        let members = names.iter().map(|name| format!("'{name}': ?")).collect::<Vec<_>>().join(", ");
        let parameters = names.iter().map(|name| item[*name].clone()).collect();
        BatchStatementRequest::builder()
            .statement(format!("INSERT INTO \"{}\" VALUE {{{members}}}", self.table.name))
            .set_parameters(Some(parameters))
            .build()
            .map_err(|error| TableError::Refused { doing: OPENING, source: error.into() })
    }

    /// A delivery with its event and its whole attempt history; `None` when the entity has none of this identifier.
    pub async fn with_attempts(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
    ) -> Result<Option<WholeDelivery>, TableError> {
        const DOING: &str = "reading a delivery with its attempts";
        let (mut head, mut attempts) = (None, Vec::new());
        for item in self.table.partition(partition(id), None, DOING).await? {
            match item.get("sk").and_then(|sk| sk.as_s().ok()) {
                Some(sk) if sk == HEAD => head = Some(read_item::<HeadItem>(item, DOING)?),
                Some(sk) if sk.starts_with(ATTEMPT) => attempts.push(read_item::<AttemptItem>(item, DOING)?.attempt),
                _ => {}
            }
        }
        let Some(head) = head.filter(|head| head.delivery.owner_identifier == *entity.id()) else {
            return Ok(None);
        };
        // They are kept equally long, but not to the second.
        let Some(body) = self.events.body(&head.event).await? else { return Ok(None) };
        let event = RawValue::from_string(body).map_err(|_| TableError::Missing("well-formed JSON in an event"))?;
        Ok(Some(WholeDelivery { delivery: head.delivery, attempts, event }))
    }

    /// Claims an attempt: for the length of a lease it is the caller's alone. If the caller dies, the sweep finds the
    /// delivery when the lease is over.
    pub async fn claim(&self, id: &DeliveryId, attempt: u32, lease: String, now: Time) -> Result<Claim, TableError> {
        const DOING: &str = "claiming an attempt";
        let until = (now + LEASE).to_string();
        let update = self
            .update_head(id)
            .update_expression("SET lease = :lease, leaseUntil = :until, dueAt = :until, sweeps = :none")
            .condition_expression(
                "#status IN (:pending, :retrying) AND attemptCount = :made \
                 AND (attribute_not_exists(leaseUntil) OR leaseUntil <= :now OR lease = :lease) \
                 AND nextAttemptDate <= :soon",
            )
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":lease", AttributeValue::S(lease.clone()))
            .expression_attribute_values(":until", AttributeValue::S(until))
            .expression_attribute_values(":none", number(0))
            .expression_attribute_values(":pending", text(Status::Pending.as_str()))
            .expression_attribute_values(":retrying", text(Status::Retrying.as_str()))
            .expression_attribute_values(":made", number(attempt.saturating_sub(1)))
            .expression_attribute_values(":now", text(now))
            .expression_attribute_values(":soon", text(now + CLOCK_SKEW))
            .return_values(ReturnValue::AllNew);
        let head: HeadItem = match update.send().await {
            Ok(answer) => read_item(answer.attributes.unwrap_or_default(), DOING)?,
            Err(error) if lost(error.as_service_error()) => return Ok(Claim::NotNow),
            Err(error) => return Err(TableError::sdk(DOING)(error)),
        };
        Ok(Claim::Started(Box::new(Claimed {
            attempts_in_schedule: head.delivery.attempt_count.saturating_sub(head.schedule_base),
            delivery: head.delivery,
            event: head.event,
            attempt,
            lease,
        })))
    }

    /// Records an attempt and where the delivery stands after it, both or neither.
    pub async fn record(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
    ) -> Result<Recorded, TableError> {
        const DOING: &str = "recording an attempt";
        let status = match next {
            Next::Delivered => Status::Delivered,
            Next::RetryAt(_) => Status::Retrying,
            Next::Exhausted | Next::Gone => Status::Failed,
        };
        let last_http_status = attempt.http_status.map_or(AttributeValue::Null(true), number);
        let item = AttemptItem::new(&claimed.delivery, attempt);
        let put = Put::builder()
            .table_name(&self.table.name)
            .set_item(Some(write_item(&item, DOING)?))
            .condition_expression("attribute_not_exists(pk)")
            .build();
        let set = "SET #status = :status, attemptCount = :count, lastHttpStatus = :httpStatus, lastUpdate = :now";
        let update = Update::builder()
            .table_name(&self.table.name)
            .key("pk", AttributeValue::S(partition(&claimed.delivery.id)))
            .key("sk", text(HEAD))
            .condition_expression("lease = :lease AND attemptCount = :made")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":status", text(status.as_str()))
            .expression_attribute_values(":count", number(claimed.attempt))
            .expression_attribute_values(":httpStatus", last_http_status)
            .expression_attribute_values(":now", text(now))
            .expression_attribute_values(":lease", text(&claimed.lease))
            .expression_attribute_values(":made", number(claimed.attempt.saturating_sub(1)));
        let update = match next {
            Next::RetryAt(time) => {
                // What a delayed message announces gets a grace; what is too far away is the sweep's from the start.
                let due = if time.since(now) > MAX_DELAY { time } else { time + GRACE };
                update
                    .update_expression(format!("{set}, nextAttemptDate = :next, dueAt = :due REMOVE lease, leaseUntil"))
                    .expression_attribute_values(":next", text(time))
                    .expression_attribute_values(":due", text(due))
            }
            _ => update.update_expression(format!("{set} REMOVE lease, leaseUntil, nextAttemptDate, dueShard, dueAt")),
        };
        let put = TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build();
        let update = update.build().map_err(TableError::unbuilt(DOING))?;
        let update = TransactWriteItem::builder().update(update).build();
        // A message that comes twice may touch the head at this very moment. The attempt was made and must be recorded.
        match self.table.transact(vec![put, update], DOING).await? {
            Transacted::Yes => Ok(Recorded::Yes),
            Transacted::ConditionLost => Ok(Recorded::ClaimLost),
        }
    }

    /// Ends a claimed delivery without an attempt: its webhook is gone or disabled.
    pub async fn cancel(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let update = self
            .update_head(&claimed.delivery.id)
            .update_expression(
                "SET #status = :status, lastUpdate = :now REMOVE lease, leaseUntil, nextAttemptDate, dueShard, dueAt",
            )
            .condition_expression("lease = :lease")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":status", text(Status::Cancelled.as_str()))
            .expression_attribute_values(":now", text(now))
            .expression_attribute_values(":lease", text(&claimed.lease));
        match update.send().await {
            Ok(_) => Ok(()),
            Err(error) if lost(error.as_service_error()) => Ok(()),
            Err(error) => Err(TableError::sdk("cancelling a delivery")(error)),
        }
    }

    /// A page of what is overdue in one shard, and where the next page begins.
    pub async fn due_before(
        &self,
        shard: u8,
        now: Time,
        limit: i32,
        start: Option<Item>,
    ) -> Result<(Vec<DueEntry>, Option<Item>), TableError> {
        self.table.due_before(&shard_key(shard), now, limit, start, "looking for what is due").await
    }

    /// Moves the due time of what is about to be announced; false when it is no longer due, or somebody else did.
    pub async fn postpone(&self, entry: &DueEntry, until: Time) -> Result<bool, TableError> {
        let Some(id) = entry.delivery() else { return Ok(false) };
        let update = self
            .update_head(&id)
            .update_expression("SET dueAt = :until, sweeps = :sweeps")
            .condition_expression("dueAt = :due")
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":sweeps", number(entry.sweeps.saturating_add(1)))
            .expression_attribute_values(":due", text(entry.due_at));
        match update.send().await {
            Ok(_) => Ok(true),
            Err(error) if lost(error.as_service_error()) => Ok(false),
            Err(error) => Err(TableError::sdk("announcing what is due")(error)),
        }
    }

    fn update_head(
        &self,
        id: &DeliveryId,
    ) -> aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder {
        let request = self.table.client.update_item().table_name(&self.table.name);
        request.key("pk", AttributeValue::S(partition(id))).key("sk", text(HEAD))
    }
}

const OPENING: &str = "opening deliveries";

fn lost(error: Option<&UpdateItemError>) -> bool {
    matches!(error, Some(UpdateItemError::ConditionalCheckFailedException(_)))
}
