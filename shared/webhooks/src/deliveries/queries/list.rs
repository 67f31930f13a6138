//! Listing an entity's deliveries, the newest first, a page at a time.

use std::time::Duration;

use serde::Serialize;

use crate::deliveries::{
    delivery::Delivery,
    error::DeliveryError,
    queries::{
        by_owner::{KeyRange, ListPosition},
        cursor::{self, Cursor, EXPECTED, Position},
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
/// The most deliveries that a page may have.
const MAX_LIMIT: usize = 100;
/// The most entries that are read for one page. A page that finds few deliveries ends early and gives a cursor, so that
/// the cost of a request does not grow with the entity's deliveries. This many entries are about 0.5 MB; one call to
/// the table reads 1 MB at most.
pub(super) const MAX_ENTRIES_READ: usize = 2_000;
/// The most heads that are read for one page, at half a read unit each. Most filters read only the heads of their page.
/// A filter for pending deliveries has to read every `new` one, which may have arrived since.
pub(super) const MAX_HEADS_READ: usize = 250;

/// Lists deliveries, and the events that they belong to (`list_events`).
pub struct Listing {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// The retention: older deliveries are not shown, though the table may keep them for days.
    pub retention: Duration,
    /// Seals the cursors.
    pub rings: KeyRings,
    /// The clock that decides which deliveries are past their retention.
    pub clock: SharedClock,
    /// Random source of the nonces of sealed cursors.
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
    items: Vec<Delivery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListRequest {
    /// Reads the parameters of a query for this entity's deliveries.
    pub fn read(mut query: Query<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take(&mut query, entity.id());
        let limit = query.optional("limit", "a number from 1 to 100", limit::<MAX_LIMIT>).unwrap_or(DEFAULT_LIMIT);
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
        let range = range(filters, self.clock.now() - self.retention, behind.as_ref());
        let now = self.clock.now();
        let (heads, end) = self.deliveries.page(entity, filters, range, *limit, now).await?;
        let items = heads.into_iter().map(|head| head.shown(now)).collect();
        let next_cursor = match end {
            Some(end) => Some(cursor::write(&end, &*self.rings.get().await?, &*self.random, entity.id(), filters)),
            None => None,
        };
        Ok(DeliveryPage { items, next_cursor })
    }

    pub(super) async fn position<P: Position>(
        &self,
        cursor: &Cursor,
        entity: &AuthorizedEntity,
        filters: &Filters,
    ) -> Result<P, DeliveryError> {
        let ring = self.rings.for_text(cursor.sealed()).await?;
        Ok(cursor.open(&ring, entity.id(), filters)?)
    }
}

/// Reads the number of items of a page, in digits only.
pub(super) fn limit<const MAX: usize>(text: &str) -> Option<usize> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = digits.then(|| text.parse().ok())??;
    (1..=MAX).contains(&limit).then_some(limit)
}

/// The range of the list that is still to be shown.
pub(super) fn range(filters: &Filters, oldest: Time, behind: Option<&ListPosition>) -> KeyRange {
    let from = filters.created_from.map_or(oldest, |from| from.max(oldest));
    let range = filters.created_to.map_or_else(|| KeyRange::since(from), |to| KeyRange::between(from, to));
    // The deliveries of one event are within a millisecond.
    let range = match &filters.event {
        Some(event) => range.within(KeyRange::of_event(event)),
        None => range,
    };
    match behind {
        Some(position) => range.before(position),
        None => range,
    }
}

impl Deliveries {
    /// The newest deliveries of a range that pass the filters: up to `limit`, or fewer when too few are found among the
    /// entries read for a page. Also returns the position after which the next page begins, if there may be one.
    ///
    /// The index finds the deliveries, and their heads have the current state: the index does not show the arrival at
    /// the first attempt, and has neither counts nor times.
    pub(crate) async fn page(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        range: KeyRange,
        limit: usize,
        now: Time,
    ) -> Result<(Vec<HeadItem>, Option<ListPosition>), TableError> {
        let mut page = Filling { heads: Vec::new(), limit, looked_at: 0, look: limit + 1, may_be_read: MAX_HEADS_READ };
        for (part, may_be_pending) in self.by_age(range, filters, now).await {
            if let Some(end) = self.fill(&mut page, entity, filters, part, may_be_pending).await? {
                return Ok((page.heads, Some(end)));
            }
        }
        Ok((page.heads, None))
    }

    /// Splits the range by age, the newer part first; the flag says whether `new` deliveries of a part may be pending.
    /// While the sweep works, it marks overdue deliveries as pending, so older `new` ones have arrived.
    async fn by_age(&self, range: KeyRange, filters: &Filters, now: Time) -> Vec<(KeyRange, bool)> {
        let settled = now - SETTLED_AFTER;
        let older = range.clone().before_time(settled);
        let all = vec![(range.clone(), true)];
        if !is_by_age(&filters.statuses) || older.is_empty() {
            return all;
        }
        // A list must not fail for this: after an error the heads of all `new` deliveries are read.
        let is_late = self.any_overdue_since(now - SWEPT_WITHIN).await.unwrap_or_else(|error| {
            tracing::warn!(
                error = %logging::chain(&error),
                "a list could not read whether the sweep is late; it reads the heads of all new deliveries"
            );
            true
        });
        if is_late { all } else { vec![(range.within(KeyRange::since(settled)), true), (older, false)] }
    }

    /// Fills a page from a part of a range. Returns the position after which the next page begins, if this one is full
    /// or the limits of reading are reached.
    async fn fill(
        &self,
        page: &mut Filling,
        entity: &AuthorizedEntity,
        filters: &Filters,
        mut range: KeyRange,
        may_be_pending: bool,
    ) -> Result<Option<ListPosition>, TableError> {
        loop {
            let most = i32::try_from(page.look).unwrap_or(i32::MAX);
            let looked = self.look(entity.id(), &range, filters, may_be_pending, most).await?;
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
                found = others;
                at_once = MAX_LIMIT;
            }
            page.looked_at += looked.looked_at;
            let Some(end) = looked.end else { return Ok(None) };
            if page.looked_at >= MAX_ENTRIES_READ {
                return Ok(Some(end));
            }
            range = range.before(&end);
            // A narrow filter lets few deliveries pass, so the calls grow.
            page.look = (page.look * 4).min(MAX_ENTRIES_READ - page.looked_at);
        }
    }
}

/// A page that is being filled.
struct Filling {
    heads: Vec<HeadItem>,
    /// The most deliveries of the page.
    limit: usize,
    looked_at: usize,
    /// How many entries the next call reads.
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
            assert_eq!(limit::<MAX_LIMIT>(text), Some(number));
        }
        for text in ["", "0", "101", "-1", "+1", "1.0", "1e1", " 1", "١", "99999999999999999999", "ten"] {
            assert_eq!(limit::<MAX_LIMIT>(text), None, "{text}");
        }
    }

    #[test]
    fn deliveries_past_their_retention_are_not_read() {
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let from = |time| Filters { created_from: Some(time), ..Filters::default() };
        assert_eq!(range(&from(early), late, None), KeyRange::since(late));
        assert_eq!(range(&from(late), early, None), KeyRange::since(late));
        let to = Filters { created_to: Some(early), ..Filters::default() };
        assert!(range(&to, late, None).is_empty());
    }

    #[test]
    fn only_the_millisecond_of_an_event_is_read() {
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let event = EventId::new(late, &CountingRandom::default());
        let of_event = Filters { event: Some(event.clone()), ..Filters::default() };
        assert_eq!(range(&of_event, early, None), KeyRange::of_event(&event));
        assert!(range(&Filters { created_to: Some(late), ..of_event.clone() }, early, None).is_empty());
        assert!(range(&of_event, late + Duration::from_millis(1), None).is_empty(), "past its retention");
    }
}
