//! The members with which somebody says what happened, over HTTP and on the bus alike.

use serde_json::value::RawValue;

use super::{EventType, catalogue};
use crate::http::JsonBody;

/// The type, which must be in the catalogue.
pub(super) fn kind(body: &mut JsonBody<'_>) -> Option<&'static EventType> {
    let kind = body.required::<String>("type", "the key of an event type, such as booking.created")?;
    let unknown = "must be the key of an event type of the catalogue; it is listed at …/webhook/event/list";
    body.violations.note("type", catalogue::find(&kind).ok_or(unknown))
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
