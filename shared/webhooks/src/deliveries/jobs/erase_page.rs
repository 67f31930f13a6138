//! Erasing the content in the deliveries of an event, if the request to erase it could not do so itself.

use crate::deliveries::{
    jobs::job::{Erasure, PageResult, Progress},
    store::Deliveries,
};
use auth::EntityId;
use base::Time;
use storage::TableError;

/// Works through a page of an event's deliveries.
pub(super) async fn work_through(
    deliveries: &Deliveries,
    entity: &EntityId,
    Erasure { event, next }: &Erasure,
    now: Time,
) -> Result<PageResult, TableError> {
    let item = deliveries.events.item(event).await?;
    let Some(item) = item.filter(|item| item.owner_identifier == *entity) else {
        // Its deliveries expire with it.
        tracing::info!(eventId = %event, "the erasure stopped: the event is gone");
        return Ok(PageResult::Over);
    };
    let left = deliveries.erase_page(&item, *next, now).await?;
    tracing::info!(eventId = %event, from = next, done = left.is_none(), "erased one page of deliveries");
    Ok(match left {
        Some(next) => PageResult::Next(Progress::Erased(Erasure { event: event.clone(), next })),
        None => PageResult::Over,
    })
}
