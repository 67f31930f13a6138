//! A subject's line: the last delivery to each webhook that receives the events about the subject one after another. A
//! publication reads the line, and moves it in one transaction with its event. So each delivery knows the preceding
//! one, and concurrent publications form one line.
//!
//! | item | pk / sk |
//! |---|---|
//! | line of a subject | `LINE#{entity}` / hash of the subject |
//! | next delivery of the line | `DLV#{delivery}` / `NEXT` |
//!
//! The key contains a hash of the subject, since the line is kept when an event is erased.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures::{FutureExt, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{
    events::{
        event::Event,
        store::{EventItem, Events, Target},
    },
    subscriptions::Webhook,
};
use auth::EntityId;
use base::{DeliveryId, EventId, Random, Time, WebhookId, logging, pause, random};
use storage::table::{Put, Table, TableError, Transaction, Value, is, is_new};
use storage::{Allowance, Allowances};

/// How long a publication tries to join a line that others are moving at the same time.
const LIMIT: Duration = Duration::from_secs(4);
/// How long a publication tries before it counts as one of its entity's waiting publications (`Allowance::LineWaits`).
const UNCOUNTED: Duration = Duration::from_millis(500);
/// The longest pause before another try.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a webhook that is no longer ordered stays in the line after its last delivery: longer than a publication
/// takes.
const LEAVES_AFTER: Duration = Duration::from_secs(5 * 60);
/// The maximum number of `NEXT` items in an event's transaction. A transaction has at most 100 items, including the
/// event and the line.
const MAX_NEXT: usize = 98;
/// Time limit for the remaining `NEXT` items of an event.
const FURTHER_LIMIT: Duration = Duration::from_secs(2);
/// How many of the remaining `NEXT` items are written concurrently.
const FURTHER_AT_ONCE: usize = 25;

const JOINING: &str = "storing an event in its subject's line";

/// The ordered webhooks of an event's entity, for an event that joins a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ordered(BTreeSet<WebhookId>);

/// A subject's line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// The last delivery to each webhook.
    last: BTreeMap<String, DeliveryId>,
    /// How many times the line has moved; 0 if it is not stored yet.
    version: u64,
    expires_at: i64,
}

/// The delivery that follows another one in its line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NextItem {
    next: DeliveryId,
    expires_at: i64,
}

impl Ordered {
    /// The ordered webhooks; `None` for an event that joins no line because it has no subject, is a test or an internal
    /// event, or is not for any of them.
    pub(super) fn of(event: &Event, targets: &[Target], webhooks: &[Webhook]) -> Option<Self> {
        if event.subject.is_none() || event.is_test || event.is_internal() {
            return None;
        }
        let ordered: BTreeSet<_> =
            webhooks.iter().filter(|webhook| webhook.is_ordered()).map(|webhook| webhook.id.clone()).collect();
        targets.iter().any(|target| ordered.contains(&target.webhook)).then_some(Self(ordered))
    }
}

impl Line {
    /// Adds an event's deliveries to the end of the line, each after the last one to the same webhook. A webhook that
    /// is no longer ordered leaves the line a few minutes later.
    fn join(&mut self, event: &EventId, targets: &mut [Target], Ordered(ordered): &Ordered, expires_at: i64) {
        let is_ordered = |webhook: &str| ordered.iter().any(|known| known.as_str() == webhook);
        // This publication may have read the webhooks just before one became ordered, and must not break its line.
        let is_recent = |last: &DeliveryId| event.time().since(last.time()) < LEAVES_AFTER;
        self.last.retain(|webhook, last| is_ordered(webhook) || is_recent(last));
        for (ordinal, target) in targets.iter_mut().enumerate() {
            target.after = None;
            if ordered.contains(&target.webhook) {
                target.after = self.last.insert(target.webhook.to_string(), DeliveryId::of(event, ordinal));
            }
        }
        self.version = self.version.saturating_add(1);
        self.expires_at = self.expires_at.max(expires_at);
    }
}

impl Events {
    /// Writes an event that is not stored yet, and moves its subject's line. Returns the stored item, or that of an
    /// earlier publication if there was one. `counted_at` is the current time if the number of the entity's waiting
    /// publications is limited: each occupies an invocation, and a line accepts about twenty a second.
    pub(super) async fn keep_in_line(
        &self,
        item: EventItem,
        put: &Put,
        ordered: &Ordered,
        random: &dyn Random,
        counted_at: Option<Time>,
    ) -> Result<EventItem, TableError> {
        let id = item.id().clone();
        let kept = match self.keep_in_time(item, put, ordered, random, counted_at).await {
            // The deadline may have passed during the transaction that wrote the event.
            Err(error @ TableError::Unavailable { .. }) => self.item(&id).await?.ok_or(error)?,
            kept => kept?,
        };
        let further = next_items(&kept)?.into_iter().skip(MAX_NEXT).collect();
        write_further(&self.table.until(Instant::now() + FURTHER_LIMIT), further, &id).await;
        Ok(kept)
    }

