//! The events that a replay to a webhook includes, and their number.

use std::time::Duration;

use futures::{FutureExt, future::try_join_all};
use tokio::time::Instant;

use crate::{
    deliveries::{
        queries::{
            by_webhook::{Counted, Page},
            of_events::{Included, Reading, partitions, skip_unreadable_event},
            range::KeyRange,
        },
        store::Deliveries,
    },
    events::{
        catalogue::{self, Source},
        store::{self, EventItem},
    },
    subscriptions::{
        Webhook,
        filter::{data::EventData, matching::Steps, outcomes::MAX_STEPS},
    },
};
use auth::EntityId;
use base::{EventId, Time};
use storage::table::TableError;

/// How many index entries are read to count events, or to try a filter.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// How many index entries are read per call.
pub(super) const PAGE: i32 = 1_000;
/// How many events a count examines.
const MAX_EVENTS: usize = 1_000;
/// The total size of bodies after which a count examines no further events. Only a filter needs bodies.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
/// How many events are examined concurrently.
const AT_ONCE: usize = 25;
/// The time after which a count examines no further events.
const LIMIT: Duration = Duration::from_secs(4);

/// The events that a replay includes: those that match this webhook, of these types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) webhook: &'a Webhook,
    /// The types and groups of types; empty for every type.
    pub(crate) types: &'a [String],
}

/// An event after its comparison with a webhook.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// The event, if it matches the webhook and has no delivery to it.
    pub(crate) matching: Option<EventItem>,
    /// The size of the body that was read for the comparison.
    body_bytes: usize,
}

/// The events that a count has examined.
#[derive(Debug, Default)]
struct LookedAt {
    events: usize,
    body_bytes: usize,
}

impl LookedAt {
    /// Whether this is as much as one count may examine.
    fn is_enough(&self) -> bool {
        self.events >= MAX_EVENTS || self.body_bytes >= MAX_BODY_BYTES
    }
}

impl Wanted<'_> {
    /// Whether events of this type are replayed. Internal events are about the webhooks that existed at the time, and
    /// are not replayed.
    fn includes_type(self, kind: &str) -> bool {
        let is_internal = catalogue::find(kind).is_some_and(|kind| kind.source == Source::Service);
        !is_internal && catalogue::list_includes(self.types, kind) && self.webhook.subscribes_to(kind)
    }

    /// Whether an event may get a delivery, judging by its item alone.
    fn includes(self, event: &EventItem, now: Time) -> bool {
        let has_delivery = event.targets.iter().any(|target| target.webhook == self.webhook.id);
        let has_content = event.is_kept(now) && event.erased_date.is_none();
        has_content
            && !event.is_test
            && !has_delivery
            && event.targets.len() < store::MAX_TARGETS
            && event.owner_identifier == self.webhook.owner_identifier
            && self.includes_type(&event.r#type)
    }

    /// Whether an event with this body passes the filter. An event with too many values passes, as it did when it was
    /// published.
    fn passes(self, body: &str) -> bool {
        let filter = self.webhook.event_filter.as_ref();
        filter.is_none_or(|filter| filter.compare(&EventData::of_body(body), &mut Steps(MAX_STEPS)).delivers())
    }
}

