//! Events in the table, and the plans of idempotency keys.

use std::{borrow::Cow, io, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    events::{data_warning, event::Event, packed::Packed, payload::Payload, retention, shared_reads::SharedReads},
    subscriptions::error::MAX_WEBHOOKS,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId, ids::body_at, trace::Trace};
use problem::Violation;
use storage::IdempotentRequest;
use storage::table::{Change, Page, PageEnd, Put, Query, Table, TableError, Value, absent, is, is_new};

/// Maximum size of a body within the event's item, in bytes as stored. Events share their partitions with those of
/// other entities, so larger bodies are separate items in other partitions.
const MAX_INLINE: usize = 2 * 1024;
/// The number of partitions of events: one accepts 1 000 write units a second.
pub(crate) const SHARDS: u8 = 16;
/// The index by entity: its events, and its failed and cancelled deliveries.
pub(crate) const BY_ENTITY: &str = "byEntity";

/// How many targets an event may have: those of its publication, and those that replays add.
pub(crate) const MAX_TARGETS: usize = 2 * MAX_WEBHOOKS;

const KEEPING: &str = "storing an event";
const READING: &str = "reading an event";

/// The events in the table.
#[derive(Debug, Clone)]
pub struct Events {
    pub(super) table: Table,
    reads: SharedReads<Arc<StoredEvent>>,
}

/// An event as an item: the data that all of its deliveries have in common, and the webhooks that they go to.
///
/// | item | pk / sk |
/// |---|---|
/// | event | `EVENTS#{shard}` / `{event}` |
/// | body of more than 2 KiB | `EVT#{event}` / `BODY` |
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventItem {
    pk: String,
    /// The event's identifier.
    sk: EventId,
    pub(crate) owner_identifier: EntityId,
    pub(crate) r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// The deliveries, in the order of their numbers.
    pub(crate) targets: Vec<Target>,
    /// Warnings about data that does not conform to the type's schema; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<Violation>,
    /// When the first attempts are due; absent if they are due immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_attempt: Option<Time>,
    /// Whether it was sent as a test of one webhook.
    #[serde(rename = "askedFor", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_test: bool,
    /// The publisher's header with this name; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    /// The body; absent if it is a separate item, or is erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<StoredBody>,
    /// When its content was erased: the body, the subject and the warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) erased_date: Option<Time>,
    entity_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject_key: Option<String>,
    /// How many days it is stored, if its publisher set that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retention_days: Option<u32>,
    pub(crate) expires_at: i64,
}

/// The attributes that pages of new events read. The body, the warnings and the trace, among others, are left out.
const ATTRIBUTES: [&str; 11] = [
    "pk",
    "sk",
    "ownerIdentifier",
    "type",
    "subject",
    "targets",
    "firstAttempt",
    "askedFor",
    "erasedDate",
    "entityKey",
    "expiresAt",
];

/// A webhook that an event is delivered to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) webhook: WebhookId,
    /// The webhook's URL when the event was published, with its query values masked.
    pub(crate) url: String,
    /// The delivery to this webhook that must be final before this one is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<DeliveryId>,
}

impl Target {
    /// A target that need not wait for another delivery.
    pub(crate) fn of(webhook: WebhookId, url: String) -> Self {
        Self { webhook, url, after: None }
    }
}

/// A body as stored: compressed, unless that saves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum StoredBody {
    Plain(String),
    Packed(Packed),
}

/// A body as a separate item.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BodyItem {
    pk: String,
    sk: String,
    /// Absent if it is erased. The item remains, so that a repeated publication does not write the body again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<StoredBody>,
    expires_at: i64,
}

impl StoredBody {
    fn of(body: &str) -> Self {
        Packed::of(body).map_or_else(|| Self::Plain(body.to_owned()), Self::Packed)
    }

    fn size(&self) -> usize {
        match self {
            Self::Plain(body) => body.len(),
            Self::Packed(packed) => packed.size(),
        }
    }

    fn text(self) -> io::Result<String> {
        match self {
            Self::Plain(body) => Ok(body),
            Self::Packed(packed) => packed.text(),
        }
    }
}

