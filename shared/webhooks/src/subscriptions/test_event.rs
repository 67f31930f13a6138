//! Testing a webhook: an event of a type of its own, sent to this webhook alone, signed, attempted again and kept like any
//! other.

use http::StatusCode;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::Webhooks;
use crate::events::{Event, EventType, catalogue, publish::Publisher};
use base::{
    clock::SharedClock,
    ids::{DeliveryId, EventId, WebhookId},
    random::SharedRandom,
};
use gate::{EntityCall, Reply};
use problem::{Problem, nothing_said};

/// The type of test events.
pub const TEST: &EventType = catalogue::own("webhook.test");

/// Everything that testing a webhook needs.
pub struct Testing {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// What publishes the event.
    pub publisher: Publisher,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestData<'a> {
    webhook_identifier: &'a WebhookId,
    message: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    delivery_identifier: DeliveryId,
}

impl Testing {
    /// Answers a request for a test event.
    pub async fn send(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        nothing_said(&call.body)?;
        let id = call.webhook_id()?;
        let webhook = self.webhooks.find(entity, &id).await?.ok_or_else(Problem::webhook_not_found)?.webhook;
        if !webhook.enabled {
            return Err(Problem::webhook_disabled());
        }
        let message = "This is a test of the webhook. Nothing has happened.";
        let data = to_raw_value(&TestData { webhook_identifier: &id, message }).map_err(Problem::internal)?;
        let now = self.clock.now();
        let event = EventId::new(now, &*self.random);
        let event = Event::new(event, TEST, now, entity.id().clone(), &data).map_err(Problem::internal)?;
        let delivery_identifier = self.publisher.tell_one(entity, &event, &webhook).await?;
        Reply::json(StatusCode::ACCEPTED, &Sent { delivery_identifier })
    }
}
