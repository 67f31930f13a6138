//! Opening deliveries: soon after an event's publication, the sweep gives a due time to each of its deliveries that is
//! not final. No due time is written before that, so that a delivery that arrives immediately does not cost this write.
//!
//! A delivery that no worker has claimed gets its head here. A head without a due time belongs to a worker that is
//! making the first attempts, or that has died. Once opened, a delivery has a due time until it is final: claims and
//! records keep it or move it.

use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    deliveries::{
        state::{head::Head, index::Index},
        store::{
            Deliveries,
            attributes::{HeadChange, insertion},
            head_write, skip_unreadable,
        },
    },
    events::store::EventItem,
};
use base::{DeliveryId, Time};
use storage::table::{Put, TableError};

/// How many of an event's deliveries are opened concurrently.
const AT_ONCE: usize = 32;
/// How many times a change to a delivery is tried if the delivery changes concurrently. Each change is a record or a
/// claim.
const TRIES: usize = 5;

const OPENING: &str = "opening a delivery";

impl Deliveries {
    /// Gives an event's deliveries a due time if they are not final and have none. Returns how many it opened. An
    /// unreadable delivery is left out.
    pub(crate) async fn open_missing(&self, event: &EventItem, now: Time) -> Result<usize, TableError> {
        let ids: Vec<_> = event.deliveries().map(|(id, _)| id).collect();
        let heads = self.heads(ids.iter().map(|id| (id, Some(event))).collect()).await?;
        let open = ids.into_iter().zip(heads).map(|(id, head)| async move { self.open(event, &id, head, now).await });
        stream::iter(open)
            .buffer_unordered(AT_ONCE)
            .try_fold(0, async |all, opened| Ok(all + usize::from(opened)))
            .await
    }

    /// The writes of heads with a due time, for a new event's deliveries.
    pub(crate) fn opened_heads(&self, event: &EventItem, now: Time) -> Result<Vec<Put>, TableError> {
        let heads = event.deliveries().filter_map(|(id, _)| Head::new(event, &id));
        heads.map(|head| insertion(&head, Some(Index::opened(&head, now)), OPENING)).collect()
    }

    /// Gives a delivery a due time, if it is not final and has none. `head` may be stale: every write is conditional.
    async fn open(
        &self,
        event: &EventItem,
        id: &DeliveryId,
        mut head: Option<Head>,
        now: Time,
    ) -> Result<bool, TableError> {
        for _ in 0..TRIES {
            // An erased event's deliveries are left to the job that erases them.
            let open = head.filter(|head| !head.is_final() && head.index.due_at.is_none());
            let Some(open) = open else { return Ok(false) };
            let due = Some(Index::opened(&open, now));
            let unchanged = |change: HeadChange| {
                change.if_not_due().if_attempts(open.delivery.attempt_count).if_claimable_at(&open)
            };
            let write = head_write(&open, &open, due, unchanged, OPENING)?;
            if self.table.write_together(write, OPENING).await?.is_done() {
                return Ok(true);
            }
            let consequence = "the delivery is not opened because its item cannot be read";
            let Some(changed) = skip_unreadable(self.head(id).await, id, consequence)? else { return Ok(false) };
            head = changed.or_else(|| Head::new(event, id));
        }
        Err(TableError::code(OPENING, "ConditionalCheckFailedException"))
    }
}