impl EventItem {
    /// An event's item with these targets, without its body.
    pub(crate) fn new(event: &Event, targets: Vec<Target>, first_attempt: Time, retention: Duration) -> Self {
        let (pk, sk) = (shard_key(shard(&event.id)), event.id.clone());
        let subject_key = event.subject.as_ref().map(|subject| subject_key(&event.entity, subject));
        let entity_key = if targets.is_empty() { unmatched_key(&event.entity) } else { entity_key(&event.entity) };
        Self {
            pk,
            sk,
            owner_identifier: event.entity.clone(),
            r#type: event.kind.to_owned(),
            subject: event.subject.clone(),
            targets,
            warnings: data_warning::stored(&event.warnings),
            first_attempt: Some(first_attempt).filter(|first| *first != event.timestamp),
            is_test: event.is_test,
            traceparent: event.trace.as_ref().map(Trace::traceparent),
            tracestate: event.trace.as_ref().and_then(Trace::tracestate).map(str::to_owned),
            content: None,
            erased_date: None,
            entity_key,
            subject_key,
            retention_days: event.retention_days,
            expires_at: (event.timestamp + event.retention_days.map_or(retention, retention::of_days)).as_seconds(),
        }
    }

    /// The event's identifier.
    pub(crate) fn id(&self) -> &EventId {
        &self.sk
    }

    /// The identifiers of its deliveries, with their webhooks.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (DeliveryId, &Target)> {
        let numbered = self.targets.iter().enumerate();
        numbered.map(|(ordinal, target)| (DeliveryId::of(&self.sk, ordinal), target))
    }

    /// The event with one more target, and the change that adds it. The change is lost if the targets have changed
    /// since they were read, or the content is erased. Targets are only added at the end, so every delivery keeps its
    /// number.
    pub(crate) fn with_target(&self, target: Target) -> Result<(Self, Change), TableError> {
        const ADDING: &str = "adding a target to an event";
        let mut added = self.clone();
        added.targets.push(target);
        added.entity_key = entity_key(&self.owner_identifier);
        let change = Change::of(event_key(&self.sk))
            .set("targets", Value::of(&added.targets, ADDING)?)
            .set("entityKey", added.entity_key.as_str())
            .only_if(is("targets", Value::of(&self.targets, ADDING)?))
            .only_if(is("entityKey", self.entity_key.as_str()))
            .only_if(absent("erasedDate"));
        Ok((added, change))
    }

    /// The approximate number of write units for the event; twice as many in a transaction.
    pub(crate) fn write_units(&self) -> usize {
        /// The usual size of an event without its targets, in bytes.
        const EVENT: usize = 1_024;
        /// The size of a target without its URL, in bytes.
        const TARGET: usize = 60;
        let targets: usize = self.targets.iter().map(|target| TARGET + target.url.len()).sum();
        (EVENT + targets).div_ceil(1_024)
    }

    /// When the first attempts are due.
    pub(crate) fn first_attempt(&self) -> Time {
        self.first_attempt.unwrap_or_else(|| self.sk.time())
    }

    /// Whether the event is within its retention.
    pub(crate) fn is_kept(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }

    /// An erased event's body: its envelope with empty data, so that programs that read `data` continue to work.
    fn body_without_content(&self) -> String {
        let data = serde_json::value::RawValue::from_string("{}".to_owned()).expect("it is JSON");
        let entity = &self.owner_identifier;
        Event::envelope(&self.sk, &self.r#type, self.is_test, self.sk.time(), entity, &data)
    }

    /// Its publication's span. Without a publisher's trace, it is derived from the event's identifier, for the log
    /// only.
    pub(crate) fn trace(&self) -> Trace {
        let trace = Trace::read(self.traceparent.as_deref(), self.tracestate.as_deref());
        trace.unwrap_or_else(|| Trace::derived_from(self.sk.as_str()))
    }
}

/// An event with its body. An erased event's body has no data.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    pub(crate) item: EventItem,
    pub(crate) body: String,
}

impl StoredEvent {
    /// The body that a webhook with this payload receives.
    pub(crate) fn payload(&self, payload: Payload) -> Cow<'_, str> {
        match payload {
            Payload::Full => Cow::Borrowed(&self.body),
            Payload::Thin => {
                let EventItem { sk, r#type, is_test, subject, owner_identifier, .. } = &self.item;
                Cow::Owned(Event::thin(sk, r#type, *is_test, subject.as_deref(), sk.time(), owner_identifier))
            }
        }
    }
}

/// The plan of a publication with an idempotency key. A repeated request carries out the same plan, and so gets the
/// same response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicationPlan {
    pub(super) event: EventId,
    pub(super) timestamp: Time,
    pub(super) targets: Vec<Target>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<Violation>,
    /// Whether an event without targets is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_kept_unmatched: bool,
}

impl Events {
    /// The events in this table.
    pub fn new(table: Table) -> Self {
        Self { table, reads: SharedReads::default() }
    }

