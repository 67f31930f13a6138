//! An entity's deliveries in the order of creation: pages of the index `byOwner`.
//!
//! A position in that order is the key of the index, `{createdDate}#{delivery}`. All keys have the same length, so
//! there is a text just before and a text just after each. A page can begin there, even if deliveries were added or
//! removed meanwhile.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    delivery::Delivery,
    queries::filters::Filters,
    store::{Deliveries, item::delivery_of, listed_status::may_be_in},
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId};
use storage::table;
use storage::table::{Query, TableError, is};

const LOOKING: &str = "looking through an entity's deliveries";

/// The position of a delivery in its entity's order of creation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition(String);

impl ListPosition {
    /// The position of this delivery.
    pub fn of(delivery: &Delivery) -> Self {
        Self(format!("{}#{}", delivery.created_date, delivery.id))
    }

    /// Reads a position; `None` when the text is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (created, delivery) = text.split_once('#')?;
        let time = Time::of_client(created).filter(|time| time.to_string() == created);
        time.and(DeliveryId::parse(delivery)).map(|_| Self(text.to_owned()))
    }

    /// The time at which its delivery was created.
    pub(crate) fn time(&self) -> Time {
        let created = self.0.split('#').next().and_then(Time::of_client);
        created.expect("a position begins with the time of its delivery")
    }

    /// The position as the index stores it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bound directly after this position.
    fn just_after(&self) -> String {
        format!("{}!", self.0)
    }

    /// The bound directly before this position.
    fn just_before(&self) -> String {
        let mut bound = self.0.clone();
        let last = bound.pop().and_then(|last| u8::try_from(last).ok()).unwrap_or_default();
        bound.push(char::from(last.saturating_sub(1)));
        bound + "~"
    }
}

/// A range of keys in the order of creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    from: String,
    to: String,
}

impl Default for KeyRange {
    /// No deliveries.
    fn default() -> Self {
        Self::nothing()
    }
}

impl KeyRange {
    /// Deliveries created at or after `from` and before `to`.
    pub fn between(from: Time, to: Time) -> Self {
        // A key is longer than its time and sorts after it: so the first bound is inclusive, the second exclusive.
        Self { from: from.to_string(), to: to.to_string() }
    }

    /// Deliveries created in the millisecond that begins at `time`.
    pub(crate) fn of_millisecond(time: Time) -> Self {
        Self::between(time, time + Duration::from_millis(1))
    }

    /// The millisecond in which the deliveries of an event were created.
    pub fn of_event(event: &EventId) -> Self {
        Self::of_millisecond(event.time())
    }

    /// Deliveries created at or after `from`.
    pub fn since(from: Time) -> Self {
        Self { from: from.to_string(), to: "~".to_owned() }
    }

    /// No deliveries.
    pub fn nothing() -> Self {
        Self { from: "~".to_owned(), to: "~".to_owned() }
    }

    /// The range with another end: before `to`.
    pub fn until(self, to: Time) -> Self {
        Self { to: to.to_string(), ..self }
    }

    /// The part after a position.
    pub fn after(self, position: &ListPosition) -> Self {
        Self { from: self.from.max(position.just_after()), ..self }
    }

    /// The part before a position.
    pub fn before(self, position: &ListPosition) -> Self {
        Self { to: self.to.min(position.just_before()), ..self }
    }

    /// The part created before a time.
    pub(crate) fn before_time(self, time: Time) -> Self {
        Self { to: self.to.min(time.to_string()), ..self }
    }

    /// The intersection with another range.
    pub fn within(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }

    /// Narrows a query of an index with these sort keys to the range.
    pub(crate) fn narrow(&self, query: Query) -> Query {
        query.between("createdKey", self.from.as_str(), self.to.as_str())
    }

    /// Whether the range holds no keys.
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// A page of results of a range.
#[derive(Debug, Default)]
pub(crate) struct Page<T> {
    pub(crate) found: T,
    /// How many entries were read, including those that the filters exclude.
    pub(crate) looked_at: usize,
    /// The last entry that was read, if more may follow.
    pub(crate) end: Option<ListPosition>,
}

/// The attributes of an index entry that identify its delivery.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pk: String,
    created_key: String,
    webhook_identifier: WebhookId,
}

/// A delivery that was found, and its position.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: DeliveryId,
    pub(crate) position: ListPosition,
}

impl Entry {
    /// The delivery of the entry; `None` when the filters exclude it or the entry is malformed.
    fn wanted(self, filters: &Filters) -> Option<Found> {
        let Some((id, position)) = delivery_of(&self.pk).zip(ListPosition::parse(&self.created_key)) else {
            tracing::error!(pk = self.pk, "an entry of the index of an entity's deliveries names no delivery");
            return None;
        };
        filters.is_of_event(&id, &self.webhook_identifier).then_some(Found { id, position })
    }
}

