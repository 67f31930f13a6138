//! Cancels open deliveries without an attempt. The change requires the delivery to be unchanged since it was read, so
//! that of a concurrent cancellation and claim, only one succeeds.

use crate::deliveries::{
    state::{
        delivery::CancelReason,
        head::Head,
        index::{AnnouncedBy, Index, IndexGroup},
        transition::{Transition, apply},
    },
    store::{Deliveries, StoredDelivery, attributes::HeadChange},
};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};
use storage::table::{TableError, Written};

const CANCELLING: &str = "cancelling a delivery";

impl Deliveries {
    /// Cancels an open delivery at its owner's request, with one write. Returns `Lost` if the delivery has changed
    /// since it was read.
    pub(crate) async fn cancel_open(&self, read: &StoredDelivery, now: Time) -> Result<Written<Head>, TableError> {
        let read = &read.head;
        let cancelled = apply(read, Transition::Cancel(CancelReason::Owner), now);
        let index = Index::after(read, &cancelled, AnnouncedBy::Sweep, now);
        // The content may have been erased since the delivery was read.
        let unchanged = |change: HeadChange| change.if_as_read(read).if_not_erased();
        self.write_head_and_read(read, &cancelled, index, unchanged, CANCELLING).await
    }

    /// Cancels a removed webhook's waiting delivery. Returns `Lost` if the delivery is claimed; its worker then cancels
    /// it.
    pub(crate) async fn cancel_waiting(
        &self,
        id: &DeliveryId,
        webhook: &WebhookId,
        entity: &EntityId,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let cancelled = HeadChange::cancelling(id, CancelReason::WebhookRemoved, (entity, webhook), now)
            .if_in_group(IndexGroup::Waiting, webhook)
            .if_open()
            // An attempt without an outcome is recorded first.
            .if_nothing_to_record();
        self.table.write_together(cancelled, CANCELLING).await
    }
}
