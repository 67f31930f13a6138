//! Listing an entity's events, the newest first, a page at a time.
//!
//! There is no index of events, and an event that no webhook wanted is not kept. So the list is derived from the
//! deliveries in the index `byOwner`: all deliveries of an event are within one millisecond, and their heads contain
//! the event's identifier. A page reads whole milliseconds, so that it shows each event with all of its deliveries.
//! Events of one millisecond are in the order of their identifiers.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::deliveries::{
    delivery::Status,
    error::DeliveryError,
    queries::{
        by_owner::KeyRange,
        cursor::{self, Cursor, EXPECTED, Position},
        filters::Filters,
        list::{Listing, MAX_ENTRIES_READ, MAX_HEADS_READ, limit, range},
    },
    store::{Deliveries, item::HeadItem},
};
use auth::AuthorizedEntity;
use base::{EventId, Time, WebhookId};
use problem::{Problem, Query};
use storage::TableError;

/// How many events a page has unless the query says otherwise.
const DEFAULT_LIMIT: usize = 20;
/// The most events that a page may have.
const MAX_LIMIT: usize = 50;

/// A request for a page of a list of events.
#[derive(Debug)]
pub struct EventListRequest {
    filters: Filters,
    limit: usize,
    cursor: Option<Cursor>,
}

/// A page of a list of events, as a client sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    items: Vec<ListedEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An event with its deliveries by state.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedEvent {
    event_identifier: EventId,
    r#type: String,
    created_date: Time,
    deliveries: Vec<DeliveriesInState>,
}

/// The deliveries of an event that are in one state.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveriesInState {
    status: Status,
    count: usize,
    webhook_identifiers: Vec<WebhookId>,
}

/// The position after which a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EventPosition {
    /// After this event.
    Event(EventId),
    /// After all events at this time or later.
    Time(Time),
}

impl Position for EventPosition {
    const CURSOR: &str = "event-cursor";

