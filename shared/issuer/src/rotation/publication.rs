//! Where a rotation publishes public keys.

use std::future::Future;

use auth::keys::{Published, PublishedKeys};
use storage::TableError;

/// Where the public keys are published.
pub trait Publication: Send + Sync {
    /// The published keys.
    fn read(&self) -> impl Future<Output = Result<Published, TableError>> + Send;

    /// Changes them, on condition that they have not changed since they were read.
    fn change<C: Send>(
        &self,
        change: impl Fn(&mut Published) -> C + Send + Sync,
    ) -> impl Future<Output = Result<C, TableError>> + Send;
}

impl Publication for PublishedKeys {
    async fn read(&self) -> Result<Published, TableError> {
        Self::read(self).await
    }

    async fn change<C: Send>(&self, change: impl Fn(&mut Published) -> C + Send + Sync) -> Result<C, TableError> {
        Self::change(self, change).await
    }
}
