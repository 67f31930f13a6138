//! Reads of single items, partitions and queries.

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
    /// Reads one item by its key, consistently. Concurrent reads share a call.
    pub async fn read<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.read_batched(&self.reads, key.into()).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// Reads one item by its key, eventually consistently, at half the price: the result may lack the most recent
    /// writes. Concurrent reads share a call.
    pub async fn read_eventual<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.read_batched(&self.eventual_reads, key.into()).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// Reads one item by its key in a separate call.
    ///
    /// A consistent read includes every previously acknowledged write, at twice the price.
    pub async fn get<T: DeserializeOwned>(
        &self,
        key: impl Into<Key>,
        consistent: bool,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        self.get_item(key.into(), consistent, doing).await?.map(|item| read_item(item, doing)).transpose()
    }

    /// Reads, in order and with strong consistency, the items of a partition whose sort keys have this prefix. Callers
    /// that request the same items while a read is under way share the next one.
    pub async fn shared_partition<T: DeserializeOwned>(
        &self,
        pk: String,
        sk_prefix: &str,
        doing: &'static str,
    ) -> Result<Vec<T>, TableError> {
        let items = self.read_partition_batched(pk, sk_prefix.to_owned()).await?;
        items.iter().map(|item| read_item(item.clone(), doing)).collect()
    }

    /// A page of a query, in the order of the sort key.
    pub async fn page<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Page<T>, TableError> {
        Ok(self.page_looked_at(query, doing).await?.0)
    }

    /// A page of a query, and the number of items read for it, filtered ones included.
    pub async fn page_looked_at<T: DeserializeOwned>(
        &self,
        query: Query,
        doing: &'static str,
    ) -> Result<(Page<T>, usize), TableError> {
        let skips_unreadable = query.skips_unreadable;
        let (rows, looked_at) = self.row_page(query, doing).await?;
        Ok((Page { entries: read_rows(rows.entries, skips_unreadable, doing)?, next: rows.next }, looked_at))
    }

    /// All of a query's items, from all pages.
    pub async fn all<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Vec<T>, TableError> {
        let skips_unreadable = query.skips_unreadable;
        read_rows(self.rows(query, doing).await?, skips_unreadable, doing)
    }

    /// All of a query's items as rows, for partitions with items of several types, which the sort key distinguishes.
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

    /// The number of items that one query call finds. The response does not contain the items.
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

    fn read_partition_batched(&self, pk: String, sk_prefix: String) -> TableFuture<'_, Arc<Vec<Item>>> {
        async move {
            let response = self.partitions.submit((pk, sk_prefix)).await;
            response.map_err(|_| TableError::Missing("a query's response"))?
        }
        .boxed()
    }

    fn read_batched<'a>(&self, reads: &'a Batcher<Reads>, key: Key) -> TableFuture<'a, Option<Item>> {
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
            Err(error) if skips_unreadable => tracing::error!(error = %logging::chain(&error), "an item is skipped"),
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}