    fn to_text(&self) -> String {
        match self {
            Self::Event(event) => event.to_string(),
            Self::Time(time) => time.to_string(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        EventId::parse(text).map(Self::Event).or_else(|| Time::of_client(text).map(Self::Time))
    }
}

impl EventPosition {
    /// The part of a range that may have events after this position. The millisecond of an event is within it, since
    /// further events of that millisecond may follow.
    fn rest(&self, range: KeyRange) -> KeyRange {
        match self {
            Self::Event(event) => range.before_time(event.time() + Duration::from_millis(1)),
            Self::Time(time) => range.before_time(*time),
        }
    }
}

impl EventListRequest {
    /// Reads the parameters of a query for this entity's events.
    pub fn read(mut query: Query<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take_of_events(&mut query, entity.id());
        let limit = query.optional("limit", "a number from 1 to 50", limit::<MAX_LIMIT>).unwrap_or(DEFAULT_LIMIT);
        let cursor = query.optional("cursor", EXPECTED, Cursor::parse);
        query.finish()?;
        Ok(Self { filters, limit, cursor })
    }
}

impl Listing {
    /// A page of an entity's events that a webhook wanted, the newest first. Their deliveries come from an index, which
    /// may lag behind.
    pub async fn list_events(
        &self,
        entity: &AuthorizedEntity,
        request: &EventListRequest,
    ) -> Result<EventPage, DeliveryError> {
        let EventListRequest { filters, limit, cursor } = request;
        let after = match cursor {
            Some(cursor) => Some(self.position(cursor, entity, filters).await?),
            None => None,
        };
        let whole = range(filters, self.clock.now() - self.retention, None);
        let (items, end) = self.deliveries.page_of_events(entity, filters, whole, after, *limit).await?;
        let next_cursor = match end {
            Some(end) => Some(cursor::write(&end, &*self.rings.get().await?, &*self.random, entity.id(), filters)),
            None => None,
        };
        Ok(EventPage { items, next_cursor })
    }
}

impl Deliveries {
    /// The newest events of a range after a position: up to `limit`, or fewer when too few are found among the entries
    /// read for a page. Also returns the position after which the next page begins, if there may be one.
    async fn page_of_events(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        whole: KeyRange,
        after: Option<EventPosition>,
        limit: usize,
    ) -> Result<(Vec<ListedEvent>, Option<EventPosition>), TableError> {
        let mut range = match &after {
            Some(position) => position.rest(whole),
            None => whole,
        };
        let mut found = FoundEvents { after, events: BTreeMap::new() };
        let mut looked_at = 0;
        let mut may_be_read = MAX_HEADS_READ;
        let mut look = limit + 1;
        loop {
            let most = i32::try_from(look).unwrap_or(i32::MAX);
            let looked = self.look(entity.id(), &range, filters, true, most).await?;
            let (first, others) = looked.found.split_at(looked.found.len().min(may_be_read));
            found.add(self.heads(first.iter().map(|found| &found.id)).await?.into_iter().flatten());
            may_be_read -= first.len();
            looked_at += looked.looked_at;
            let end = match first.last() {
                Some(last) if !others.is_empty() => Some(last.position.clone()),
                _ => looked.end,
            };
            let Some(end) = end else { return Ok(found.page(limit, None)) };
            range = range.before(&end);
            // One more than the page shows whether there is a next page.
            if found.events.len() > limit || may_be_read == 0 || looked_at >= MAX_ENTRIES_READ {
                // The rest of the millisecond may have deliveries of the last event. It is read regardless of the
                // limits, since an entity publishes few events within a millisecond.
                let rest = range.within(KeyRange::of_millisecond(end.time()));
                found.add(self.all_heads(entity, filters, rest).await?);
                return Ok(found.page(limit, Some(end.time())));
            }
            // A narrow filter lets few deliveries pass, so the calls grow.
            look = (look * 4).min(MAX_ENTRIES_READ - looked_at);
        }
    }
}

/// The events of the deliveries that were read for a page.
struct FoundEvents {
    /// The position after which the page begins.
    after: Option<EventPosition>,
    events: BTreeMap<EventId, ListedEvent>,
}

impl FoundEvents {
    /// Adds deliveries to their events.
    fn add(&mut self, heads: impl IntoIterator<Item = HeadItem>) {
        for HeadItem { event, delivery, .. } in heads {
            if matches!(&self.after, Some(EventPosition::Event(last)) if event >= *last) {
                continue;
            }
            let listed = self.events.entry(event).or_insert_with_key(|event| ListedEvent {
                event_identifier: event.clone(),
                r#type: delivery.r#type,
                created_date: delivery.created_date,
                deliveries: Vec::new(),
            });
            listed.add(delivery.status, delivery.webhook_identifier);
        }
    }

    /// The first events, and the position after which the next page begins. `read_to` is the time from which on all
    /// deliveries were read; `None` when there are no earlier ones.
    fn page(self, limit: usize, read_to: Option<Time>) -> (Vec<ListedEvent>, Option<EventPosition>) {
        let has_more = self.events.len() > limit;
        let items: Vec<_> = self.events.into_values().rev().take(limit).collect();
        let end = match items.last() {
            Some(last) if has_more => Some(EventPosition::Event(last.event_identifier.clone())),
            _ => read_to.map(EventPosition::Time),
        };
        (items, end)
    }
}

impl ListedEvent {
    fn add(&mut self, status: Status, webhook: WebhookId) {
        match self.deliveries.iter_mut().find(|group| group.status == status) {
            Some(group) => {
                group.count += 1;
                group.webhook_identifiers.push(webhook);
            }
            None => self.deliveries.push(DeliveriesInState { status, count: 1, webhook_identifiers: vec![webhook] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{
        queries::by_owner::ListPosition,
        store::item::tests::{LATER, NOW, head},
    };
    use auth::EntityId;
    use base::{DeliveryId, SystemRandom, testing::CountingRandom};
    use storage::sealing::ring;

    /// A delivery of an event to a new webhook.
    fn delivery(event: &EventId, status: Status) -> HeadItem {
        let mut head = head();
        head.event = event.clone();
        head.delivery.created_date = event.time();
        head.delivery.status = status;
        head.delivery.webhook_identifier = WebhookId::new(NOW, &SystemRandom);
        head
    }

    /// The page of the deliveries of these events after a position.
    fn page(
        events: &[EventId],
        after: Option<EventPosition>,
        limit: usize,
        read_to: Option<Time>,
    ) -> (Vec<EventId>, Option<EventPosition>) {
        let mut found = FoundEvents { after, events: BTreeMap::new() };
        found.add(events.iter().map(|event| delivery(event, Status::Pending)));
        let (items, end) = found.page(limit, read_to);
        (items.into_iter().map(|item| item.event_identifier).collect(), end)
    }

    #[test]
    fn the_deliveries_of_an_event_are_counted_by_state() {
        let random = CountingRandom::default();
        let [one, other] = [NOW, NOW].map(|time| EventId::new(time, &random));
        let mut found = FoundEvents { after: None, events: BTreeMap::new() };
        let heads = [
            delivery(&one, Status::Delivered),
            delivery(&other, Status::Failed),
            delivery(&one, Status::Retrying),
            delivery(&one, Status::Delivered),
        ];
        let webhooks = heads.clone().map(|head| head.delivery.webhook_identifier);
        // Two calls may find parts of an event.
        let (first, second) = heads.split_at(2);
        found.add(first.to_vec());
        found.add(second.to_vec());
        let listed = found.events.remove(&one).expect("it was found");
        let in_state = |status, of: &[usize]| DeliveriesInState {
            status,
            count: of.len(),
            webhook_identifiers: of.iter().map(|index| webhooks[*index].clone()).collect(),
        };
        let deliveries = vec![in_state(Status::Delivered, &[0, 3]), in_state(Status::Retrying, &[2])];
        let r#type = "booking.created".to_owned();
        assert_eq!(listed, ListedEvent { event_identifier: one, r#type, created_date: NOW, deliveries });
        assert_eq!(found.events[&other].deliveries, [in_state(Status::Failed, &[1])]);
    }

    #[test]
    fn pages_show_each_event_once_even_within_a_millisecond() {
        let random = CountingRandom::default();
        let events: Vec<_> = [NOW, NOW, NOW, LATER].into_iter().map(|time| EventId::new(time, &random)).collect();
        let mut expected = events.clone();
        expected.sort_by(|one, other| other.cmp(one));
        let mut shown = Vec::new();
        let mut after = None;
        loop {
            let (items, end) = page(&events, after, 1, None);
            shown.extend(items);
            match end {
                Some(end) => after = Some(end),
                None => break,
            }
        }
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_page_whose_reading_ended_early_has_a_next_page() {
        let event = EventId::new(LATER, &CountingRandom::default());
        let read_to = Some(EventPosition::Time(NOW));
        assert_eq!(page(&[], None, 1, Some(NOW)), (vec![], read_to.clone()));
        assert_eq!(page(std::slice::from_ref(&event), None, 1, Some(NOW)), (vec![event.clone()], read_to));
        assert_eq!(page(std::slice::from_ref(&event), None, 1, None), (vec![event], None));
    }

    #[test]
    fn the_next_page_begins_in_the_millisecond_of_an_event_or_before_a_time() {
        let random = CountingRandom::default();
        let event = EventId::new(NOW, &random);
        let whole = KeyRange::since(Time::from_millis(0));
        let at = |time| ListPosition::parse(&format!("{time}#{}", DeliveryId::new(time, &random))).expect("a position");
        let after_event = EventPosition::Event(event).rest(whole.clone());
        assert!(after_event.holds(&at(NOW)) && !after_event.holds(&at(LATER)));
        let before_time = EventPosition::Time(LATER).rest(whole);
        assert!(before_time.holds(&at(NOW)) && !before_time.holds(&at(LATER)));
    }

    #[test]
    fn a_cursor_of_events_is_read_back_and_no_cursor_of_deliveries() {
        let entity = EntityId::parse("hotel").expect("an entity");
        let filters = Filters::default();
        let event = EventId::new(NOW, &SystemRandom);
        for position in [EventPosition::Event(event), EventPosition::Time(NOW)] {
            let cursor = cursor::write(&position, &ring("a"), &SystemRandom, &entity, &filters);
            let cursor = Cursor::parse(&cursor).expect("it has the form of one");
            assert_eq!(cursor.open(&ring("a"), &entity, &filters), Ok(position));
            assert!(cursor.open::<ListPosition>(&ring("a"), &entity, &filters).is_err());
        }
        for text in ["", "evt_", "yesterday", "dlv_01m7w5gmev32p3wwt3y0b8j32h"] {
            assert_eq!(EventPosition::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_of_events_has_no_filters_of_deliveries() {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        for name in ["status", "webhookIdentifier", "eventIdentifier"] {
            let mut query = Query::new([(name, "failed")]);
            Filters::take_of_events(&mut query, &entity);
            let problem = query.finish().expect_err("a violation");
            assert_eq!(crate::testing::fields(&problem), [name]);
        }
        let [most, more] = ["50", "51"].map(limit::<MAX_LIMIT>);
        assert_eq!((most, more), (Some(50), None));
    }
}
