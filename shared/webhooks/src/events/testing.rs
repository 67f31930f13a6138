//! Reading a request to publish without a table, for tests and fuzz targets.

use super::{
    event::{Event, MAX_BYTES},
    members,
};
use auth::entity::EntityId;
use base::{clock::Time, ids::EventId};
use problem::{JsonBody, Problem};

/// The event that a request's body asks for, made as the service makes it.
pub fn event_of(body: &[u8], id: EventId, timestamp: Time, entity: EntityId) -> Result<Event, Problem> {
    let mut body = JsonBody::read(body)?;
    let (kind, data) = (members::kind(&mut body), members::data(&mut body));
    body.finish()?;
    let (Some(kind), Some(data)) = (kind, data) else {
        return Err(Problem::internal("a value is missing without a violation"));
    };
    Event::new(id, kind, timestamp, entity, data).map_err(|_| Problem::too_large("The event", MAX_BYTES))
}
