//! Lists an entity's events, newest first, one page at a time.

use futures::future::try_join_all;
use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        queries::{
            cursor::{self, Cursor, List},
            filters::Filters,
            list::{Listing, range},
            next_page::NextPage,
            of_events::{Included, position},
            page::{MAX_ENTRIES_READ, MAX_HEADS_READ},
            range::{KeyRange, ListPosition},
        },
        state::{delivery::Status, head::Head},
        store::Deliveries,
    },
    events::store::EventItem,
};
use auth::AuthorizedEntity;
use base::{EventId, Time, WebhookId};
use problem::{Problem, Query};
use storage::TableError;

/// How many events a page has by default.
const DEFAULT_LIMIT: usize = 20;
/// The maximum number of events that a page may have.
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
    id: EventId,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    timestamp: Time,
    /// When its content was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_date: Option<Time>,
    deliveries: Vec<DeliveriesInState>,
}

/// An event's deliveries that are in one state.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveriesInState {
    status: Status,
    count: usize,
    webhook_identifiers: Vec<WebhookId>,
}

impl EventListRequest {
    /// Reads the parameters of a query for this entity's events.
    pub fn read(mut query: Query<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take_of_events(&mut query, entity.id());
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT);
        Ok(Self { filters, limit, cursor: Cursor::take_last(query)? })
    }
}

impl Listing {
    /// A page of an entity's events that matched a webhook, newest first.
    pub async fn list_events(
        &self,
        entity: &AuthorizedEntity,
        request: &EventListRequest,
    ) -> Result<EventPage, DeliveryError> {
        let EventListRequest { filters, limit, cursor } = request;
        let mut range = range(filters, self.clock.now() - self.retention);
        if let Some(cursor) = cursor {
            range = range.before(&self.start(List::Events, cursor, entity, filters).await?.before);
        }
        let (items, end) = self.deliveries.page_of_events(entity, filters, range, *limit, self.clock.now()).await?;
        let next_cursor = match end {
            Some(end) => {
                let ring = self.rings.get().await?;
                Some(cursor::write(List::Events, &NextPage::before(end), &ring, &*self.random, entity.id(), filters))
            }
            None => None,
        };
        Ok(EventPage { items, next_cursor })
    }
}

impl Deliveries {
    /// The newest events of a range: up to `limit`, or fewer if the entries that one page may read do not contain
    /// enough. Also returns the position after which the next page begins, if there may be one.
    async fn page_of_events(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        mut range: KeyRange,
        limit: usize,
        now: Time,
    ) -> Result<(Vec<ListedEvent>, Option<ListPosition>), TableError> {
        let mut found = Vec::new();
        let mut entries = 0;
        // Reading one more than fits shows whether there is a next page.
        let mut look = limit + 1;
        let end = loop {
            let most = i32::try_from(look).unwrap_or(i32::MAX);
            let page = self.events_of(entity.id(), &range, filters, Included::All, most).await?;
            entries += page.looked_at;
            // The range goes back as far as the deployment's retention, but a single event may expire earlier.
            found.extend(page.found.into_iter().filter(|event| event.is_kept(now)));
            if found.len() > limit {
                found.truncate(limit);
                break found.last().map(|event| position(event.id()));
            }
            let Some(end) = page.end else { break None };
            if entries >= MAX_ENTRIES_READ {
                break Some(end);
            }
            range = range.before(&end);
            // A narrow filter lets few events through, so each call reads more.
            look = (look * 4).min(MAX_ENTRIES_READ - entries);
        };
        // An event may have 200 deliveries, so a page may have fewer events.
        let mut read = 0;
        let shown = found.iter().take_while(|event| {
            let is_shown = read < MAX_HEADS_READ;
            read += event.targets.len();
            is_shown
        });
        let shown = shown.count();
        let end = if shown < found.len() { found.get(shown - 1).map(|event| position(event.id())) } else { end };
        found.truncate(shown);
        let listed = found.iter().map(async |event| {
            let deliveries = self.of_event(event).await;
            deliveries.map(|deliveries| ListedEvent::of(event, deliveries))
        });
        Ok((try_join_all(listed).await?, end))
    }
}

impl ListedEvent {
    fn of(event: &EventItem, deliveries: Vec<Head>) -> Self {
        let mut listed = Self {
            id: event.id().clone(),
            r#type: event.r#type.clone(),
            subject: event.subject.clone(),
            timestamp: event.id().time(),
            erased_date: event.erased_date,
            deliveries: Vec::new(),
        };
        deliveries.into_iter().for_each(|head| listed.add(head.status(), head.delivery.webhook_identifier));
        listed
    }

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
    use crate::{
        deliveries::state::{
            State,
            head::tests::{NOW, event_and_head},
        },
        events::store::Target,
    };
    use base::testing::CountingRandom;
    use std::time::Duration;

    #[test]
    fn the_deliveries_of_an_event_are_counted_by_state() {
        let random = CountingRandom::default();
        let (event, head) = event_and_head("{}");
        let webhooks = [1, 2, 3].map(|_| WebhookId::new(NOW, &random));
        let targets = webhooks.iter().map(|webhook| Target::of(webhook.clone(), String::new()));
        let item = EventItem::new(&event, targets.collect(), NOW, Duration::from_secs(60));
        let states = [State::Delivered, State::Failed, State::Delivered];
        let deliveries = webhooks.iter().zip(states).map(|(webhook, state)| {
            let mut head = head.clone();
            head.state = state;
            head.delivery.webhook_identifier = webhook.clone();
            head
        });
        let listed = ListedEvent::of(&item, deliveries.collect());
        let in_state = |status, of: &[usize]| DeliveriesInState {
            status,
            count: of.len(),
            webhook_identifiers: of.iter().map(|index| webhooks[*index].clone()).collect(),
        };
        assert_eq!(listed.deliveries, [in_state(Status::Delivered, &[0, 2]), in_state(Status::Failed, &[1])]);
        assert_eq!((listed.id, listed.timestamp), (event.id, NOW));
    }
}
