//! An entity's events in the order of creation, all or those about one subject.

use futures::future::try_join_all;
use serde::Deserialize;

use crate::{
    deliveries::{
        queries::{by_webhook::Page, filters::Filters, range::KeyRange},
        store::Deliveries,
    },
    events::store::{self, EventItem},
};
use auth::EntityId;
use base::{DeliveryId, EventId, logging};
use storage::table::{Query, TableError, is};

const LOOKING: &str = "looking through an entity's events";

/// An entry of an index of events.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "sk")]
    id: EventId,
}

impl Deliveries {
    /// The newest events of a range with the wanted type and subject, among `limit` entries of the index. The index may
    /// lag behind.
    pub(super) async fn events_of(
        &self,
        entity: &EntityId,
        range: &KeyRange,
        filters: &Filters,
        limit: i32,
    ) -> Result<Page<Vec<EventItem>>, TableError> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let query = match &filters.subject {
            Some(subject) => Query::index("bySubject", "subjectKey", store::subject_key(entity, subject)),
            None => Query::index(store::BY_ENTITY, "entityKey", store::entity_key(entity)),
        };
        // An unreadable event does not hold up others.
        let query = range.narrow(query, EventId::PREFIX).newest_first().limit(limit).skipping_unreadable();
        let query = filters.kind.iter().fold(query, |query, kind| query.only(is("type", *kind)));
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let end = match page.next {
            None => None,
            Some(end) => {
                let event = end.text("sk").and_then(EventId::parse);
                let event = event.ok_or(TableError::Missing("the position of an event in its index"))?;
                Some(super::range::ListPosition::of(&DeliveryId::of(&event, 0)))
            }
        };
        let items = page.entries.iter().map(async |entry| match self.events.item_eventual(&entry.id).await {
            Err(error @ TableError::Item { .. }) => {
                tracing::error!(
                    error = %logging::chain(&error),
                    eventId = %entry.id,
                    "skipped an event of a list, since its item cannot be read"
                );
                Ok(None)
            }
            item => item,
        });
        // The index may show an event that the table has removed.
        let found = try_join_all(items).await?.into_iter().flatten().collect();
        Ok(Page { found, looked_at, end })
    }
}