    /// An event's item, without its body, and the write that stores the whole event. A large body is written by this
    /// call.
    pub(super) async fn keeping(
        &self,
        event: &Event,
        targets: Vec<Target>,
        first_attempt: Time,
        retention: Duration,
    ) -> Result<(EventItem, Put), TableError> {
        let item = EventItem::new(event, targets, first_attempt, retention);
        let content = StoredBody::of(&event.body);
        // There are few internal events, and none is large. A test event may contain large data from its sender.
        let inline = content.size() <= MAX_INLINE || (event.is_internal() && !event.is_test);
        let mut whole = item.clone();
        if inline {
            whole.content = Some(content);
        } else {
            let (pk, sk) = body_key(&event.id);
            let body = BodyItem { pk, sk, content: Some(content), expires_at: item.expires_at };
            self.table.write(Put::item(&body, KEEPING)?.only_if(is_new()), KEEPING).await?;
        }
        Ok((item, Put::item(&whole, KEEPING)?.only_if(is_new())))
    }

    /// An event, even after its retention, while it is still in the table.
    pub(crate) async fn find(&self, event: &EventId) -> Result<Option<StoredEvent>, TableError> {
        match self.item(event).await? {
            Some(item) => self.with_body(item).await.map(Some),
            None => Ok(None),
        }
    }

    /// An event without its body.
    pub(crate) async fn item(&self, event: &EventId) -> Result<Option<EventItem>, TableError> {
        self.table.read(event_key(event), READING).await
    }

    /// An eventually consistent read of an event, at half the cost. May return `None` for an event written moments ago.
    /// A stored event changes only if it is erased, or a replay adds a target: a stale read still has the content, or
    /// lacks a target whose delivery has a head. Concurrent readers of one event share the read.
    pub(crate) async fn read_eventual(&self, event: &EventId) -> Result<Option<Arc<StoredEvent>>, TableError> {
        let read = |event: EventId| {
            let events = self.clone();
            async move {
                match events.item_eventual(&event).await? {
                    Some(item) => events.with_body(item).await.map(|event| Some(Arc::new(event))),
                    None => Ok(None),
                }
            }
        };
        self.reads.join(event, read).await
    }

    /// An eventually consistent read of an event without its body.
    pub(crate) async fn item_eventual(&self, event: &EventId) -> Result<Option<EventItem>, TableError> {
        self.table.read_eventual(event_key(event), READING).await
    }

    /// Adds the body to an event that was read without it.
    pub(crate) async fn with_body(&self, mut item: EventItem) -> Result<StoredEvent, TableError> {
        if item.erased_date.is_some() {
            return Ok(StoredEvent { body: item.body_without_content(), item });
        }
        let content = match item.content.take() {
            Some(content) => content,
            // The body was written before the event.
            None => {
                let body: Option<BodyItem> = self.table.read(body_key(&item.sk), READING).await?;
                match body.ok_or(TableError::Missing("an event's body"))?.content {
                    Some(content) => content,
                    // The event was erased between the two reads.
                    None => return Ok(StoredEvent { body: item.body_without_content(), item }),
                }
            }
        };
        let key = Some(event_key(&item.sk).into());
        let body = content.text();
        let body = body.map_err(|source| TableError::Item { doing: READING, key, source: Arc::new(source) })?;
        Ok(StoredEvent { item, body })
    }

    /// A page of one shard's events after a position and before a time, oldest first, without their bodies. The read is
    /// consistent.
    pub(crate) async fn of_shard(
        &self,
        shard: u8,
        (after, before): (&str, Time),
        start: Option<PageEnd>,
        limit: i32,
    ) -> Result<Page<EventItem>, TableError> {
        if *after >= *body_at(before) {
            // Another sweep, whose clock is fast, is further ahead.
            return Ok(Page { entries: Vec::new(), next: None });
        }
        let from = format!("{}{after}!", EventId::PREFIX);
        let to = format!("{}{}", EventId::PREFIX, body_at(before));
        let query = Query::partition(shard_key(shard)).between("sk", from, to).attributes(&ATTRIBUTES).limit(limit);
        let query = query.after(start).skipping_unreadable();
        self.table.page(query, "reading new events").await
    }

