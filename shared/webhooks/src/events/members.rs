//! The members that describe an event, in requests over HTTP and in events of the bus alike.

use serde_json::value::RawValue;

use crate::events::{
    catalogue::{self, EventType, Source},
    event::{Event, TooLarge},
    unknown,
};
use auth::EntityId;
use base::{EventId, Time};
use problem::JsonBody;

/// Type and data of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) kind: &'static EventType,
    pub(super) data: &'a RawValue,
}

impl Content<'_> {
    /// The event with this content.
    pub(super) fn event(&self, id: EventId, timestamp: Time, entity: EntityId) -> Result<Event, TooLarge> {
        Event::new(id, self.kind, timestamp, entity, self.data)
    }
}

/// The type, which must be in the catalogue and not be one of the service's own: a subscriber to `webhook.disabled`
/// must be able to trust that the service disabled a webhook.
/// `entity` is the managing entity at which a refusal says that the types are listed.
pub(super) fn kind(body: &mut JsonBody<'_>, entity: &str) -> Option<&'static EventType> {
    let kind = body.required::<String>("type", "the key of an event type, such as booking.created")?;
    let found = match catalogue::find(&kind) {
        None => Err(unknown::no_type(&kind, entity)),
        Some(EventType { source: Source::Service, .. }) => {
            let why =
                "is a type that only the service itself publishes; subscribe to it, and publish under another type";
            Err(why.to_owned())
        }
        Some(found) => Ok(found),
    };
    body.violations.note("type", found)
}

/// The data, which must be an object; subscribers are sent its very text.
pub(super) fn data<'a>(body: &mut JsonBody<'a>) -> Option<&'a RawValue> {
    let data = body.take_raw("data").filter(|data| data.starts_with('{'));
    let data = data.and_then(|data| serde_json::from_str(data).ok());
    if data.is_none() {
        body.violations.add("data", "must be there and be an object");
    }
    data
}
