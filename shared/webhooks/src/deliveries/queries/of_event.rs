//! An event with its deliveries, as its owner sees it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    deliveries::{error::DeliveryError, store::Deliveries, view::DeliveryView},
    events::store::EventItem,
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Time};
use problem::Violation;
use storage::TableError;

/// An event with its deliveries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventWithDeliveries {
    id: EventId,
    r#type: String,
    /// Whether it was sent as a test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    test: bool,
    /// Its subject; absent if neither the publisher nor the data provides one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    timestamp: Time,
    managing_entity_identifier: EntityId,
    /// The published data, byte for byte.
    data: Box<RawValue>,
    /// Where its data violates the type's schema. Not part of the stored body.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
    /// How many days it is stored, if its publisher set that. Not part of the stored body.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    retention_days: Option<u32>,
    /// When its content was erased, if it was; `data` is then empty.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    erased_date: Option<Time>,
    /// A delivery for each webhook that the event matched, newest first. Not part of the stored body.
    #[serde(skip_deserializing)]
    deliveries: Vec<DeliveryView>,
}

impl Deliveries {
    /// An event of the entity with its deliveries.
    ///
    /// # Errors
    /// [`DeliveryError::EventNotFound`] if the entity has no such event, its retention is over (the table removes it
    /// some days later), or it was not stored because it matched no webhook.
    pub async fn event(
        &self,
        entity: &AuthorizedEntity,
        id: &EventId,
        now: Time,
    ) -> Result<EventWithDeliveries, DeliveryError> {
        let stored = self.events.find(id).await?;
        let stored = stored.filter(|event| event.item.is_kept(now) && event.item.owner_identifier == *entity.id());
        let stored = stored.ok_or(DeliveryError::EventNotFound)?;
        let event: EventWithDeliveries =
            serde_json::from_str(&stored.body).map_err(|_| TableError::Missing("an event's members"))?;
        let heads = self.of_event(&stored.item).await?;
        let EventItem { subject, warnings, retention_days, erased_date, .. } = stored.item;
        let heads = heads.into_iter().rev().map(|head| head.erased_with_its_event(erased_date));
        let deliveries = heads.map(|head| head.shown(now)).collect();
        Ok(EventWithDeliveries { subject, warnings, retention_days, erased_date, deliveries, ..event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        deliveries::state::head::tests::{NOW, head},
        events::store::MAX_TARGETS,
    };
    use base::testing::CountingRandom;

    fn body(data: &str) -> String {
        let id = EventId::new(NOW, &CountingRandom::default());
        format!(
            r#"{{"id":"{id}","type":"booking.created","timestamp":"{NOW}","managingEntityIdentifier":"hotel","data":{data}}}"#
        )
    }

    #[test]
    fn an_event_is_shown_as_published_followed_by_its_deliveries() {
        let body = body(r#"{ "a": 1e400, "a":12345678901234567890.10, "deliveries": [1], "u":"\u00e9" }"#);
        let event: EventWithDeliveries = serde_json::from_str(&body).expect("an event");
        let shown = serde_json::to_string(&event).expect("JSON");
        assert_eq!(shown, format!(r#"{},"deliveries":[]}}"#, body.strip_suffix('}').expect("an object")));
    }

    #[test]
    fn the_largest_event_with_the_most_deliveries_fits_into_one_answer() {
        /// The largest response that a function may return
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        // Quotes grow most, since the response is a string inside JSON.
        let data = format!("[{}]", vec!["\"\""; 256 * 1024 / 3].join(","));
        let event: EventWithDeliveries = serde_json::from_str(&body(&data)).expect("an event");
        let delivery = DeliveryView { url: "\"".repeat(2_048), ..head().shown(NOW) };
        let event = EventWithDeliveries { deliveries: vec![delivery; MAX_TARGETS], ..event };
        let answer = serde_json::to_string(&serde_json::to_string(&event).expect("JSON")).expect("JSON");
        assert!(answer.len() + 4_096 < MAX_ANSWER, "{}", answer.len());
    }
}
