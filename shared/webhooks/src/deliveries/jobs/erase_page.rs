//! Erases the content in an event's deliveries, if the request to erase it could not do so itself.

use crate::deliveries::jobs::{
    job::{Erasure, PageResult, Progress},
    worker::Worker,
};
use auth::EntityId;
use storage::TableError;

impl Worker {
    /// Works through a page of an event's deliveries.
    pub(super) async fn erase_page(
        &self,
        entity: &EntityId,
        Erasure { event, next }: &Erasure,
    ) -> Result<PageResult, TableError> {
        let item = self.deliveries.events.item(event).await?;
        let Some(item) = item.filter(|item| item.owner_identifier == *entity) else {
            // Its deliveries expire with the event.
            tracing::info!(eventId = %event, "the erasure stopped: the event is gone");
            return Ok(PageResult::Over);
        };
        let left = self.deliveries.erase_page(&item, *next, self.clock.now()).await?;
        tracing::info!(eventId = %event, from = next, done = left.is_none(), "erased one page of deliveries");
        Ok(match left {
            Some(next) => PageResult::Next(Progress::Erased(Erasure { event: event.clone(), next })),
            None => PageResult::Over,
        })
    }
}