    async fn keep_in_time(
        &self,
        item: EventItem,
        put: &Put,
        ordered: &Ordered,
        random: &dyn Random,
        counted_at: Option<Time>,
    ) -> Result<EventItem, TableError> {
        let began = Instant::now();
        if let Some(now) = counted_at {
            match self.join_until(began + UNCOUNTED, item.clone(), put, ordered, random).await {
                Err(TableError::Unavailable { .. }) => {}
                joined => return joined,
            }
            let waits = Allowances::new(self.table.until(began + LIMIT));
            if waits.spend(Allowance::LineWaits, 1, item.owner_identifier.as_str(), now).await?.is_some() {
                return Err(TableError::code(JOINING, "TransactionConflict"));
            }
        }
        self.join_until(began + LIMIT, item, put, ordered, random).await
    }

    async fn join_until(
        &self,
        deadline: Instant,
        mut item: EventItem,
        put: &Put,
        ordered: &Ordered,
        random: &dyn Random,
    ) -> Result<EventItem, TableError> {
        let table = self.table.until(deadline);
        let key = line_key(&item.owner_identifier, item.subject.as_deref().unwrap_or_default());
        loop {
            let line: Option<Line> = table.read(key.clone(), JOINING).await?;
            let mut line = line.unwrap_or_default();
            let read = line.version;
            let id = item.id().clone();
            line.join(&id, &mut item.targets, ordered, item.expires_at);
            let moved = Put::at(key.clone(), &line, JOINING)?;
            let moved = moved.only_if(if read == 0 { is_new() } else { is("version", read) });
            let event = put.clone().with("targets", Value::of(&item.targets, JOINING)?);
            let next = next_items(&item)?.into_iter().take(MAX_NEXT);
            let writes = Transaction::new().with(event).with(moved).with_all(next);
            if table.write_all(writes, JOINING).await?.is_done() {
                return Ok(item);
            }
            // The first stored version of an event is kept, with its targets.
            if let Some(stored) = self.item(&id).await? {
                return Ok(stored);
            }
            let wait = PAUSE.mul_f64(random::unit(random));
            if Instant::now() + wait >= deadline {
                return Err(TableError::code(JOINING, "TransactionConflict"));
            }
            pause(wait).await;
        }
    }

    /// The delivery that follows this one in its subject's line.
    pub(crate) async fn next_in_line(&self, delivery: &DeliveryId) -> Result<Option<DeliveryId>, TableError> {
        let item: Option<NextItem> =
            self.table.read(next_key(delivery), "looking for the next delivery in a line").await?;
        Ok(item.map(|item| item.next))
    }
}

/// The `NEXT` items of the deliveries that precede those of an event. They need no condition: the line has one, and
/// gives each delivery a single successor.
fn next_items(item: &EventItem) -> Result<Vec<Put>, TableError> {
    let followers = item.deliveries().filter_map(|(id, target)| Some((target.after.as_ref()?, id)));
    let puts = followers
        .map(|(before, id)| Put::at(next_key(before), &NextItem { next: id, expires_at: item.expires_at }, JOINING));
    puts.collect()
}

/// Writes the `NEXT` items that did not fit into their event's transaction. If one is not written, its delivery waits
/// until the dispatcher checks it.
async fn write_further(table: &Table, puts: Vec<Put>, event: &EventId) {
    let writes: Vec<_> = puts.into_iter().map(|put| table.write(put, JOINING).boxed()).collect();
    let written: Vec<_> = stream::iter(writes).buffer_unordered(FURTHER_AT_ONCE).collect().await;
    if let Some(error) = written.into_iter().find_map(Result::err) {
        let error = logging::chain(&error);
        tracing::warn!(
            error,
            eventId = %event,
            "some of an event's deliveries may be sent late because their lines are incomplete"
        );
    }
}

fn line_key(entity: &EntityId, subject: &str) -> (String, String) {
    let hash = digest::digest(&digest::SHA256, subject.as_bytes());
    (format!("LINE#{entity}"), BASE64_URL_SAFE_NO_PAD.encode(hash))
}

