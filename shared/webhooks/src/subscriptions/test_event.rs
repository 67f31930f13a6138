//! Testing a webhook: an event of a type of its own, sent to this webhook alone, signed, attempted
//! again and kept like any other.

use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{
    problems::{webhook_disabled, webhook_not_found},
    store::Webhooks,
};
use crate::events::{
    EventType, catalogue,
    event::{Event, TooLarge},
    publish::Publisher,
};
use auth::entity::AuthorizedEntity;
use base::{
    clock::SharedClock,
    ids::{DeliveryId, EventId, WebhookId},
    random::SharedRandom,
};
use problem::Problem;
use storage::table::TableError;

/// The type of test events.
pub const TEST: &EventType = catalogue::own("webhook.test");

/// Tests webhooks.
pub struct Testing {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Publishes the event.
    pub publisher: Publisher,
    /// Gives the time of the event.
    pub clock: SharedClock,
    /// Makes the event's identifier.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestData<'a> {
    webhook_identifier: &'a WebhookId,
    message: &'static str,
}

/// A test event that is on its way.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestSent {
    delivery_identifier: DeliveryId,
}

/// Why no test event was sent.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The entity has no such webhook; another entity's webhook looks the same.
    #[error("the entity has no such webhook")]
    NotFound,
    /// Nothing is sent to a webhook that is disabled.
    #[error("the webhook is disabled")]
    Disabled,
    /// The event's data could not be written.
    #[error("the data of a test event could not be written")]
    Data(#[from] serde_json::Error),
    /// The event is too large: a fault of this program.
    #[error("a test event is too large")]
    TooLarge(#[from] TooLarge),
    /// The table failed.
    #[error("the table failed a test event")]
    Table(#[from] TableError),
}

impl From<TestError> for Problem {
    fn from(error: TestError) -> Self {
        match error {
            TestError::NotFound => webhook_not_found(),
            TestError::Disabled => webhook_disabled(),
            TestError::Data(_) | TestError::TooLarge(_) => Self::internal(error),
            TestError::Table(error) => error.into(),
        }
    }
}

impl Testing {
    /// Sends a test event to a webhook.
    ///
    /// # Errors
    /// When the entity has no such webhook, or it is disabled, or the table fails.
    pub async fn send(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<TestSent, TestError> {
        let webhook = self.webhooks.find(entity, id).await?.ok_or(TestError::NotFound)?.webhook;
        if !webhook.enabled {
            return Err(TestError::Disabled);
        }
        let message = "This is a test of the webhook. Nothing has happened.";
        let data = to_raw_value(&TestData { webhook_identifier: id, message })?;
        let now = self.clock.now();
        let event = EventId::new(now, &*self.random);
        let event = Event::new(event, TEST, now, entity.id().clone(), &data)?;
        let delivery_identifier = self.publisher.tell_one(entity, &event, &webhook).await?;
        Ok(TestSent { delivery_identifier })
    }
}
