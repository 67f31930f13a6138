//! A webhook's deliveries in two groups, in the order in which they were made: those that wait, which removing the webhook
//! cancels, and those that can be recovered. The index `byWebhook` has each group in a partition of its own.
//!
//! A delivery stands in the index only while it is in one of the groups. One that is delivered at its first attempts is
//! never written there and costs nothing more, and neither does a change that leaves a delivery in its group, since the
//! index has keys only. An open delivery that is in no group has its next attempt so soon that this attempt ends it: the
//! dispatcher finds that the webhook is gone.

use std::time::Duration;

use aws_sdk_dynamodb::{operation::query::builders::QueryFluentBuilder, types::Select};
use serde::Deserialize;

use super::{
    Deliveries, Status,
    by_entity::{Page, Stretch, place},
    delivery::MAX_ATTEMPTS,
    item::delivery_of,
};
use base::{
    clock::Time,
    ids::{DeliveryId, WebhookId},
};
use storage::table::{TableError, read_item, text};

/// A shorter wait is not worth a write in the index.
const SHORT_WAIT: Duration = Duration::from_secs(60);

const LOOKING: &str = "looking through a webhook's deliveries";

/// The groups of a webhook's deliveries that the index can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Open, and its next attempt is more than a minute away.
    Waiting,
    /// Failed or cancelled, with fewer attempts than a delivery may have. A webhook that still exists has cancelled deliveries only
    /// because it was disabled for a while, so they can be recovered.
    Recoverable,
}

impl Group {
    /// The group of a delivery that stands so; `None` when it is in neither.
    pub fn of(status: Status, attempts: u32, next_attempt: Option<Time>, now: Time) -> Option<Self> {
        match status {
            Status::Pending | Status::Retrying => {
                next_attempt.filter(|next| next.since(now) > SHORT_WAIT).map(|_| Self::Waiting)
            }
            Status::Failed | Status::Cancelled => (attempts < MAX_ATTEMPTS).then_some(Self::Recoverable),
            Status::Delivered => None,
        }
    }

    /// The partition of the index that has a webhook's deliveries of this group.
    pub fn key(self, webhook: &WebhookId) -> String {
        match self {
            Self::Waiting => format!("WAITING#{webhook}"),
            Self::Recoverable => format!("RECOVERABLE#{webhook}"),
        }
    }
}

/// What the index shows of a head.
#[derive(Debug, Deserialize)]
struct Entry {
    pk: String,
}

impl Deliveries {
    /// The next of a stretch of a group, the oldest first and at most so many. The index may lag behind a little.
    pub(super) async fn of_group(
        &self,
        webhook: &WebhookId,
        group: Group,
        stretch: &Stretch,
        limit: i32,
    ) -> Result<Page<Vec<DeliveryId>>, TableError> {
        if stretch.is_empty() {
            return Ok(Page { found: Vec::new(), looked_at: 0, end: None });
        }
        let query = self.group(webhook, group, stretch).limit(limit);
        let answer = query.send().await.map_err(TableError::sdk(LOOKING))?;
        let (looked_at, end) = (answer.scanned_count(), answer.last_evaluated_key);
        let mut found = Vec::new();
        for item in answer.items.unwrap_or_default() {
            let entry: Entry = read_item(item, LOOKING)?;
            found.extend(delivery_of(&entry.pk));
        }
        Ok(Page { found, looked_at: usize::try_from(looked_at).unwrap_or_default(), end: place(end)? })
    }

    /// How many of the next of a stretch of a group there are, up to so many and to what one call of the table counts.
    pub(super) async fn count_group(
        &self,
        webhook: &WebhookId,
        group: Group,
        stretch: &Stretch,
        limit: i32,
    ) -> Result<Page<usize>, TableError> {
        if stretch.is_empty() {
            return Ok(Page { found: 0, looked_at: 0, end: None });
        }
        let answer = self.group(webhook, group, stretch).select(Select::Count).limit(limit).send().await;
        let answer = answer.map_err(TableError::sdk(LOOKING))?;
        let [found, looked_at] =
            [answer.count(), answer.scanned_count()].map(|number| usize::try_from(number).unwrap_or_default());
        Ok(Page { found, looked_at, end: place(answer.last_evaluated_key)? })
    }

    /// Whether any delivery of a webhook waits.
    pub async fn any_waiting(&self, webhook: &WebhookId) -> Result<bool, TableError> {
        let everything = Stretch::since(Time::from_millis(0));
        Ok(self.count_group(webhook, Group::Waiting, &everything, 1).await?.found > 0)
    }

    fn group(&self, webhook: &WebhookId, group: Group, stretch: &Stretch) -> QueryFluentBuilder {
        let query = self.table.client.query().table_name(&self.table.name).index_name("byWebhook");
        query
            .key_condition_expression("webhookKey = :webhook AND createdKey BETWEEN :from AND :to")
            .expression_attribute_values(":webhook", text(group.key(webhook)))
            .expression_attribute_values(":from", text(stretch.from()))
            .expression_attribute_values(":to", text(stretch.to()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn what_is_delivered_or_attempted_soon_is_written_nowhere() {
        let soon = Some(NOW + SHORT_WAIT);
        for status in [Status::Pending, Status::Retrying] {
            assert_eq!(Group::of(status, 1, soon, NOW), None);
            assert_eq!(Group::of(status, 1, Some(NOW), NOW), None);
        }
        assert_eq!(Group::of(Status::Delivered, 1, None, NOW), None);
    }

    #[test]
    fn what_waits_is_found_by_a_removal_and_what_is_over_by_a_recovery() {
        let late = Some(NOW + SHORT_WAIT + Duration::from_millis(1));
        for status in [Status::Pending, Status::Retrying] {
            assert_eq!(Group::of(status, 1, late, NOW), Some(Group::Waiting));
        }
        for status in [Status::Failed, Status::Cancelled] {
            assert_eq!(Group::of(status, MAX_ATTEMPTS - 1, None, NOW), Some(Group::Recoverable));
            assert_eq!(Group::of(status, MAX_ATTEMPTS, None, NOW), None, "it has had all its attempts");
        }
    }
}
