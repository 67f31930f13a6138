//! Listing an entity's deliveries, the newest first, a page at a time.

use std::time::Duration;

use serde::Serialize;

use crate::deliveries::{
    delivery::Delivery,
    error::DeliveryError,
    queries::{
        by_owner::{KeyRange, ListPosition},
        cursor::{self, Cursor, EXPECTED},
        filters::Filters,
    },
    store::{
        Deliveries,
        item::HeadItem,
        listed_status::{SETTLED_AFTER, SWEPT_WITHIN, is_by_age},
    },
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time, logging};
use problem::{Problem, Query};
use storage::{KeyRings, TableError};

/// How many deliveries a page has unless the query says otherwise.
const DEFAULT_LIMIT: usize = 25;
/// How many a page may have.
const MAX_LIMIT: usize = 100;
/// The most deliveries that are read for one page: a page that finds few ends early and gives a cursor, so that a
/// request costs the same however many deliveries its entity has. So many are some 0.5 MB; the table reads 1 MB in one
/// call at most.
const LOOKED_AT: usize = 2_000;
/// The most heads that are read for one page, at half a read unit each. Most filters read those of their page alone; one of
/// pending deliveries has to look at each that is new, and may have arrived since.
const HEADS: usize = 250;

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
        let now = self.clock.now();
        let (heads, end) = self.deliveries.page(entity, filters, stretch, *limit, now).await?;
        let items = heads.into_iter().map(|head| head.shown(now)).collect();
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
fn stretch(filters: &Filters, oldest: Time, behind: Option<&ListPosition>) -> KeyRange {
    let from = filters.created_from.map_or(oldest, |from| from.max(oldest));
    let stretch = filters.created_to.map_or_else(|| KeyRange::since(from), |to| KeyRange::between(from, to));
    // The deliveries of one event are read alone.
    let stretch = match &filters.event {
        Some(event) => stretch.within(KeyRange::of_event(event)),
        None => stretch,
    };
    match behind {
        Some(position) => stretch.before(position),
        None => stretch,
    }
}

impl Deliveries {
    /// The newest deliveries of a stretch that pass the filters: as many as are asked for, or fewer when there are no
    /// more or too few among those that are read. With them comes the position behind which the next page begins, if there
    /// may be one.
    ///
    /// The index finds them, and their heads say how they stand: the index does not tell when one arrives at its first
    /// attempt, and has neither counts nor times.
    pub(crate) async fn page(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        stretch: KeyRange,
        limit: usize,
        now: Time,
    ) -> Result<(Vec<HeadItem>, Option<ListPosition>), TableError> {
        let mut page = Filling { heads: Vec::new(), limit, looked_at: 0, look: limit + 1, may_be_read: HEADS };
        for (part, may_be_pending) in self.by_age(stretch, filters, now).await {
            if let Some(end) = self.fill(&mut page, entity, filters, (part, may_be_pending)).await? {
                return Ok((page.heads, Some(end)));
            }
        }
        Ok((page.heads, None))
    }

    /// The stretch in parts, the newer first, and whether `new` deliveries may be pending there. While the sweep announces
    /// overdue deliveries, and marks them as pending, older `new` ones have arrived.
    async fn by_age(&self, stretch: KeyRange, filters: &Filters, now: Time) -> Vec<(KeyRange, bool)> {
        let settled = now - SETTLED_AFTER;
        let older = stretch.clone().within(KeyRange::since(Time::from_millis(0)).until(settled));
        let all = vec![(stretch.clone(), true)];
        if !is_by_age(&filters.statuses) || older.is_empty() {
            return all;
        }
        // A list must not fail for this: without an answer, the heads of all `new` ones are read.
        let is_late = self.any_overdue_since(now - SWEPT_WITHIN).await.unwrap_or_else(|error| {
            tracing::warn!(error = %logging::chain(&error), "a list does not know whether the sweep is late");
            true
        });
        if is_late { all } else { vec![(stretch.within(KeyRange::since(settled)), true), (older, false)] }
    }

    /// Fills a page from a part of a stretch. Returns the position behind which the next page begins, when this one is full
    /// or enough was read for it.
    async fn fill(
        &self,
        page: &mut Filling,
        entity: &AuthorizedEntity,
        filters: &Filters,
        (mut stretch, may_be_pending): (KeyRange, bool),
    ) -> Result<Option<ListPosition>, TableError> {
        loop {
            let most = i32::try_from(page.look).unwrap_or(i32::MAX);
            let looked = self.look(entity.id(), &stretch, filters, may_be_pending, most).await?;
            let mut at_once = page.limit + 1 - page.heads.len();
            let mut found = looked.found.as_slice();
            while !found.is_empty() {
                let (first, others) = found.split_at(found.len().min(at_once).min(page.may_be_read));
                let read = self.heads(first.iter().map(|found| &found.id)).await?.into_iter().flatten();
                page.heads.extend(read.filter(|head| filters.is_in_state(head.delivery())));
                // One more than the page shows whether there is a next page.
                if page.heads.len() > page.limit {
                    page.heads.truncate(page.limit);
                    return Ok(page.heads.last().map(|head| ListPosition::of(head.delivery())));
                }
                page.may_be_read -= first.len();
                if page.may_be_read == 0 {
                    return Ok(first.last().map(|found| found.position.clone()));
                }
                (found, at_once) = (others, MAX_LIMIT);
            }
            page.looked_at += looked.looked_at;
            let Some(end) = looked.end else { return Ok(None) };
            if page.looked_at >= LOOKED_AT {
                return Ok(Some(end));
            }
            stretch = stretch.before(&end);
            // Few pass a narrow filter, so calls grow.
            page.look = (page.look * 4).min(LOOKED_AT - page.looked_at);
        }
    }
}

/// A page that is being filled.
struct Filling {
    heads: Vec<HeadItem>,
    /// How many the page has at most.
    limit: usize,
    looked_at: usize,
    /// How many entries the next call looks at.
    look: usize,
    /// How many heads may still be read.
    may_be_read: usize,
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
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let from = |time| Filters { created_from: Some(time), ..Filters::default() };
        assert_eq!(stretch(&from(early), late, None), KeyRange::since(late));
        assert_eq!(stretch(&from(late), early, None), KeyRange::since(late));
        let to = Filters { created_to: Some(early), ..Filters::default() };
        assert!(stretch(&to, late, None).is_empty());
    }

    #[test]
    fn of_one_event_no_more_than_its_millisecond_is_read() {
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let event = EventId::new(late, &CountingRandom::default());
        let of_event = Filters { event: Some(event.clone()), ..Filters::default() };
        assert_eq!(stretch(&of_event, early, None), KeyRange::of_event(&event));
        assert!(stretch(&Filters { created_to: Some(late), ..of_event.clone() }, early, None).is_empty());
        assert!(stretch(&of_event, late + Duration::from_millis(1), None).is_empty(), "past its retention");
    }
}
