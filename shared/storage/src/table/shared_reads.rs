//! Reads that share a call: of single items at the same moment, and of the same partition.

use std::{
    collections::{HashMap, HashSet},
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

/// Reads that share a call.
pub struct Reads {
    pub(super) client: Client,
    pub(super) table: String,
    /// Whether every write that was acknowledged before is seen, at twice the price.
    pub(super) consistent: bool,
}

impl Calls for Reads {
    type Request = Key;
    type Response = TableResponse<Option<Item>>;
    /// A call takes 100, but answers with 16 MB at most: this many of the largest items that we write fit.
    const LIMIT: usize = 50;

    async fn call(&self, keys: Vec<Key>) -> Vec<TableResponse<Option<Item>>> {
        match self.read(&keys).await {
            Ok(output) => responses(&keys, output),
            Err(error) => keys.iter().map(|_| TableResponse::failed(error.clone())).collect(),
        }
    }
}

impl Reads {
    async fn read(&self, keys: &[Key]) -> Result<BatchGetItemOutput, TableError> {
        // Asking for an item twice is refused.
        let distinct: HashSet<&Key> = keys.iter().collect();
        let wanted = distinct.into_iter().map(Key::attributes).collect();
        let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(self.consistent).build();
        let request = request.map_err(TableError::unbuilt(READING))?;
        let answer = self.client.batch_get_item().request_items(&self.table, request).send().await;
        answer.map_err(TableError::sdk(READING))
    }
}

/// The response for each key of a call.
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

/// Consistent reads of whole partitions, or of the part of one whose sort keys begin alike. A busy publisher reads the same one
/// again and again: requests that come while a read is under way share the next one.
pub struct Partitions {
    pub(super) client: Client,
    pub(super) table: String,
}

impl Calls for Partitions {
    /// The partition key, and the beginning of the sort keys.
    type Request = (String, String);
    type Response = Result<Arc<Vec<Item>>, TableError>;
    /// Each is a query of its own; the limit is on those at once.
    const LIMIT: usize = 16;

    async fn call(&self, asks: Vec<Self::Request>) -> Vec<Self::Response> {
        let distinct: HashSet<&Self::Request> = asks.iter().collect();
        let reads = distinct.into_iter().map(async |ask| (ask, self.query(ask).await.map(Arc::new)));
        let found: HashMap<_, _> = join_all(reads).await.into_iter().collect();
        asks.iter().map(|ask| found[ask].clone()).collect()
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

    /// All reads of a call once failed with the one whose partition was too busy.
    #[test]
    fn a_throttled_key_leaves_the_reads_alone_that_share_its_call() {
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
