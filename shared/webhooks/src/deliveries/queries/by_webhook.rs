//! A webhook's deliveries of an [`IndexGroup`], in the order of creation. Each group is a separate partition of the
//! index `byWebhook`.
//!
//! A delivery is in the index only while it is in one of the groups. A delivery that arrives at its first attempts is
//! never written there. Nor is a change that leaves a delivery in its group, since the index has keys only. An open
//! delivery outside the groups has its next attempt soon: if the webhook is gone, this attempt cancels it.

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    queries::by_owner::{KeyRange, Page, position_of_end},
    store::{Deliveries, index_group::IndexGroup, item::delivery_of},
};
use base::{DeliveryId, WebhookId};
use storage::table::{Query, TableError};

const LOOKING: &str = "looking through a webhook's deliveries";

/// An entry of the index.
#[derive(Debug, Deserialize)]
struct Entry {
    pk: String,
}

/// A count of deliveries, and whether it is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    pub(crate) count: usize,
    pub(crate) count_is_exact: bool,
}

impl Deliveries {
    /// The first deliveries of a group in a range, the oldest first. The index may lag behind.
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
        let query = query(webhook, group, range).limit(limit);
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let mut found = Vec::new();
        for Entry { pk } in page.entries {
            match delivery_of(&pk) {
                Some(delivery) => found.push(delivery),
                None => tracing::error!(pk, "an entry of the index of webhooks' deliveries names no delivery"),
            }
        }
        Ok(Page { found, looked_at, end: position_of_end(page.next)? })
    }

    /// Counts deliveries of a group in a range, up to `limit` and as far as one call to the table counts.
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
                // One more than the reported maximum shows whether the count is exact.
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

fn query(webhook: &WebhookId, group: IndexGroup, range: &KeyRange) -> Query {
    range.narrow(Query::index("byWebhook", "webhookKey", group.key(webhook)))
}
