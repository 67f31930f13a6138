//! An entity's events in order of creation, either all or those about one subject.

use futures::future::try_join_all;
use serde::Deserialize;

use crate::{
    deliveries::{
        queries::{
            by_webhook::Page,
            filters::Filters,
            range::{KeyRange, ListPosition},
        },
        store::Deliveries,
    },
    events::store::{self, EventItem},
};
use auth::EntityId;
use base::{DeliveryId, EventId, logging};
use storage::table::{Query, TableError, is};

const LOOKING: &str = "reading an entity's events";

/// An entry in an event index.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "sk")]
    pub(super) id: EventId,
    pub(super) r#type: String,
}

/// The events that a list reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Included {
    /// Events with deliveries.
    WithDeliveries,
    /// Including events that matched no webhook.
    All,
}

/// The order in which events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    NewestFirst,
    OldestFirst,
}

impl Deliveries {
    /// The newest events of a range with the requested type and subject, among `limit` entries per index partition. The
    /// index may lag.
    pub(super) async fn events_of(
        &self,
        entity: &EntityId,
        range: &KeyRange,
        filters: &Filters,
        included: Included,
        limit: i32,
    ) -> Result<Page<Vec<EventItem>>, TableError> {
        let queries = match &filters.subject {
            Some(subject) => vec![Query::index("bySubject", "subjectKey", store::subject_key(entity, subject))],
            None => partitions(entity, included),
        };
        let queries = queries
            .into_iter()
            .map(|query| filters.kind.iter().fold(query, |query, kind| query.only(is("type", *kind))));
        let page = self.entries_of(queries.collect(), range, Reading::NewestFirst, limit).await?;
        let items = page.found.iter().map(|entry| self.readable_event(&entry.id, false));
        // The index may still show an event that the table has removed.
        let found = try_join_all(items).await?.into_iter().flatten().collect();
        Ok(Page { found, looked_at: page.looked_at, end: page.end })
    }

    /// An event's item, from a consistent or an eventually consistent read; `None` if it cannot be read.
    pub(crate) async fn readable_event(
        &self,
        id: &EventId,
        is_consistent: bool,
    ) -> Result<Option<EventItem>, TableError> {
        let read = if is_consistent { self.events.item(id).await } else { self.events.item_eventual(id).await };
        Ok(skip_unreadable_event(read, id)?.flatten())
    }

    /// The first entries of a range in these partitions, among `limit` entries of each.
    pub(super) async fn entries_of(
        &self,
        queries: Vec<Query>,
        range: &KeyRange,
        reading: Reading,
        limit: i32,
    ) -> Result<Page<Vec<Entry>>, TableError> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let pages = queries.into_iter().map(async |query| {
            // An unreadable event does not block the others.
            let query = range.narrow(query, EventId::PREFIX).limit(limit).skipping_unreadable();
            let query = if reading == Reading::NewestFirst { query.newest_first() } else { query };
            let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
            let end = match page.next {
                None => None,
                Some(end) => {
                    let event = end.text("sk").and_then(EventId::parse);
                    let event = event.ok_or(TableError::Missing("an event's position in its index"))?;
                    Some(position(&event))
                }
            };
            Ok::<_, TableError>(Page { found: page.entries, looked_at, end })
        });
        Ok(merged(try_join_all(pages).await?, reading))
    }
}

/// The result of reading an event; `None` if it or its body cannot be read, which is logged: a later read would fail
/// too, and the event must not hold up others.
pub(super) fn skip_unreadable_event<T>(read: Result<T, TableError>, id: &EventId) -> Result<Option<T>, TableError> {
    match read {
        Err(error @ (TableError::Missing(_) | TableError::Item { .. })) => {
            tracing::error!(error = %logging::chain(&error), eventId = %id, "skipped an event that cannot be read");
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The partitions of the index by entity that contain these events.
pub(super) fn partitions(entity: &EntityId, included: Included) -> Vec<Query> {
    let of = |key| Query::index(store::BY_ENTITY, "entityKey", key);
    match included {
        Included::WithDeliveries => vec![of(store::entity_key(entity))],
        Included::All => vec![of(store::entity_key(entity)), of(store::unmatched_key(entity))],
    }
}

/// An event's position: that of its first delivery.
pub(super) fn position(event: &EventId) -> ListPosition {
    ListPosition::of(&DeliveryId::of(event, 0))
}

/// One page merged from several partitions, down to the position to which all of them were read.
fn merged(pages: Vec<Page<Vec<Entry>>>, reading: Reading) -> Page<Vec<Entry>> {
    let looked_at = pages.iter().map(|page| page.looked_at).sum();
    let ends = pages.iter().filter_map(|page| page.end.clone());
    let end = if reading == Reading::NewestFirst { ends.max() } else { ends.min() };
    let is_read = |entry: &Entry| match (&end, reading) {
        (None, _) => true,
        (Some(end), Reading::NewestFirst) => position(&entry.id) >= *end,
        (Some(end), Reading::OldestFirst) => position(&entry.id) <= *end,
    };
    let mut found: Vec<_> = pages.into_iter().flat_map(|page| page.found).filter(is_read).collect();
    found.sort_by(|one, other| match reading {
        Reading::NewestFirst => other.id.cmp(&one.id),
        Reading::OldestFirst => one.id.cmp(&other.id),
    });
    // Just after an event gets its first delivery, the index may show it in both partitions.
    found.dedup_by(|one, other| one.id == other.id);
    Page { found, looked_at, end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Time, testing::CountingRandom};

    #[test]
    fn partitions_are_merged_up_to_where_all_of_them_were_read() {
        let random = CountingRandom::default();
        let ids: Vec<_> = (1..=6).map(|second| EventId::new(Time::from_millis(second * 1_000), &random)).collect();
        let page = |numbers: &[usize], has_more: bool| {
            let entry = |number: &usize| Entry { id: ids[*number].clone(), r#type: String::new() };
            let end = numbers.last().filter(|_| has_more).map(|number| position(&ids[*number]));
            Page { found: numbers.iter().map(entry).collect(), looked_at: numbers.len(), end }
        };
        let read = |pages, reading| {
            let page = merged(pages, reading);
            let numbers: Vec<_> =
                page.found.iter().filter_map(|entry| ids.iter().position(|id| *id == entry.id)).collect();
            (numbers, page.end.and_then(|end| ids.iter().position(|id| position(id) == end)), page.looked_at)
        };
        let newest = |pages| read(pages, Reading::NewestFirst);
        assert_eq!(newest(vec![page(&[5, 3], true), page(&[4, 2, 0], true)]), (vec![5, 4, 3], Some(3), 5));
        assert_eq!(newest(vec![page(&[5, 3], false), page(&[4, 2], true)]), (vec![5, 4, 3, 2], Some(2), 4));
        assert_eq!(newest(vec![page(&[5, 1], false), page(&[5, 0], false)]), (vec![5, 1, 0], None, 4));
        let oldest = |pages| read(pages, Reading::OldestFirst);
        assert_eq!(oldest(vec![page(&[0, 3], true), page(&[1, 2, 5], true)]), (vec![0, 1, 2, 3], Some(3), 5));
    }
}
