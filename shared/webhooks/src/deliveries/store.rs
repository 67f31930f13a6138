//! Deliveries in the table. Every change is conditional, so that whatever comes twice, late or out of order changes
//! nothing that it must not.
//!
//! A claim and a record are one write of one item each, and share their calls with those of other deliveries.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use futures::future::try_join_all;
use serde_json::value::RawValue;

use super::{
    Attempt, Delivery, GRACE, LEASE, Status,
    by_webhook::Group,
    delivery::WholeDelivery,
    item::{ATTEMPT, AttemptItem, DueEntry, HEAD, HeadItem, partition, shard_key},
    queue::{MAX_DELAY, Whose},
    schedule::Next,
};
use crate::{
    events::{Event, store::Events},
    subscriptions::Webhook,
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::Time,
    ids::{DeliveryId, EventId, WebhookId},
};
use storage::table::{
    Executed, Item, Statement, Table, TableError, Transacted, number, read_item, text, write_item, write_value,
};

/// How much earlier than its time an attempt may be claimed: what the clocks of two machines may be apart.
const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// The deliveries in the table.
#[derive(Debug, Clone)]
pub struct Deliveries {
    pub(super) table: Table,
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

/// A delivery whose next attempt is the caller's, for the length of a lease.
#[derive(Debug, Clone)]
pub struct Claimed {
    head: HeadItem,
    /// What proves, when the attempt is recorded, that the claim still holds.
    lease: String,
}

/// What came of recording an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is in the history, and the delivery stands where the outcome puts it.
    Yes,
    /// The claim had run out, and somebody else made the attempt as well. Theirs counts.
    ClaimLost,
}

impl Claimed {
    /// The delivery, as it was claimed.
    pub fn delivery(&self) -> &Delivery {
        &self.head.delivery
    }

    /// The event that it carries.
    pub fn event(&self) -> &EventId {
        &self.head.event
    }

    /// The number of the attempt that the claim is for, from 1.
    pub fn attempt(&self) -> u32 {
        self.head.delivery.attempt_count.saturating_add(1)
    }

    /// How many attempts of the present schedule there will have been with this one: numbers go on after a resend,
    /// schedules start anew.
    pub fn attempt_in_schedule(&self) -> u32 {
        self.attempt().saturating_sub(self.head.schedule_base)
    }

    /// When the schedule goes on, if this attempt was asked for by hand in between.
    pub fn resumes_at(&self) -> Option<Time> {
        self.head.resume_at
    }
}

impl Deliveries {
    /// The deliveries in this table.
    pub fn new(table: Table) -> Self {
        Self { events: Events::new(table.clone()), table }
    }

    /// Opens one delivery of the event for each webhook. One that exists already stays as it is.
    pub async fn open_for_event(
        &self,
        event: &Event,
        webhooks: impl IntoIterator<Item = &Webhook>,
        first_attempt: Time,
        retention: Duration,
    ) -> Result<(), TableError> {
        const DOING: &str = "opening deliveries";
        let heads = webhooks.into_iter().map(|webhook| HeadItem::new(event, webhook, first_attempt, retention));
        let statements = heads.map(|head| write_item(&head, DOING).map(Statement::insert));
        let statements = statements.collect::<Result<Vec<_>, _>>()?;
        try_join_all(statements.into_iter().map(|statement| self.table.execute(statement))).await?;
        Ok(())
    }

    /// A delivery with its event and its whole attempt history; `None` when the entity has none of this identifier, or has it
    /// no longer: the table removes what is past its time some days later.
    pub async fn with_attempts(
        &self,
        entity: &AuthorizedEntity,
        id: &DeliveryId,
        now: Time,
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
        let Some(head) = head.filter(|head| head.delivery.owner_identifier == *entity.id() && head.is_kept(now)) else {
            return Ok(None);
        };
        attempts.extend(head.attempts);
        attempts.sort_by_key(|attempt| attempt.attempt_number);
        // They are kept equally long, but not to the second.
        let Some(body) = self.events.body(&head.event).await? else { return Ok(None) };
        let event = RawValue::from_string(body).map_err(|_| TableError::Missing("well-formed JSON in an event"))?;
        Ok(Some(WholeDelivery { delivery: head.delivery, attempts, event }))
    }

