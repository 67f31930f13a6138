//! The last step of an update: the pointer moves to a release in the store, and releases that neither a reader nor a
//! rollback needs are removed.

use crate::{
    edition::EditionName,
    outcome::UpdateOutcome,
    pointer::{Pointer, Release},
    store::{Swap, Tag, UNFINISHED},
    update::{Publication, UpdateError, Updater},
};
use base::logging;

impl Updater {
    /// Publishes a release. Without a limit of time: a call that is cut off would not know whether it is published.
    pub async fn publish(&self, publication: Publication) -> Result<UpdateOutcome, UpdateError> {
        let Publication { edition, before, tag, release } = publication;
        self.move_pointer(&edition, before.as_ref(), tag.as_ref(), release).await
    }

    /// Moves the pointer to a release that is in the store, unless another update has moved it.
    pub(super) async fn move_pointer(
        &self,
        edition: &EditionName,
        before: Option<&Pointer>,
        tag: Option<&Tag>,
        release: Release,
    ) -> Result<UpdateOutcome, UpdateError> {
        let pointer = Pointer::moved_to(before, edition, release.clone());
        if self.store.swap_pointer(&self.environment, &pointer, tag).await? == Swap::Lost {
            match self.pointer(edition).await? {
                // A request that was sent again after a lost answer finds its own work done.
                Some((now, _)) if now == pointer => {}
                Some((now, _)) if now.current.build_epoch >= release.build_epoch && !now.blocks(&release.sha256) => {
                    return Ok(UpdateOutcome::Overtaken(Box::new(now.current)));
                }
                // The upload may be gone by the time of another try, and the next update makes it again.
                _ => return Err(UpdateError::PointerMoved),
            }
        }
        self.tidy(edition).await;
        Ok(UpdateOutcome::Published(Box::new(release), before.map(|pointer| Box::new(pointer.current.clone()))))
    }

    /// Removes every release that neither readers nor a rollback need. A failure costs space only.
    async fn tidy(&self, edition: &EditionName) {
        let folder = format!("{}/{edition}/", self.environment);
        let removed = async {
            let keys = self.store.list(&folder).await?;
            // Read after the list, so that a release of a later pointer is named, or not in the list.
            let Some((pointer, _)) = self.pointer(edition).await? else { return Ok(()) };
            for key in keys {
                let file = key.strip_prefix(&folder).unwrap_or_default();
                let name = file.strip_suffix(".mmdb").or_else(|| file.strip_suffix(".txt"));
                // Left by a killed upload: this call has the lease, so no other upload is under way.
                let left = file.ends_with(UNFINISHED) && !file.starts_with("current.json");
                if left || name.is_some_and(|name| !pointer.names(name)) {
                    self.store.remove(&key).await?;
                }
            }
            Ok::<_, UpdateError>(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(%edition, error = %logging::chain(&error), "old releases could not be removed");
        }
    }
}