impl Deliveries {
    /// The first events of a range with a requested type, oldest first, among `limit` entries per index partition. The
    /// index may lag.
    pub(crate) async fn events_of_types(
        &self,
        entity: &EntityId,
        range: &KeyRange,
        wanted: Wanted<'_>,
        limit: i32,
    ) -> Result<Page<Vec<EventId>>, TableError> {
        let page = self.entries_of(partitions(entity, Included::All), range, Reading::OldestFirst, limit).await?;
        let found = page.found.into_iter().filter(|entry| wanted.includes_type(&entry.r#type));
        Ok(Page { found: found.map(|entry| entry.id).collect(), looked_at: page.looked_at, end: page.end })
    }

    /// Compares an event with a webhook. An unreadable event does not block the others.
    pub(crate) async fn compare_to_replay(
        &self,
        event: Option<EventItem>,
        wanted: Wanted<'_>,
        now: Time,
    ) -> Result<Compared, TableError> {
        let matching = event.filter(|event| wanted.includes(event, now));
        let Some(event) = matching else { return Ok(Compared::default()) };
        if wanted.webhook.event_filter.is_none() {
            return Ok(Compared { matching: Some(event), body_bytes: 0 });
        }
        let id = event.id().clone();
        let stored = skip_unreadable_event(self.events.with_body(event).await, &id)?;
        let body_bytes = stored.as_ref().map_or(0, |stored| stored.body.len());
        let passing = stored.filter(|stored| stored.item.erased_date.is_none() && wanted.passes(&stored.body));
        Ok(Compared { matching: passing.map(|stored| stored.item), body_bytes })
    }

    /// Counts the events of a range that a replay would deliver, as far as a request's time allows.
    pub(crate) async fn count_to_replay(
        &self,
        entity: &EntityId,
        mut range: KeyRange,
        wanted: Wanted<'_>,
        now: Time,
    ) -> Result<Counted, TableError> {
        let began = Instant::now();
        let mut count = 0;
        let mut entries = 0;
        let mut looked_at = LookedAt::default();
        loop {
            let page = self.events_of_types(entity, &range, wanted, PAGE).await?;
            entries += page.looked_at;
            for chunk in page.found.chunks(AT_ONCE) {
                if looked_at.is_enough() || began.elapsed() >= LIMIT {
                    return Ok(Counted { count, count_is_exact: false });
                }
                let (chunk, left) = chunk.split_at(chunk.len().min(MAX_EVENTS - looked_at.events));
                // Boxed, since the nested future types exceed the compiler's limits.
                let look = chunk.iter().map(|id| {
                    async move {
                        let event = self.readable_event(id, false).await?;
                        self.compare_to_replay(event, wanted, now).await
                    }
                    .boxed()
                });
                for compared in try_join_all(look).await? {
                    looked_at.events += 1;
                    looked_at.body_bytes += compared.body_bytes;
                    count += usize::from(compared.matching.is_some());
                }
                if !left.is_empty() {
                    return Ok(Counted { count, count_is_exact: false });
                }
            }
            let Some(end) = page.end else { return Ok(Counted { count, count_is_exact: true }) };
            if entries >= MAX_ENTRIES {
                return Ok(Counted { count, count_is_exact: false });
            }
            range = range.after(&end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        deliveries::state::head::tests::{LATER, NOW, event_and_head},
        events::store::Target,
        subscriptions::{filter::EventFilter, webhook::tests::webhook},
    };
    use base::{WebhookId, testing::CountingRandom};
    use problem::{InputPart, Violations};

    /// A webhook of the event's entity, and an event that it did not receive.
    fn webhook_and_event() -> (Webhook, EventItem) {
        let (event, head) = event_and_head("{}");
        let target = Target::of(head.delivery.webhook_identifier, String::new());
        let item = EventItem::new(&event, vec![target], NOW, Duration::from_secs(60));
        let random = CountingRandom::default();
        let ids: Vec<_> = (0..9).map(|_| WebhookId::new(LATER, &random)).collect();
        let id = ids[8].clone();
        (Webhook { enabled: true, id, owner_identifier: event.entity, ..webhook() }, item)
    }

    fn includes(webhook: &Webhook, event: &EventItem, types: &[&str]) -> bool {
        let types: Vec<_> = types.iter().map(|kind| (*kind).to_owned()).collect();
        Wanted { webhook, types: &types }.includes(event, NOW)
    }

    #[test]
    fn a_kept_event_of_a_wanted_type_without_a_delivery_is_replayed() {
        let (webhook, event) = webhook_and_event();
        assert!(includes(&webhook, &event, &[]) && includes(&webhook, &event, &["booking.*"]));
        assert!(!includes(&webhook, &event, &["payment.*"]), "the request names other types");
        let other = Webhook { event_list: vec!["payment.*".to_owned()], ..webhook.clone() };
        assert!(!includes(&other, &event, &[]), "the webhook wants other types");
        assert!(!includes(&Webhook { enabled: false, ..webhook.clone() }, &event, &[]));
        let stranger = EntityId::parse("stranger").expect("an entity");
        assert!(!includes(&Webhook { owner_identifier: stranger, ..webhook }, &event, &[]));
    }

    #[test]
    fn an_event_with_a_delivery_without_content_or_of_the_service_is_not_replayed() {
        let (webhook, event) = webhook_and_event();
        let with = |change: &dyn Fn(&mut EventItem)| {
            let mut event = event.clone();
            change(&mut event);
            includes(&webhook, &event, &[])
        };
        assert!(!with(&|event| event.targets.push(Target::of(webhook.id.clone(), String::new()))));
        assert!(!with(&|event| event.erased_date = Some(NOW)));
        assert!(!with(&|event| event.expires_at = NOW.as_seconds()));
        assert!(!with(&|event| event.is_test = true));
        assert!(!with(&|event| event.r#type = "webhook.disabled".to_owned()), "it is about a webhook of its time");
        let many = |count| move |event: &mut EventItem| event.targets = vec![event.targets[0].clone(); count];
        assert!(with(&many(store::MAX_TARGETS - 1)) && !with(&many(store::MAX_TARGETS)));
    }

    #[test]
    fn a_count_ends_after_many_events_or_large_bodies() {
        let is_enough = |events, body_bytes| LookedAt { events, body_bytes }.is_enough();
        assert!(!is_enough(MAX_EVENTS - 1, MAX_BODY_BYTES - 1));
        assert!(is_enough(MAX_EVENTS, 0) && is_enough(1, MAX_BODY_BYTES));
    }

    #[test]
    fn the_filter_of_the_webhook_decides_as_for_a_new_event() {
        let (webhook, _) = webhook_and_event();
        let mut violations = Violations::of(InputPart::Body);
        let filter = EventFilter::take("eventFilter", r#"{"total":[5]}"#, &mut violations);
        let filtered = Webhook { event_filter: filter, ..webhook.clone() };
        let passes = |webhook: &Webhook, body: &str| Wanted { webhook, types: &[] }.passes(body);
        assert!(passes(&filtered, r#"{"data":{"total":5}}"#) && !passes(&filtered, r#"{"data":{"total":6}}"#));
        assert!(passes(&webhook, r#"{"data":{"total":6}}"#));
    }
}