    /// Whose a delivery is; `None` when there is none of this identifier.
    pub async fn whose(&self, id: &DeliveryId) -> Result<Option<Whose>, TableError> {
        let head: Option<HeadItem> = self.table.read((partition(id), HEAD.to_owned()), "looking whose it is").await?;
        Ok(head.map(|HeadItem { delivery, .. }| Whose {
            entity: delivery.owner_identifier,
            webhook: delivery.webhook_identifier,
        }))
    }

    /// Claims an attempt: for the length of a lease it is the caller's alone. If the caller dies, the sweep finds the
    /// delivery when the lease is over.
    ///
    /// The due time stays as it is, which saves two units in the index; most attempts are over long before it comes. When
    /// it does come in the middle of an attempt, the claim that the sweep causes then puts it to the lease's end.
    pub async fn claim(&self, id: &DeliveryId, attempt: u32, lease: String, now: Time) -> Result<Claim, TableError> {
        const DOING: &str = "claiming an attempt";
        let made = attempt.saturating_sub(1);
        let claim = Statement::update(partition(id), HEAD)
            .set("lease", text(&lease))
            .set("claimableAt", text(now + LEASE))
            .only_if("attemptCount", "=", number(made))
            .only_if("claimableAt", "<=", text(now + CLOCK_SKEW));
        let head: HeadItem = match self.table.execute(claim).await? {
            Executed::Done(item) => read_item(item.unwrap_or_default(), DOING)?,
            Executed::ConditionLost(None) => return Ok(Claim::NotNow),
            Executed::ConditionLost(Some(item)) => {
                let head: HeadItem = read_item(item, DOING)?;
                // The answer to the first try may have been lost on its way, and this is the second.
                if head.lease.as_ref() != Some(&lease) || head.delivery.attempt_count != made {
                    if head.due_at != head.claimable_at {
                        self.look_again_after_lease(&head).await?;
                    }
                    return Ok(Claim::NotNow);
                }
                head
            }
        };
        // The sweep may have put it off for much longer, while it was announced again and again.
        if head.due_at > head.claimable_at {
            self.look_again_after_lease(&head).await?;
        }
        Ok(Claim::Started(Box::new(Claimed { head, lease })))
    }

    /// Puts the due time of a delivery that somebody is working on to the end of the lease: if the worker dies, that is
    /// when the delivery is to be looked at, neither before nor after.
    async fn look_again_after_lease(&self, head: &HeadItem) -> Result<(), TableError> {
        let HeadItem { lease: Some(lease), claimable_at: Some(end), due_at: Some(due), .. } = head else {
            return Ok(());
        };
        let then = Statement::update(&head.pk, HEAD)
            .set("dueAt", text(end))
            .only_if("lease", "=", text(lease))
            .only_if("dueAt", "=", text(due));
        self.table.execute(then).await.map(drop)
    }

    /// Records an attempt and where the delivery stands after it, both or neither; and what tells of it in the same
    /// transaction, if it is to be told. Where what tells has lost its own condition, the attempt is recorded without it.
    pub async fn record(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        told: Vec<storage::table::Put>,
    ) -> Result<Recorded, TableError> {
        let head = &claimed.head;
        if !told.is_empty() {
            let recorded = self.record_with(claimed, attempt.clone(), next, now, told).await?;
            if recorded == Recorded::Yes {
                return Ok(recorded);
            }
        }
        if head.has_room_for(&attempt) {
            let mut attempts = head.attempts.clone();
            attempts.push(attempt.clone());
            let attempts = write_value(&attempts, RECORDING)?;
            let outcome = Changes::after(claimed, &attempt, next, now).statement(claimed).set("attempts", attempts);
            return match self.table.execute(outcome).await? {
                Executed::Done(_) => Ok(Recorded::Yes),
                Executed::ConditionLost(found) => recorded_before(found, &attempt),
            };
        }
        self.record_with(claimed, attempt, next, now, Vec::new()).await
    }

