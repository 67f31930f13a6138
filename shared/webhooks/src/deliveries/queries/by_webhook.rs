//! A webhook's deliveries in an [`IndexGroup`], in the order of creation. Each group is a separate partition of the
//! index `byWebhook`. A delivery is in its partition once the sweep opens it, if not before. Until then, its event
//! counts as new (`store::sweep_positions`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    queries::range::{KeyRange, ListPosition},
    state::index::IndexGroup,
    store::{Deliveries, attributes},
};
use base::{DeliveryId, Time, WebhookId};
use storage::table::{PageEnd, Query, TableError};

/// Assumed maximum lag of an index.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html>
pub(crate) const INDEX_LAG: Duration = Duration::from_secs(60);

const LOOKING: &str = "reading a webhook's deliveries";

/// An entry in a delivery index.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "sk")]
    pub(super) id: DeliveryId,
}

/// A page of results from a range.
#[derive(Debug, Default)]
pub(crate) struct Page<T> {
    pub(crate) found: T,
    /// How many entries were read, including those that the filters excluded.
    pub(crate) looked_at: usize,
    /// The last entry that was read, if more may follow.
    pub(crate) end: Option<ListPosition>,
}

/// Where a query on a delivery index ended.
pub(super) fn position_of_end(end: Option<PageEnd>) -> Result<Option<ListPosition>, TableError> {
    let Some(end) = end else { return Ok(None) };
    let position = end.text("sk").and_then(ListPosition::parse);
    position.map(Some).ok_or(TableError::Missing("a delivery's position in its index"))
}

/// A count of deliveries, and whether it is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    pub(crate) count: usize,
    pub(crate) count_is_exact: bool,
}

impl Deliveries {
    /// The first deliveries of a group in a range, oldest first. The index may lag behind.
    pub(crate) async fn of_group(
        &self,
        webhook: &WebhookId,
        group: IndexGroup,
        range: &KeyRange,
        limit: i32,
    ) -> Result<Page<Vec<DeliveryId>>, TableError> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let query = query(webhook, group, range).limit(limit).skipping_unreadable();
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let found = page.entries.into_iter().map(|entry| entry.id).collect();
        Ok(Page { found, looked_at, end: position_of_end(page.next)? })
    }

    /// When the event of the oldest delivery in a webhook's feed was published; `None` if the feed is empty. The index
    /// may lag.
    pub(crate) async fn oldest_unread(&self, webhook: &WebhookId) -> Result<Option<Time>, TableError> {
        let all = KeyRange::since(Time::from_millis(0));
        let page = self.of_group(webhook, IndexGroup::Unread, &all, 1).await?;
        Ok(page.found.first().map(|id| id.event().time()))
    }

    /// Counts deliveries of a group in a range, up to `limit` and as far as one call to the table reaches.
    pub(crate) async fn count_group(
        &self,
        webhook: &WebhookId,
        group: IndexGroup,
        range: &KeyRange,
        limit: i32,
    ) -> Result<Page<usize>, TableError> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let count = self.table.count(query(webhook, group, range).limit(limit), LOOKING).await?;
        Ok(Page { found: count.found, looked_at: count.looked_at, end: position_of_end(count.next)? })
    }

    /// Counts deliveries of a group in these ranges, up to `max`.
    pub(crate) async fn count_up_to(
        &self,
        max: usize,
        webhook: &WebhookId,
        group: IndexGroup,
        ranges: Vec<KeyRange>,
    ) -> Result<Counted, TableError> {
        let mut count = 0;
        for mut range in ranges {
            loop {
                // Counting one more than the reported maximum shows whether the count is exact.
                let most = i32::try_from(max + 1 - count).unwrap_or(i32::MAX);
                let page = self.count_group(webhook, group, &range, most).await?;
                count += page.found;
                if count > max {
                    return Ok(Counted { count: max, count_is_exact: false });
                }
                let Some(end) = page.end else { break };
                range = range.after(&end);
            }
        }
        Ok(Counted { count, count_is_exact: true })
    }
}

pub(super) fn query(webhook: &WebhookId, group: IndexGroup, range: &KeyRange) -> Query {
    range.narrow(attributes::of_group(webhook, group), DeliveryId::PREFIX)
}