fn next_key(delivery: &DeliveryId) -> (String, String) {
    (format!("DLV#{delivery}"), "NEXT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use proptest::{collection::vec, prelude::*};
    use std::collections::HashMap;

    const WEBHOOKS: usize = 4;
    const SUBJECTS: usize = 3;

    /// A publication about a subject.
    #[derive(Debug, Clone)]
    struct Publication {
        subject: usize,
        /// Which webhooks are ordered at this time.
        ordered: Vec<bool>,
        /// Which webhooks the event matches.
        wanted: Vec<bool>,
    }

    fn publication() -> impl Strategy<Value = Publication> {
        let ordered = vec(prop::bool::weighted(0.9), WEBHOOKS);
        (0..SUBJECTS, ordered, vec(any::<bool>(), WEBHOOKS)).prop_map(|(subject, ordered, wanted)| Publication {
            subject,
            ordered,
            wanted,
        })
    }

    fn webhooks() -> Vec<WebhookId> {
        let random = CountingRandom::default();
        (0..WEBHOOKS).map(|_| WebhookId::new(Time::from_millis(0), &random)).collect()
    }

    /// These publications' deliveries, in order: the subject, the webhook, the delivery, and its predecessor.
    fn deliveries(publications: &[Publication]) -> Vec<(usize, usize, DeliveryId, Option<DeliveryId>)> {
        let webhooks = webhooks();
        let random = CountingRandom::default();
        let mut lines = vec![Line::default(); SUBJECTS];
        let mut made = Vec::new();
        for (number, publication) in publications.iter().enumerate() {
            let minutes = i64::try_from(number).expect("few");
            let event = EventId::new(Time::from_millis(minutes * 60_000), &random);
            let wanting: Vec<_> = (0..WEBHOOKS).filter(|webhook| publication.wanted[*webhook]).collect();
            let mut targets: Vec<_> =
                wanting.iter().map(|webhook| Target::of(webhooks[*webhook].clone(), String::new())).collect();
            let is_ordered = |webhook: &usize| publication.ordered[*webhook];
            let ordered = Ordered((0..WEBHOOKS).filter(is_ordered).map(|webhook| webhooks[webhook].clone()).collect());
            lines[publication.subject].join(&event, &mut targets, &ordered, 0);
            for (ordinal, (webhook, target)) in wanting.into_iter().zip(targets).enumerate() {
                made.push((publication.subject, webhook, DeliveryId::of(&event, ordinal), target.after));
            }
        }
        made
    }

    proptest! {
        #[test]
        fn each_webhook_and_subject_has_one_chain_without_gaps(
            publications in vec(publication(), 0..40)
        ) {
            // Always ordered: each delivery follows the previous one, and only the first follows none.
            let publications: Vec<_> = publications
                .into_iter()
                .map(|publication| Publication { ordered: vec![true; WEBHOOKS], ..publication })
                .collect();
            let mut last = HashMap::new();
            for (subject, webhook, delivery, after) in deliveries(&publications) {
                prop_assert_eq!(after, last.insert((subject, webhook), delivery));
            }
        }

        #[test]
        fn no_delivery_has_two_successors_when_webhooks_change_their_order(
            publications in vec(publication(), 0..40)
        ) {
            let mut successors = HashMap::new();
            let mut known = HashMap::new();
            for (subject, webhook, delivery, after) in deliveries(&publications) {
                if let Some(after) = after {
                    // A chain neither leaves its subject and webhook nor leads to a later delivery.
                    prop_assert_eq!(known.get(&after), Some(&(subject, webhook)));
                    prop_assert!(successors.insert(after, delivery.clone()).is_none());
                }
                known.insert(delivery, (subject, webhook));
            }
        }
    }

    #[test]
    fn a_webhook_that_an_event_does_not_go_to_keeps_its_place_in_the_line() {
        let one = |wanted: [bool; WEBHOOKS], ordered: bool| Publication {
            subject: 0,
            ordered: vec![ordered; WEBHOOKS],
            wanted: wanted.to_vec(),
        };
        let first = [true, true, false, false];
        let only_second = [false, true, false, false];
        let made = deliveries(&[one(first, true), one(only_second, true), one(first, true)]);
        assert_eq!(made[3].3.as_ref(), Some(&made[0].2), "the event in between did not go to it");
        assert_eq!(made[4].3.as_ref(), Some(&made[2].2));
    }

    #[test]
    fn a_webhook_that_is_not_ordered_any_more_leaves_the_line_after_some_minutes() {
        let one = |ordered: bool| Publication {
            subject: 0,
            ordered: vec![ordered, true, true, true],
            wanted: vec![true, false, false, false],
        };
        let follows = |between: usize| {
            let unordered = std::iter::repeat_n(one(false), between);
            let made = deliveries(&[one(true)].into_iter().chain(unordered).chain([one(true)]).collect::<Vec<_>>());
            made.last().is_some_and(|(_, _, _, after)| after.as_ref() == Some(&made[0].2))
        };
        assert!(follows(0) && follows(1), "the publication in between may have read the webhooks before");
        assert!(!follows(6));
    }

    #[test]
    fn the_key_of_a_line_does_not_contain_the_subject() {
        let entity = EntityId::parse("hotel").expect("an entity");
        let [one, other] = ["BK-1", "BK-2"].map(|subject| line_key(&entity, subject));
        assert!(one.0 == "LINE#hotel" && one.0 == other.0 && one.1 != other.1 && !one.1.contains("BK"));
        let long = line_key(&entity, &"é".repeat(256));
        assert_eq!(long.1.len(), one.1.len());
    }
}