    /// The same as a transaction, with the attempt as an item of its own.
    async fn record_with(
        &self,
        claimed: &Claimed,
        attempt: Attempt,
        next: Next,
        now: Time,
        told: Vec<storage::table::Put>,
    ) -> Result<Recorded, TableError> {
        let changes = Changes::after(claimed, &attempt, next, now);
        let item = write_item(&AttemptItem::new(&claimed.head, attempt), RECORDING)?;
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item));
        let put = put.condition_expression("attribute_not_exists(pk)").build();
        let put = TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(RECORDING))?).build();
        let update = TransactWriteItem::builder().update(changes.update(claimed, &self.table.name)?).build();
        // A message that comes twice may touch the head at this very moment. The attempt was made and must be recorded.
        let told = told.into_iter().map(|put| self.table.in_transaction(&put.into(), RECORDING));
        let writes = [Ok(put), Ok(update)].into_iter().chain(told).collect::<Result<_, _>>()?;
        match self.table.transact(writes, RECORDING).await? {
            Transacted::Yes => Ok(Recorded::Yes),
            Transacted::ConditionLost => Ok(Recorded::ClaimLost),
        }
    }

    /// Gives a claim back without an attempt: nothing is counted, and the delivery waits until then.
    pub async fn put_off(&self, claimed: &Claimed, until: Time, now: Time) -> Result<(), TableError> {
        let resume_at = claimed.head.resume_at;
        let changes = Changes { next: Some(until), resume_at, put_off: true, ..Changes::of(claimed, now) };
        self.table.execute(changes.statement(claimed)).await.map(drop)
    }

    /// Ends a claimed delivery without an attempt: its webhook is gone or disabled.
    pub async fn cancel(&self, claimed: &Claimed, now: Time) -> Result<(), TableError> {
        let changes = Changes { status: Status::Cancelled, ..Changes::of(claimed, now) };
        self.table.execute(changes.statement(claimed)).await.map(drop)
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

    /// Moves the due time of a delivery that is about to be announced, and returns its entity and webhook; `None` when it is no
    /// longer due, or another sweep has moved it.
    pub async fn postpone(&self, entry: &DueEntry, until: Time) -> Result<Option<Whose>, TableError> {
        const DOING: &str = "moving a due time";
        let postponed = Statement::update(&entry.pk, HEAD)
            .set("dueAt", text(until))
            .set("sweeps", number(entry.sweeps.saturating_add(1)))
            .only_if("dueAt", "=", text(entry.due_at));
        let Executed::Done(Some(item)) = self.table.execute(postponed).await? else { return Ok(None) };
        let Delivery { owner_identifier, webhook_identifier, .. } = read_item::<HeadItem>(item, DOING)?.delivery;
        Ok(Some(Whose { entity: owner_identifier, webhook: webhook_identifier }))
    }
}

const RECORDING: &str = "recording an attempt";

/// The answer to the first try may have been lost on its way, and this is the second: then the attempt stands there.
fn recorded_before(found: Option<Item>, attempt: &Attempt) -> Result<Recorded, TableError> {
    let found: Option<HeadItem> = found.map(|item| read_item(item, RECORDING)).transpose()?;
    let stands_there = found.is_some_and(|head| head.attempts.contains(attempt));
    Ok(if stands_there { Recorded::Yes } else { Recorded::ClaimLost })
}

/// What changes in a head when a claim ends.
struct Changes {
    status: Status,
    attempt_count: u32,
    schedule_base: u32,
    last_http_status: Option<u16>,
    /// When the next attempt is due; when none is, the delivery is final.
    next: Option<Time>,
    resume_at: Option<Time>,
    put_off: bool,
    now: Time,
}

impl Changes {
    /// Nothing was tried; without a next attempt the delivery is final.
    fn of(claimed: &Claimed, now: Time) -> Self {
        let HeadItem { delivery, schedule_base, .. } = &claimed.head;
        Self {
            status: delivery.status,
            attempt_count: delivery.attempt_count,
            schedule_base: *schedule_base,
            last_http_status: delivery.last_http_status,
            next: None,
            resume_at: None,
            put_off: false,
            now,
        }
    }