    /// The writes that erase an event's content, for one transaction: the body, wherever it is stored, the subject with
    /// its entry in the index, and the warnings, which name members of the data. The writes are lost if the event is
    /// already erased.
    pub(crate) fn erasing(&self, item: &EventItem, now: Time) -> Vec<Change> {
        let event = Change::of(event_key(&item.sk))
            .set("erasedDate", now)
            .remove("content")
            .remove("subject")
            .remove("subjectKey")
            .remove("warnings")
            .only_if(is("entityKey", item.entity_key.as_str()))
            .only_if(absent("erasedDate"));
        let has_body_item = item.content.is_none();
        // It needs no condition, since the event's condition applies to the whole transaction.
        let body = || Change::of(body_key(&item.sk)).remove("content").set("expiresAt", item.expires_at);
        let body = has_body_item.then(body);
        [event].into_iter().chain(body).collect()
    }

    /// Claims an idempotency key for a plan, and returns the key's plan, which may be an earlier one; `None` if the key
    /// was used with a different body.
    pub(super) async fn claim_key(
        &self,
        once: &IdempotentRequest,
        plan: PublicationPlan,
        now: Time,
    ) -> Result<Option<PublicationPlan>, TableError> {
        once.claim(&self.table, plan, now).await
    }
}

/// An event's shard, derived from some random characters of its identifier.
fn shard(event: &EventId) -> u8 {
    let sum = event.body().bytes().rev().skip(2).take(6).fold(0u8, u8::wrapping_add);
    sum % SHARDS
}

fn shard_key(shard: u8) -> String {
    format!("EVENTS#{shard}")
}

fn event_key(event: &EventId) -> (String, String) {
    (shard_key(shard(event)), event.to_string())
}

fn body_key(event: &EventId) -> (String, String) {
    (format!("EVT#{event}"), "BODY".to_owned())
}

/// The index partition of an entity's events, except those without a delivery.
pub(crate) fn entity_key(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

/// The partition of an entity's events that matched no webhook. Lists of deliveries do not read them.
pub(crate) fn unmatched_key(entity: &EntityId) -> String {
    format!("UNMATCHED#{entity}")
}

/// The index partition of the events about a subject.
pub(crate) fn subject_key(entity: &EntityId, subject: &str) -> String {
    format!("ENT#{entity}#{subject}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;
    use std::collections::BTreeSet;

    #[test]
    fn a_body_that_cannot_be_unpacked_is_an_error() {
        assert!(StoredBody::Packed(Packed::torn()).text().is_err());
    }

    #[test]
    fn a_target_is_added_at_the_end_on_condition_of_those_that_were_read() {
        use crate::deliveries::state::head::tests::{NOW, event_and_head};
        let (event, head) = event_and_head("{}");
        let target = |url: &str| Target::of(head.delivery.webhook_identifier.clone(), url.to_owned());
        let read = EventItem::new(&event, vec![target("one")], NOW, Duration::from_secs(60));
        let (added, change) = read.with_target(target("two")).expect("it can be written");
        assert_eq!(added.targets, [target("one"), target("two")]);
        assert_eq!(change.applied(&read).targets, added.targets);
        let value = |targets: &[Target]| Value::of(&targets, "a test").expect("targets can be written");
        let expected = Change::of(event_key(&read.sk))
            .set("targets", value(&added.targets))
            .set("entityKey", read.entity_key.as_str())
            .only_if(is("targets", value(&read.targets)))
            .only_if(is("entityKey", read.entity_key.as_str()))
            .only_if(absent("erasedDate"));
        assert_eq!(change, expected);

        let unmatched = EventItem::new(&event, Vec::new(), NOW, Duration::from_secs(60));
        assert_eq!(unmatched.entity_key, unmatched_key(&event.entity));
        let (_, change) = unmatched.with_target(target("one")).expect("it can be written");
        assert_eq!(change.applied(&unmatched).entity_key, entity_key(&event.entity), "lists of deliveries read it now");
    }

    #[test]
    fn events_are_spread_over_all_shards() {
        let random = SystemRandom;
        let shards: BTreeSet<_> = (0..1_000).map(|_| shard(&EventId::new(Time::from_millis(0), &random))).collect();
        assert_eq!(shards, (0..SHARDS).collect());
    }
}
