//! Webhooks that fail, of every managing entity.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use serde::de::IgnoredAny;

use crate::whole_table;
use auth::AuthorizedEntity;
use storage::{Table, TableError};
use webhooks::subscriptions::{
    failing::{place, trace},
    show::Showing,
};

pub use webhooks::subscriptions::failing::{FailingState, FailingWebhook};

/// How many webhooks are read at once.
const AT_ONCE: usize = 16;

/// The webhooks that fail, by their managing entities. Reads the whole table.
pub async fn find(table: &Table) -> Result<Vec<FailingWebhook>, TableError> {
    let found = whole_table::find::<IgnoredAny>(table, trace(), "looking for webhooks that fail").await?;
    // A webhook that was disabled may have left its health behind, which leads to it as well.
    let places: BTreeSet<_> = found.iter().filter_map(|(key, _)| place(key)).collect();
    let showing = Showing::new(table);
    let read = stream::iter(places).map(|(entity, webhook)| {
        let showing = showing.clone();
        async move { showing.failing(AuthorizedEntity::by_operator(entity), webhook).await }
    });
    read.buffered(AT_ONCE).try_filter_map(|webhook| async { Ok(webhook) }).try_collect().await
}