    /// An attempt was made.
    fn after(claimed: &Claimed, attempt: &Attempt, next: Next, now: Time) -> Self {
        let (status, next) = match next {
            Next::Delivered => (Status::Delivered, None),
            Next::RetryAt(time) => (Status::Retrying, Some(time)),
            Next::Exhausted | Next::Gone => (Status::Failed, None),
        };
        // One that was asked for by hand takes none away from the schedule.
        let by_hand = u32::from(claimed.head.resume_at.is_some());
        let before = Self::of(claimed, now);
        Self {
            status,
            attempt_count: attempt.attempt_number,
            schedule_base: before.schedule_base.saturating_add(by_hand),
            last_http_status: attempt.http_status,
            next,
            ..before
        }
    }

    /// The attributes to set, by name, and the names to remove, in a delivery to this webhook.
    fn list(&self, webhook: &WebhookId) -> (Vec<(&'static str, AttributeValue)>, Vec<&'static str>) {
        let status = self.last_http_status.map_or(AttributeValue::Null(true), number);
        let mut set = vec![
            ("status", text(self.status.as_str())),
            ("attemptCount", number(self.attempt_count)),
            ("scheduleBase", number(self.schedule_base)),
            ("lastHttpStatus", status),
            ("lastUpdate", text(self.now)),
        ];
        let mut removed = vec!["lease"];
        match self.next {
            Some(time) => {
                // What a delayed message announces gets a grace; what is too far away is the sweep's from the start.
                let due = if time.since(self.now) > MAX_DELAY { time } else { time + GRACE };
                set.extend([("nextAttemptDate", text(time)), ("claimableAt", text(time)), ("dueAt", text(due))]);
                set.push(("sweeps", number(0)));
            }
            None => removed.extend(["nextAttemptDate", "claimableAt", "dueShard", "dueAt"]),
        }
        match self.resume_at {
            Some(time) => set.push(("resumeAt", text(time))),
            None => removed.push("resumeAt"),
        }
        match Group::of(self.status, self.attempt_count, self.next, self.now) {
            Some(group) => set.push(("webhookKey", text(group.key(webhook)))),
            None => removed.push("webhookKey"),
        }
        if self.put_off {
            set.push(("putOff", AttributeValue::Bool(true)));
        } else {
            removed.push("putOff");
        }
        (set, removed)
    }

    fn statement(&self, claimed: &Claimed) -> Statement {
        let (set, removed) = self.list(&claimed.delivery().webhook_identifier);
        let statement = Statement::update(&claimed.head.pk, HEAD).only_if("lease", "=", text(&claimed.lease));
        let statement = set.into_iter().fold(statement, |statement, (name, value)| statement.set(name, value));
        removed.into_iter().fold(statement, Statement::remove)
    }

    /// The same as a part of a transaction.
    fn update(&self, claimed: &Claimed, table: &str) -> Result<Update, TableError> {
        let (set, removed) = self.list(&claimed.delivery().webhook_identifier);
        let assignments: Vec<_> = set.iter().map(|(name, _)| format!("#{name} = :{name}")).collect();
        let removals: Vec<_> = removed.iter().map(|name| format!("#{name}")).collect();
        let mut update = Update::builder()
            .table_name(table)
            .key("pk", text(&claimed.head.pk))
            .key("sk", text(HEAD))
            .condition_expression("#lease = :lease")
            .expression_attribute_values(":lease", text(&claimed.lease))
            .update_expression(format!("SET {} REMOVE {}", assignments.join(", "), removals.join(", ")));
        for name in set.iter().map(|(name, _)| *name).chain(removed) {
            update = update.expression_attribute_names(format!("#{name}"), name);
        }
        for (name, value) in set {
            update = update.expression_attribute_values(format!(":{name}"), value);
        }
        update.build().map_err(TableError::unbuilt(RECORDING))
    }
}
