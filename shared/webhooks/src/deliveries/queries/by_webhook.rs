//! A webhook's deliveries of a [`IndexGroup`], in the order in which they were made. The index `byWebhook` has each group in
//! a partition of its own.
//!
//! A delivery stands in the index only while it is in one of the groups. One that is delivered at its first attempts is
//! never written there, and a change that leaves a delivery in its group is not written there either, since the index
//! has keys only. An open delivery in no group has its next attempt so soon that this attempt ends it: the dispatcher
//! finds that the webhook is gone.

use serde::{Deserialize, Serialize};

use crate::deliveries::{
    queries::by_owner::{KeyRange, Page, position_of_end},
    store::{Deliveries, index_group::IndexGroup, item::delivery_of},
};
use base::{DeliveryId, WebhookId};
use storage::table::{Query, TableError};

const LOOKING: &str = "looking through a webhook's deliveries";

/// A head in the index.
#[derive(Debug, Deserialize)]
struct Entry {
    pk: String,
}

/// How many deliveries were counted, and whether there are no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    pub(crate) count: usize,
    pub(crate) count_is_exact: bool,
}

impl Deliveries {
    /// The first deliveries of a group in a stretch, the oldest first. The index may lag behind a little.
    pub(crate) async fn of_group(
        &self,
        webhook: &WebhookId,
        group: IndexGroup,
        stretch: &KeyRange,
        limit: i32,
    ) -> Result<Page<Vec<DeliveryId>>, TableError> {
        if stretch.is_empty() {
            return Ok(Page::default());
        }
        let query = query(webhook, group, stretch).limit(limit);
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

    /// How many deliveries of a group are in a stretch, up to so many and to what one call of the table counts.
    pub(crate) async fn count_group(
        &self,
        webhook: &WebhookId,
        group: IndexGroup,
        stretch: &KeyRange,
        limit: i32,
    ) -> Result<Page<usize>, TableError> {
        if stretch.is_empty() {
            return Ok(Page::default());
        }
        let count = self.table.count(query(webhook, group, stretch).limit(limit), LOOKING).await?;
        Ok(Page { found: count.found, looked_at: count.looked_at, end: position_of_end(count.next)? })
    }

    /// How many deliveries of a group there are in these stretches, up to so many.
    pub(crate) async fn count_up_to(
        &self,
        max: usize,
        webhook: &WebhookId,
        group: IndexGroup,
        stretches: Vec<KeyRange>,
    ) -> Result<Counted, TableError> {
        let mut count = 0;
        for mut stretch in stretches {
            loop {
                // One more than is told shows whether there are more.
                let most = i32::try_from(max + 1 - count).unwrap_or(i32::MAX);
                let page = self.count_group(webhook, group, &stretch, most).await?;
                count += page.found;
                if count > max {
                    return Ok(Counted { count: max, count_is_exact: false });
                }
                let Some(end) = page.end else { break };
                stretch = stretch.after(&end);
            }
        }
        Ok(Counted { count, count_is_exact: true })
    }
}

fn query(webhook: &WebhookId, group: IndexGroup, stretch: &KeyRange) -> Query {
    stretch.narrow(Query::index("byWebhook", "webhookKey", group.key(webhook)))
}
