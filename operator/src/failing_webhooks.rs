//! All managing entities' failing webhooks.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use serde::de::IgnoredAny;

use crate::whole_table;
use auth::AuthorizedEntity;
use base::{Clock, SystemClock};
use storage::{Table, TableError};
use webhooks::subscriptions::{
    health::failing::{trace, webhook_of},
    webhook::show::Showing,
};

pub use webhooks::subscriptions::health::failing::{FailingState, FailingWebhook};

/// How many webhooks are read concurrently.
const AT_ONCE: usize = 16;

/// The failing webhooks, ordered by managing entity. Reads the whole table.
pub async fn find(table: &Table) -> Result<Vec<FailingWebhook>, TableError> {
    let found = whole_table::find::<IgnoredAny>(table, trace(), "looking for failing webhooks").await?;
    // A disabled webhook may be found twice, since its health item can remain.
    let webhooks: BTreeSet<_> = found.iter().filter_map(|(key, _)| webhook_of(key)).collect();
    let showing = Showing::new(table);
    let now = SystemClock.now();
    let read = stream::iter(webhooks).map(|(entity, webhook)| {
        let showing = showing.clone();
        async move { showing.failing(AuthorizedEntity::by_operator(entity), webhook, now).await }
    });
    read.buffered(AT_ONCE).try_filter_map(|webhook| async { Ok(webhook) }).try_collect().await
}
