//! Listing an entity's deliveries, the newest first, a page at a time.

use std::time::Duration;

use futures::future::try_join_all;
use serde::Serialize;

use super::{
    by_entity::{ListPosition, Stretch},
    cursor::{self, Cursor, EXPECTED},
    delivery::Delivery,
    error::DeliveryError,
    filters::Filters,
    item::HeadItem,
    store::Deliveries,
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time};
use problem::{Problem, Query};
use storage::{KeyRings, TableError};

/// How many deliveries a page has unless the query says otherwise.
const DEFAULT_LIMIT: usize = 25;
/// How many a page may have.
const MAX_LIMIT: usize = 100;
/// The most deliveries that are read for one page: a page that finds few ends early and gives a cursor, so that a
/// request costs the same however many deliveries its entity has. So many are about 1 MB, the most that the table reads
/// in one call.
const LOOKED_AT: usize = 2_000;

/// Lists deliveries.
pub struct Listing {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Older deliveries are not shown, though the table may still have them for days.
    pub retention: Duration,
    /// Seals the cursors.
    pub rings: KeyRings,
    /// Decides which deliveries are past their retention.
    pub clock: SharedClock,
    /// Makes each cursor's sealing unique.
    pub random: SharedRandom,
}

/// The page of a list that a client asks for.
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
    items: Vec<Delivery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListRequest {
    /// Reads the parameters of a query for this entity's deliveries.
    pub fn read(mut query: Query<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take(&mut query, entity.id());
        let limit = query.optional("limit", "a number from 1 to 100", limit).unwrap_or(DEFAULT_LIMIT);
        let cursor = query.optional("cursor", EXPECTED, Cursor::parse);
        query.finish()?;
        Ok(Self { filters, limit, cursor })
    }
}

impl Listing {
    /// A page of an entity's deliveries, the newest first.
    pub async fn list(&self, entity: &AuthorizedEntity, request: &ListRequest) -> Result<DeliveryPage, DeliveryError> {
        let ListRequest { filters, limit, cursor } = request;
        let behind = match cursor {
            Some(cursor) => Some(self.position(cursor, entity, filters).await?),
            None => None,
        };
        let stretch = stretch(filters, self.clock.now() - self.retention, behind.as_ref());
        let (items, end) = self.deliveries.page(entity, filters, stretch, *limit).await?;
        let items = self.deliveries.with_waits(items, self.clock.now()).await?;
        let next_cursor = match end {
            Some(end) => Some(cursor::write(&end, &*self.rings.get().await?, &*self.random, entity.id(), filters)),
            None => None,
        };
        Ok(DeliveryPage { items, next_cursor })
    }

    async fn position(
        &self,
        cursor: &Cursor,
        entity: &AuthorizedEntity,
        filters: &Filters,
    ) -> Result<ListPosition, DeliveryError> {
        let ring = self.rings.for_text(cursor.sealed()).await?;
        Ok(cursor.open(&ring, entity.id(), filters)?)
    }
}

/// The number of deliveries of a page, in digits only.
fn limit(text: &str) -> Option<usize> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = digits.then(|| text.parse().ok())??;
    (1..=MAX_LIMIT).contains(&limit).then_some(limit)
}

/// The stretch that the page is a part of.
fn stretch(filters: &Filters, oldest: Time, behind: Option<&ListPosition>) -> Stretch {
    let from = filters.created_from.map_or(oldest, |from| from.max(oldest));
    let stretch = filters.created_to.map_or_else(|| Stretch::since(from), |to| Stretch::between(from, to));
    // The deliveries of one event are read alone.
    let stretch = match &filters.event {
        Some(event) => stretch.within(Stretch::of_event(event)),
        None => stretch,
    };
    match behind {
        Some(position) => stretch.before(position),
        None => stretch,
    }
}

impl Deliveries {
    /// Says of each delivery that waits what it waits for. The index does not know that, so that an attempt need not
    /// write it there: the heads of the open deliveries of a page are read instead.
    pub(super) async fn with_waits(&self, items: Vec<Delivery>, now: Time) -> Result<Vec<Delivery>, TableError> {
        let waits = items.iter().map(|item| async {
            // The index may lag behind: what is said must be of the time that is shown.
            let is_as_shown = |head: &HeadItem| head.delivery().next_attempt_date == item.next_attempt_date;
            match item.next_attempt_date {
                None => Ok(None),
                Some(_) => match self.head(&item.id).await {
                    Ok(head) => Ok(head.filter(is_as_shown).and_then(|head| head.waiting_for(now))),
                    // A delivery that cannot be read holds up no other.
                    Err(TableError::Item { .. }) => Ok(None),
                    Err(error) => Err(error),
                },
            }
        });
        let waits = try_join_all(waits).await?;
        Ok(items.into_iter().zip(waits).map(|(item, waiting_for)| Delivery { waiting_for, ..item }).collect())
    }

    /// The newest deliveries of a stretch that pass the filters: as many as are asked for, or fewer when there are no
    /// more or too few among those that are read. With them comes the position behind which the next page begins, if there
    /// may be one.
    pub(super) async fn page(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        mut stretch: Stretch,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<ListPosition>), TableError> {
        let (mut items, mut looked_at, mut look) = (Vec::new(), 0, limit + 1);
        loop {
            let most = i32::try_from(look).unwrap_or(i32::MAX);
            let page = self.look(entity.id(), &stretch, filters, most).await?;
            items.extend(page.found);
            // One more than the page shows whether there is a next page.
            if items.len() > limit {
                items.truncate(limit);
                let end = items.last().map(ListPosition::of);
                return Ok((items, end));
            }
            looked_at += page.looked_at;
            let Some(end) = page.end else { return Ok((items, None)) };
            if looked_at >= LOOKED_AT {
                return Ok((items, Some(end)));
            }
            stretch = stretch.before(&end);
            // Few pass a narrow filter, so calls grow.
            look = (look * 4).min(LOOKED_AT - looked_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{EventId, testing::CountingRandom};

    #[test]
    fn a_limit_is_a_number_from_1_to_100() {
        for (text, number) in [("1", 1), ("25", 25), ("100", 100), ("007", 7)] {
            assert_eq!(limit(text), Some(number));
        }
        for text in ["", "0", "101", "-1", "+1", "1.0", "1e1", " 1", "١", "99999999999999999999", "ten"] {
            assert_eq!(limit(text), None, "{text}");
        }
    }

    #[test]
    fn deliveries_past_their_retention_are_not_read() {
        let (early, late) = (Time::from_millis(1_000), Time::from_millis(2_000));
        let from = |time| Filters { created_from: Some(time), ..Filters::default() };
        assert_eq!(stretch(&from(early), late, None), Stretch::since(late));
        assert_eq!(stretch(&from(late), early, None), Stretch::since(late));
        let to = Filters { created_to: Some(early), ..Filters::default() };
        assert!(stretch(&to, late, None).is_empty());
    }

    #[test]
    fn of_one_event_no_more_than_its_millisecond_is_read() {
        let (early, late) = (Time::from_millis(1_000), Time::from_millis(2_000));
        let event = EventId::new(late, &CountingRandom::default());
        let of_event = Filters { event: Some(event.clone()), ..Filters::default() };
        assert_eq!(stretch(&of_event, early, None), Stretch::of_event(&event));
        assert!(stretch(&Filters { created_to: Some(late), ..of_event.clone() }, early, None).is_empty());
        assert!(stretch(&of_event, late + Duration::from_millis(1), None).is_empty(), "past its retention");
    }
}
