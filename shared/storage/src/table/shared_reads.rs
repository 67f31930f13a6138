//! Batched reads: concurrent reads of single items, and of the same partition.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

use aws_sdk_dynamodb::{
    Client,
    operation::batch_get_item::BatchGetItemOutput,
    types::{AttributeValue, KeysAndAttributes},
};
use futures::future::join_all;

use super::{
    error::TableError,
    key::{Item, Key},
    retry::TableResponse::{self, Decided},
};
use base::batcher::Calls;

const READING: &str = "reading items";

/// Batched reads of single items.
pub struct Reads {
    pub(super) client: Client,
    pub(super) table: String,
    /// Whether the reads include every previously acknowledged write, at twice the price.
    pub(super) consistent: bool,
}

impl Calls for Reads {
    type Request = Key;
    type Response = TableResponse<Option<Item>>;
    /// A call accepts 100 keys, but a response has at most 16 MB, which is enough for this many of the service's
    /// largest items.
    const LIMIT: usize = 50;
    const STAGE: &'static str = "calls: reads";

    async fn call(&self, keys: Vec<Key>) -> Vec<TableResponse<Option<Item>>> {
        match self.read(&keys).await {
            Ok(output) => responses(&keys, output),
            Err(error) => keys.iter().map(|_| TableResponse::failed(error.clone())).collect(),
        }
    }
}

/// The requests without duplicates, in order.
fn distinct<R: Eq + Hash>(requests: &[R]) -> impl Iterator<Item = &R> {
    let mut known = HashSet::new();
    requests.iter().filter(move |request| known.insert(*request))
}

impl Reads {
    async fn read(&self, keys: &[Key]) -> Result<BatchGetItemOutput, TableError> {
        // DynamoDB refuses duplicate keys.
        let wanted = distinct(keys).map(Key::attributes).collect();
        let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(self.consistent).build();
        let request = request.map_err(TableError::unbuilt(READING))?;
        let response = self.client.batch_get_item().request_items(&self.table, request).send().await;
        response.map_err(TableError::sdk(READING))
    }
}

/// The response for each key in a batch.
fn responses(keys: &[Key], output: BatchGetItemOutput) -> Vec<TableResponse<Option<Item>>> {
    let items = output.responses.unwrap_or_default().into_values().flatten();
    let found: HashMap<Key, Item> = items.filter_map(|item| Some((Key::of(&item)?, item))).collect();
    let left = output.unprocessed_keys.unwrap_or_default().into_values().flat_map(|rest| rest.keys);
    let left: HashSet<Key> = left.filter_map(|key| Key::of(&key)).collect();
    let response = |key: &Key| match found.get(key) {
        Some(item) => Decided(Ok(Some(item.clone()))),
        None if left.contains(key) => TableResponse::refused(READING, "ThrottlingError"),
        None => Decided(Ok(None)),
    };
    keys.iter().map(response).collect()
}

/// Consistent reads of partitions, by a prefix of the sort keys. A busy publisher often reads the same partition, so
/// requests that arrive while a read is under way share the next one.
pub struct Partitions {
    pub(super) client: Client,
    pub(super) table: String,
}

impl Calls for Partitions {
    /// The partition key, and the prefix of the sort keys.
    type Request = (String, String);
    type Response = Result<Arc<Vec<Item>>, TableError>;
    /// Each request is a separate query, so this limits the number of concurrent queries.
    const LIMIT: usize = 16;
    const STAGE: &'static str = "calls: queries";

    async fn call(&self, requests: Vec<Self::Request>) -> Vec<Self::Response> {
        let reads = distinct(&requests).map(async |request| (request, self.query(request).await.map(Arc::new)));
        let found: HashMap<_, _> = join_all(reads).await.into_iter().collect();
        requests.iter().map(|request| found[request].clone()).collect()
    }
}

impl Partitions {
    async fn query(&self, (pk, prefix): &(String, String)) -> Result<Vec<Item>, TableError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
            .expression_attribute_values(":pk", AttributeValue::S(pk.clone()))
            .expression_attribute_values(":sk", AttributeValue::S(prefix.clone()));
        query.into_paginator().items().send().try_collect().await.map_err(TableError::sdk(READING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::retry::TableResponse::NotNow;

    fn key(name: &str) -> Key {
        Key::new(name, "HEAD")
    }

    fn item(name: &str) -> Item {
        key(name).attributes()
    }

    #[test]
    fn a_throttled_key_does_not_affect_other_reads_of_its_batch() {
        let left = KeysAndAttributes::builder().keys(item("busy")).build().expect("complete");
        let output = BatchGetItemOutput::builder()
            .responses("table", vec![item("there")])
            .unprocessed_keys("table", left)
            .build();
        let responses = responses(&["there", "busy", "absent", "there"].map(key), output);
        let [
            Decided(Ok(Some(there))),
            NotNow(TableError::Unavailable { .. }),
            Decided(Ok(None)),
            Decided(Ok(Some(again))),
        ] = responses.as_slice()
        else {
            panic!("{responses:?}")
        };
        assert_eq!((there, again), (&item("there"), &item("there")));
    }
}
