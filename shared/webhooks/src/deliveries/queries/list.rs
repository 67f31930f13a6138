//! Lists an entity's deliveries, newest first, one page at a time.
//!
//! A list by webhook or by a state other than `delivered` is merged from the index partitions that contain these
//! deliveries, and from the newest events, whose deliveries may be in no index yet (`merge`). Any other list reads the
//! entity's events, or those about a subject. So the cost of a page depends on its content; a page that reaches a limit
//! ends with a cursor.

use std::{ops::ControlFlow, time::Duration};

use serde::Serialize;

use crate::deliveries::{
    error::DeliveryError,
    queries::{
        cursor::{self, Cursor, List},
        filters::Filters,
        next_page::NextPage,
        of_events::Included,
        page::{Filling, MAX_ENTRIES_READ},
        range::{KeyRange, ListPosition},
    },
    state::head::Head,
    store::Deliveries,
    view::DeliveryView,
};
use auth::AuthorizedEntity;
use base::{EventId, SharedClock, SharedRandom, Time};
use problem::{Problem, Query as QueryParameters};
use storage::{KeyRings, TableError};

/// How many deliveries a page has by default.
const DEFAULT_LIMIT: usize = 25;
/// The maximum number of deliveries that a page may have.
const MAX_LIMIT: usize = 100;

/// Lists deliveries, and the events that they belong to (`list_events`).
pub struct Listing {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// The retention: older deliveries are not shown, even if the table still has them.
    pub retention: Duration,
    /// Seals the cursors.
    pub rings: KeyRings,
    /// The clock that determines which deliveries have expired.
    pub clock: SharedClock,
    /// The random source for the nonces of sealed cursors.
    pub random: SharedRandom,
}

/// A request for a page of a list.
#[derive(Debug)]
pub struct ListRequest {
    filters: Filters,
    limit: usize,
    cursor: Option<Cursor>,
}

/// A page of a list, as a client sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryPage {
    items: Vec<DeliveryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListRequest {
    /// Reads the parameters of a query for this entity's deliveries.
    pub fn read(mut query: QueryParameters<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take(&mut query, entity.id());
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT);
        Ok(Self { filters, limit, cursor: Cursor::take_last(query)? })
    }
}

impl Listing {
    /// A page of an entity's deliveries, newest first.
    pub async fn list(&self, entity: &AuthorizedEntity, request: &ListRequest) -> Result<DeliveryPage, DeliveryError> {
        let ListRequest { filters, limit, cursor } = request;
        let start = match cursor {
            Some(cursor) => Some(self.start(List::Deliveries, cursor, entity, filters).await?),
            None => None,
        };
        let range = range(filters, self.clock.now() - self.retention);
        let (heads, next) =
            self.deliveries.page(entity, filters, range, start.as_ref(), *limit, self.clock.now()).await?;
        let now = self.clock.now();
        let items = heads.into_iter().map(|head| head.shown(now)).collect();
        let next_cursor = match next {
            Some(next) => Some(cursor::write(
                List::Deliveries,
                &next,
                &*self.rings.get().await?,
                &*self.random,
                entity.id(),
                filters,
            )),
            None => None,
        };
        Ok(DeliveryPage { items, next_cursor })
    }

    /// The start of the page that a cursor leads to.
    pub(super) async fn start(
        &self,
        list: List,
        cursor: &Cursor,
        entity: &AuthorizedEntity,
        filters: &Filters,
    ) -> Result<NextPage, DeliveryError> {
        let ring = self.rings.for_text(cursor.sealed()).await?;
        Ok(cursor.open(list, &ring, entity.id(), filters)?)
    }
}

/// The list's range.
pub(super) fn range(filters: &Filters, oldest: Time) -> KeyRange {
    let from = filters.created_from.map_or(oldest, |from| from.max(oldest));
    filters.created_until.map_or_else(|| KeyRange::since(from), |to| KeyRange::between(from, to))
}

impl Deliveries {
    /// The newest deliveries of a range that pass the filters, from the start of a page: up to `limit`, or fewer if the
    /// entries that one page may read do not contain enough. Also returns the start of the next page, if there may be
    /// one.
    ///
    /// # Errors
    /// [`WebhookError::TooManyRequests`](crate::subscriptions::WebhookError::TooManyRequests) if the entity listed the
    /// open deliveries of many webhooks too often.
    pub(crate) async fn page(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        range: KeyRange,
        start: Option<&NextPage>,
        limit: usize,
        now: Time,
    ) -> Result<(Vec<Head>, Option<NextPage>), DeliveryError> {
        let mut filling = Filling::new(entity.id(), filters, limit, now);
        if filters.event.is_none() && filters.are_indexed() {
            let next = self.fill_from_indexes(&mut filling, entity, range, start, now).await?;
            return Ok((filling.heads, next));
        }
        let range = start.map_or_else(|| range.clone(), |start| range.clone().before(&start.before));
        let end = match &filters.event {
            Some(event) => self.fill_from_event(&mut filling, event, range).await?,
            None => self.fill_from_events(&mut filling, range).await?,
        };
        Ok((filling.heads, end.map(NextPage::before)))
    }

    /// Fills a page from an event's deliveries. Another entity's event has none.
    async fn fill_from_event(
        &self,
        filling: &mut Filling<'_>,
        event: &EventId,
        range: KeyRange,
    ) -> Result<Option<ListPosition>, TableError> {
        let event = self.events.item_eventual(event).await?;
        let own = event.filter(|event| event.owner_identifier == *filling.entity);
        let candidates = filling.filters.candidates(own.into_iter().collect(), &range);
        Ok(self.fill(filling, candidates, false).await?.break_value().flatten())
    }

    /// Fills a page from the entity's events, or from those about a subject.
    async fn fill_from_events(
        &self,
        filling: &mut Filling<'_>,
        mut range: KeyRange,
    ) -> Result<Option<ListPosition>, TableError> {
        let mut entries = 0;
        let mut look = filling.limit + 1;
        loop {
            let most = i32::try_from(look).unwrap_or(i32::MAX);
            let page = self.events_of(filling.entity, &range, filling.filters, Included::WithDeliveries, most).await?;
            entries += page.looked_at;
            let candidates = filling.filters.candidates(page.found, &range);
            if let ControlFlow::Break(end) = self.fill(filling, candidates, page.end.is_some()).await? {
                return Ok(end);
            }
            let Some(end) = page.end else { return Ok(None) };
            if entries >= MAX_ENTRIES_READ {
                return Ok(Some(end));
            }
            range = range.before(&end);
            // A narrow filter lets few events through, so each call reads more.
            look = (look * 4).min(MAX_ENTRIES_READ - entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_past_their_retention_are_not_read() {
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let from = |time| Filters { created_from: Some(time), ..Filters::default() };
        assert_eq!(range(&from(early), late), KeyRange::since(late));
        assert_eq!(range(&from(late), early), KeyRange::since(late));
        let to = Filters { created_until: Some(early), ..Filters::default() };
        assert!(range(&to, late).is_empty());
    }
}
