//! A dry run of a filter on an entity's recent events. Events that are not stored are not compared.

use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        queries::{filters::Filters, of_events::Included, range::KeyRange},
        store::Deliveries,
    },
    events::{
        catalogue,
        store::{EventItem, StoredEvent},
    },
    subscriptions::{
        filter::{EventFilter, data::EventData, matching::Steps, outcomes::MAX_STEPS},
        request_limits::RequestLimits,
        webhook::members,
    },
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Time, logging};
use problem::{JsonBody, Problem, Rule};
use storage::{Allowance, TableError};

/// The maximum number of events that are looked at, and the number unless the request says otherwise.
const MAX_EVENTS: u16 = 100;
/// How many bodies are read at once: each may have 256 KiB.
const AT_ONCE: usize = 20;
/// The number of steps after which a dry run reads no further event: five times the most that publishing allows for one.
const ENOUGH_STEPS: u32 = 5 * MAX_STEPS;

/// A request for a dry run.
#[derive(Debug)]
pub struct FilterCheckRequest {
    filter: EventFilter,
    /// The types and groups; empty for every type.
    event_list: Vec<String>,
    limit: u16,
}

/// The outcome of a dry run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterCheck {
    /// How many events were looked at, of any type.
    events_read: usize,
    /// How many events would be delivered.
    match_count: usize,
    /// The events of the wanted types, newest first.
    items: Vec<CheckedEvent>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckedEvent {
    id: EventId,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    timestamp: Time,
    matches: bool,
}

impl FilterCheck {
    /// How many events of the wanted types were looked at.
    pub(super) fn wanted(&self) -> usize {
        self.items.len()
    }

    /// How many of these events would not be delivered.
    pub(super) fn unmatched(&self) -> usize {
        self.items.len() - self.match_count
    }

    fn add(&mut self, event: CheckedEvent) {
        self.match_count += usize::from(event.matches);
        self.items.push(event);
    }
}

impl FilterCheckRequest {
    /// A dry run of a webhook's filter on the newest events of its types.
    pub(super) fn of_webhook(filter: EventFilter, event_list: Vec<String>) -> Self {
        Self { filter, event_list, limit: MAX_EVENTS }
    }

    /// Reads a request's body.
    pub fn read(body: &[u8], entity: &EntityId) -> Result<Self, Problem> {
        const MISSING: &str = "is missing; it must be an object, such as {\"currency\": [\"EUR\"]}";
        let mut body = JsonBody::read(body)?;
        let filter = body.take_raw("eventFilter");
        let event_list = body.optional("eventList", "a list of event types and groups");
        let limit = body.optional::<u16>("limit", "a number from 1 to 100");
        let violations = &mut body.violations;
        let filter = match filter {
            Some(json) => EventFilter::take("eventFilter", json, violations),
            None => violations.note("eventFilter", Rule::Required, Err(MISSING)),
        };
        let event_list =
            event_list.map(|list| members::known_types("eventList", list, entity, violations)).unwrap_or_default();
        let limit = limit.unwrap_or(MAX_EVENTS);
        if !(1..=MAX_EVENTS).contains(&limit) {
            violations.add("limit", Rule::OutOfRange, format!("must be a number from 1 to {MAX_EVENTS}"));
        }
        body.finish_with(filter.map(|filter| Self { filter, event_list, limit }))
    }
}

impl Deliveries {
    /// Compares a filter with the newest events of an entity, unless it has done that too often. The index of events
    /// may lag behind.
    pub async fn check_filter(
        &self,
        entity: &AuthorizedEntity,
        request: &FilterCheckRequest,
        now: Time,
    ) -> Result<FilterCheck, DeliveryError> {
        RequestLimits::new(self.table.clone()).count(Allowance::FilterChecks, entity, now).await?;
        let range = KeyRange::since(Time::from_millis(0));
        let limit = i32::from(request.limit);
        let page = self.events_of(entity.id(), &range, &Filters::default(), Included::All, limit).await?;
        let newest = page.found.into_iter().take(request.limit.into());
        let kept: Vec<_> = newest.filter(|event| event.is_kept(now)).collect();
        let wanted = |event: &EventItem| catalogue::list_includes(&request.event_list, &event.r#type);
        let stored = async |event| if wanted(&event) { self.stored(event).await } else { Ok(None) };
        let mut stored = stream::iter(kept).map(stored).buffered(AT_ONCE);
        let mut check = FilterCheck { events_read: 0, match_count: 0, items: Vec::new() };
        let mut taken = 0;
        while let Some(stored) = stored.try_next().await? {
            check.events_read += 1;
            let Some(stored) = stored else { continue };
            let mut left = Steps(MAX_STEPS);
            check.add(checked(stored, &request.filter, &mut left));
            taken += MAX_STEPS - left.0;
            if taken >= ENOUGH_STEPS {
                break;
            }
        }
        Ok(check)
    }

    /// An event with its body; `None` if its body cannot be read, which does not hold up others.
    async fn stored(&self, event: EventItem) -> Result<Option<StoredEvent>, TableError> {
        let id = event.id().clone();
        match self.events.with_body(event).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error @ (TableError::Missing(_) | TableError::Item { .. })) => {
                tracing::error!(
                    error = %logging::chain(&error),
                    eventId = %id,
                    "skipped an event in the dry run of a filter, because its body cannot be read"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn checked(stored: StoredEvent, filter: &EventFilter, steps: &mut Steps) -> CheckedEvent {
    let matches = filter.compare(&EventData::of_body(&stored.body), steps).delivers();
    let id = stored.item.id().clone();
    let EventItem { r#type, subject, .. } = stored.item;
    CheckedEvent { timestamp: id.time(), id, r#type, subject, matches }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<FilterCheckRequest, Problem> {
        FilterCheckRequest::read(body.as_bytes(), &EntityId::parse("demo-hotel").expect("an entity"))
    }

    #[test]
    fn a_request_has_a_filter_and_perhaps_types_and_a_limit() {
        let request = read(r#"{"eventFilter":{"a":[1]}}"#).expect("good");
        assert_eq!((request.event_list.len(), request.limit), (0, MAX_EVENTS));
        let request = read(r#"{"eventFilter":{"a":[1]},"eventList":["booking.*"],"limit":2}"#).expect("good");
        assert_eq!((request.event_list, request.limit), (vec!["booking.*".to_owned()], 2));
    }

    #[test]
    fn every_violation_of_a_request_is_listed() {
        for (body, expected) in [
            ("{}", &["eventFilter"][..]),
            (r#"{"eventFilter":null}"#, &["eventFilter"]),
            (
                r#"{"eventFilter":{"a":"x"},"eventList":["nope"],"limit":101,"more":1}"#,
                &["eventFilter.a", "eventList[0]", "limit", "more"],
            ),
            (r#"{"eventFilter":{"a":[1]},"limit":0}"#, &["limit"]),
            (r#"{"eventFilter":{"a":["x","\ud800"],"\udc00":[1]}}"#, &["eventFilter.a[1]", "eventFilter.\\udc00"]),
        ] {
            assert_eq!(crate::testing::refused(&read(body).expect_err(body)), expected, "{body}");
        }
    }
}
