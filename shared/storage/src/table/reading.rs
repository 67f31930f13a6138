//! Reading single items, partitions and queries.

use std::sync::Arc;

use aws_sdk_dynamodb::types::Select;
use base::{batcher::Batcher, logging};
use futures::FutureExt;
use serde::de::DeserializeOwned;

use super::{
    Table, TableFuture,
    error::TableError,
    key::{Item, Key},
    query::{Count, Page, PageEnd, Query},
    retry::{TableResponse, until_decided},
    shared_reads::Reads,
    value::{Row, read_item},
};

impl Table {
    /// Reads one item by its key, consistently. Reads of the same moment share a call.
    pub async fn read<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.read_together(&self.reads, key.into()).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// The same at half the price, and without what was written in the last moments.
    pub async fn read_eventual<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.read_together(&self.eventual_reads, key.into()).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// Reads one item by its key in a call of its own; `None` when there is none.
    ///
    /// A consistent read sees every write that was acknowledged before it, at twice the price.
    pub async fn get<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        consistent: bool,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.get_item(key.into(), consistent, doing).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// The items of a partition whose sort keys begin so, in their order, read consistently. Callers that ask for the
    /// same while it is being read share the next response.
    pub async fn shared_partition<T: DeserializeOwned>(
        &self,
        pk: String,
        sk_prefix: &str,
        doing: &'static str,
    ) -> Result<Vec<T>, TableError> {
        let items = self.partition_together(pk, sk_prefix.to_owned()).await?;
        items.iter().map(|item| read_item(item.clone(), doing)).collect()
    }

    /// A page of a query, in the order of the sort key.
    pub async fn page<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Page<T>, TableError> {
        Ok(self.page_looked_at(query, doing).await?.0)
    }

    /// The same, and how many items were looked at for it, wanted or not.
    pub async fn page_looked_at<T: DeserializeOwned>(
        &self,
        query: Query,
        doing: &'static str,
    ) -> Result<(Page<T>, usize), TableError> {
        let skips_unreadable = query.skips_unreadable;
        let (rows, looked_at) = self.row_page(query, doing).await?;
        Ok((Page { entries: read_rows(rows.entries, skips_unreadable, doing)?, next: rows.next }, looked_at))
    }

    /// All items of a query, page after page.
    pub async fn all<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Vec<T>, TableError> {
        let skips_unreadable = query.skips_unreadable;
        read_rows(self.rows(query, doing).await?, skips_unreadable, doing)
    }

    /// The same, each item to be read by its sort key: for partitions that have items of several types.
    pub async fn rows(&self, query: Query, doing: &'static str) -> Result<Vec<Row>, TableError> {
        let mut rows = Vec::new();
        let mut next = None;
        loop {
            let (page, _) = self.row_page(query.clone().after(next), doing).await?;
            rows.extend(page.entries);
            if page.next.is_none() {
                return Ok(rows);
            }
            next = page.next;
        }
    }

    /// How many items one call of a query finds. The items themselves are not sent.
    pub fn count(&self, query: Query, doing: &'static str) -> TableFuture<'_, Count> {
        async move {
            let call = query.call(&self.client, &self.name).select(Select::Count);
            let response = call.send().await.map_err(TableError::sdk(doing))?;
            let [found, looked_at] =
                [response.count(), response.scanned_count()].map(|number| usize::try_from(number).unwrap_or_default());
            Ok(Count { found, looked_at, next: response.last_evaluated_key.map(PageEnd) })
        }
        .boxed()
    }

    fn get_item(&self, key: Key, consistent: bool, doing: &'static str) -> TableFuture<'_, Option<Item>> {
        async move {
            let call = self.client.get_item().table_name(&self.name).set_key(Some(key.attributes()));
            Ok(call.consistent_read(consistent).send().await.map_err(TableError::sdk(doing))?.item)
        }
        .boxed()
    }

    fn partition_together(&self, pk: String, sk_prefix: String) -> TableFuture<'_, Arc<Vec<Item>>> {
        async move {
            let asked = self.partitions.submit((pk, sk_prefix)).await;
            asked.map_err(|_| TableError::Missing("the outcome of a query"))?
        }
        .boxed()
    }

    fn read_together<'a>(&self, reads: &'a Batcher<Reads>, key: Key) -> TableFuture<'a, Option<Item>> {
        let read = move || {
            let key = key.clone();
            async { TableResponse::carried(reads.submit(key).await) }
        };
        until_decided(self.deadline, read).boxed()
    }

    fn row_page(&self, query: Query, doing: &'static str) -> TableFuture<'_, (Page<Row>, usize)> {
        async move {
            let response = query.call(&self.client, &self.name).send().await.map_err(TableError::sdk(doing))?;
            let looked_at = usize::try_from(response.scanned_count()).unwrap_or_default();
            let entries = response.items.unwrap_or_default().into_iter().map(Row).collect();
            Ok((Page { entries, next: response.last_evaluated_key.map(PageEnd) }, looked_at))
        }
        .boxed()
    }
}

fn read_rows<T: DeserializeOwned>(
    rows: Vec<Row>,
    skips_unreadable: bool,
    doing: &'static str,
) -> Result<Vec<T>, TableError> {
    let mut entries = Vec::new();
    for row in rows {
        match row.read(doing) {
            Ok(entry) => entries.push(entry),
            Err(error) if skips_unreadable => tracing::error!(error = %logging::chain(&error), "an item is left out"),
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}