impl Deliveries {
    /// The deliveries of a range that may pass the filters except for their times, the newest first, among `limit`
    /// entries. Their heads decide whether they are in a wanted state ([`may_be_in`]). The index may lag behind.
    pub(crate) async fn look(
        &self,
        entity: &EntityId,
        range: &KeyRange,
        filters: &Filters,
        may_be_pending: bool,
        limit: i32,
    ) -> Result<Page<Vec<Found>>, TableError> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        // An unreadable delivery does not hold up others.
        let query = query(entity, range, filters, may_be_pending).newest_first().limit(limit).skipping_unreadable();
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let found = page.entries.into_iter().filter_map(|entry| entry.wanted(filters)).collect();
        Ok(Page { found, looked_at, end: position_of_end(page.next)? })
    }
}

fn query(entity: &EntityId, range: &KeyRange, filters: &Filters, may_be_pending: bool) -> Query {
    let query = range.narrow(Query::index("byOwner", "entityKey", format!("ENT#{entity}")));
    let filters = [
        may_be_in(&filters.statuses, may_be_pending),
        filters.kind.map(|kind| is("type", kind)),
        filters.webhook.as_ref().map(|webhook| is("webhookIdentifier", webhook.as_str())),
    ];
    filters.into_iter().flatten().fold(query, Query::only)
}

/// The position at which a query of an index ended.
pub(crate) fn position_of_end(end: Option<table::PageEnd>) -> Result<Option<ListPosition>, TableError> {
    let Some(end) = end else { return Ok(None) };
    let position = end.text("createdKey").and_then(ListPosition::parse);
    position.map(Some).ok_or(TableError::Missing("the position of a delivery in its index"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use proptest::prelude::*;

    pub fn position_at(millis: i64, random: &CountingRandom) -> ListPosition {
        let time = Time::from_millis(millis);
        ListPosition(format!("{time}#{}", DeliveryId::new(time, random)))
    }

    impl KeyRange {
        /// Whether the index finds the position within the bounds.
        pub fn holds(&self, position: &ListPosition) -> bool {
            (&self.from..=&self.to).contains(&&position.0)
        }
    }

    #[test]
    fn a_range_begins_with_its_first_moment_and_ends_before_its_last() {
        let random = CountingRandom::default();
        let range = KeyRange::between(Time::from_millis(1_000), Time::from_millis(2_000));
        for (millis, inside) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
            assert_eq!(range.holds(&position_at(millis, &random)), inside, "{millis}");
        }
        assert!(KeyRange::between(Time::from_millis(5), Time::from_millis(5)).is_empty());
        assert!(KeyRange::since(Time::from_millis(1_000)).holds(&position_at(4_000_000_000_000, &random)));
    }

    #[test]
    fn the_part_before_a_time_never_exceeds_the_range() {
        let [early, middle, late] = [1_000, 2_000, 3_000].map(Time::from_millis);
        let range = KeyRange::between(early, late);
        assert_eq!(range.clone().before_time(middle), KeyRange::between(early, middle));
        assert_eq!(KeyRange::between(early, middle).before_time(late), KeyRange::between(early, middle));
        assert!(range.before_time(early).is_empty());
    }

    #[test]
    fn a_position_is_read_back_and_any_other_text_is_refused() {
        let position = position_at(1_795_167_900_123, &CountingRandom::default());
        assert_eq!(ListPosition::parse(position.as_str()), Some(position.clone()));
        assert_eq!(position.time(), Time::from_millis(1_795_167_900_123));
        for text in ["", "#", "2026-11-20T09:45:00.123Z", "2026-11-20T09:45:00Z#dlv_01m7w5gmev32p3wwt3y0b8j32h"] {
            assert_eq!(ListPosition::parse(text), None, "{text}");
        }
        assert_eq!(ListPosition::parse(&format!("{}!", position.as_str())), None);
    }

    #[test]
    fn the_deliveries_of_an_event_are_within_its_millisecond() {
        let random = CountingRandom::default();
        let range = KeyRange::of_event(&EventId::new(Time::from_millis(5_000), &random));
        for (millis, inside) in [(4_999, false), (5_000, true), (5_001, false)] {
            assert_eq!(range.holds(&position_at(millis, &random)), inside, "{millis}");
        }
    }

    proptest! {
        #[test]
        fn a_position_is_outside_the_ranges_before_and_after_it(
            millis in proptest::collection::vec(0i64..3, 2..12),
            start in any::<u8>(),
        ) {
            let random = CountingRandom::default();
            for _ in 0..start { position_at(0, &random); }
            let mut positions: Vec<_> = millis.into_iter().map(|millis| position_at(millis, &random)).collect();
            positions.sort();
            positions.dedup();
            let whole = KeyRange::since(Time::from_millis(0));
            for (index, position) in positions.iter().enumerate() {
                let after = whole.clone().after(position);
                let before = whole.clone().before(position);
                for (other_index, other) in positions.iter().enumerate() {
                    prop_assert_eq!(after.holds(other), other_index > index);
                    prop_assert_eq!(before.holds(other), other_index < index);
                }
            }
        }
    }
}
