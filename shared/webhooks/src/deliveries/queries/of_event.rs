//! An event with its deliveries, for its owner.
//!
//! All deliveries of an event are created at the event's time, which its identifier contains. So they are within one
//! millisecond of the index `byOwner`. The identifier of a delivery is derived from event and webhook, which
//! distinguishes the event's deliveries from others of the same millisecond.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::deliveries::{
    delivery::Delivery,
    error::DeliveryError,
    queries::{by_owner::KeyRange, filters::Filters},
    store::{Deliveries, item::HeadItem},
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Time};
use storage::TableError;

/// How many deliveries are read in a call. An entity has few within a millisecond, so usually one call finds them all.
const PAGE: i32 = 1_000;

/// An event with its deliveries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventWithDeliveries {
    id: EventId,
    r#type: String,
    timestamp: Time,
    managing_entity_identifier: EntityId,
    /// The published data, byte for byte.
    data: Box<RawValue>,
    /// One for each webhook that wanted the event, the newest first. They are not part of the stored body.
    #[serde(skip_deserializing)]
    deliveries: Vec<Delivery>,
}

impl Deliveries {
    /// An event of the entity with its deliveries. The deliveries come from an index, which may lag behind.
    ///
    /// # Errors
    /// [`DeliveryError::EventNotFound`] when the entity has no such event, its retention is over (the table removes it
    /// some days later), or no webhook wanted it, so that it was not kept.
    pub async fn event(
        &self,
        entity: &AuthorizedEntity,
        id: &EventId,
        now: Time,
    ) -> Result<EventWithDeliveries, DeliveryError> {
        let stored = self.events.find(id).await?.filter(|event| event.is_kept(now));
        let stored = stored.ok_or(DeliveryError::EventNotFound)?;
        let event: EventWithDeliveries =
            serde_json::from_str(&stored.body).map_err(|_| TableError::Missing("the members of an event"))?;
        if event.managing_entity_identifier != *entity.id() {
            return Err(DeliveryError::EventNotFound);
        }
        let filters = Filters { event: Some(id.clone()), ..Filters::default() };
        let heads = self.all_heads(entity, &filters, KeyRange::of_event(id)).await?;
        let deliveries = heads.into_iter().map(|head| head.shown(now)).collect();
        Ok(EventWithDeliveries { deliveries, ..event })
    }

    /// The heads of all deliveries within a millisecond, or a part of it, that pass the filters of the index, the newest
    /// first.
    pub(super) async fn all_heads(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        mut range: KeyRange,
    ) -> Result<Vec<HeadItem>, TableError> {
        let mut found = Vec::new();
        loop {
            let page = self.look(entity.id(), &range, filters, true, PAGE).await?;
            let heads = self.heads(page.found.iter().map(|found| &found.id)).await?;
            found.extend(heads.into_iter().flatten());
            let Some(end) = page.end else { return Ok(found) };
            range = range.before(&end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::store::item::tests::{NOW, head};
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
        /// The largest answer of a function
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        // A quote grows most, since the response is a text within JSON.
        let data = format!("[{}]", vec!["\"\""; 256 * 1024 / 3].join(","));
        let event: EventWithDeliveries = serde_json::from_str(&body(&data)).expect("an event");
        let delivery = Delivery { url: "\"".repeat(2_048), ..head().delivery().clone() };
        let event = EventWithDeliveries { deliveries: vec![delivery; 205], ..event };
        let answer = serde_json::to_string(&serde_json::to_string(&event).expect("JSON")).expect("JSON");
        assert!(answer.len() + 4_096 < MAX_ANSWER, "{}", answer.len());
    }
}
