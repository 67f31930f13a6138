//! The members that describe an event, over HTTP and on the bus alike.

use serde_json::value::RawValue;

use super::catalogue::{self, EventType, Source};
use problem::JsonBody;

/// The type, which must be in the catalogue and not be one of the service's own: a subscriber to
/// `webhook.disabled` must be able to rely on it that the service has disabled a webhook.
pub(super) fn kind(body: &mut JsonBody<'_>) -> Option<&'static EventType> {
    let kind = body.required::<String>("type", "the key of an event type, such as booking.created")?;
    let found = match catalogue::find(&kind) {
        None => Err("must be the key of an event type of the catalogue; it is listed at …/webhook/event/list"),
        Some(EventType { source: Source::Service, .. }) => {
            Err("is a type that only the service itself publishes; subscribe to it, and publish under another type")
        }
        Some(found) => Ok(found),
    };
    body.violations.note("type", found)
}

/// The data, which must be an object; its text is what subscribers are sent.
pub(super) fn data<'a>(body: &mut JsonBody<'a>) -> Option<&'a RawValue> {
    let data = body.take_raw("data").filter(|data| data.starts_with('{'));
    let data = data.and_then(|data| serde_json::from_str(data).ok());
    if data.is_none() {
        body.violations.add("data", "must be there and be an object");
    }
    data
}
