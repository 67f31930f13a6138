//! Consistent reads. Those of single items at the same moment share a call, and those of the same thing an answer.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, KeysAndAttributes},
};
use futures::future::join_all;
use tokio::time::sleep;

use super::{Item, PAUSES, TableError};
use crate::gather::Calls;

const READING: &str = "reading items";

/// Reads that share a call.
pub struct Reads {
    pub(super) client: Client,
    pub(super) table: String,
}

type Key = (String, String);

impl Calls for Reads {
    type Ask = Key;
    type Answer = Result<Option<Item>, TableError>;
    /// A call takes 100, but answers with 16 MB at most: this many of the largest items that we write fit.
    const LIMIT: usize = 50;

    async fn call(&self, keys: Vec<Key>) -> Vec<Self::Answer> {
        match self.read(&keys).await {
            Ok(found) => keys.iter().map(|key| Ok(found.get(key).cloned())).collect(),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl Reads {
    async fn read(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, TableError> {
        let mut found = HashMap::new();
        let mut wanted: Vec<Item> = Vec::new();
        for (position, (pk, sk)) in keys.iter().enumerate() {
            // Asking for an item twice is refused.
            if !keys[..position].iter().any(|(earlier_pk, earlier_sk)| (earlier_pk, earlier_sk) == (pk, sk)) {
                let key = [("pk", pk), ("sk", sk)];
                wanted.push(key.map(|(name, part)| (name.to_owned(), AttributeValue::S(part.clone()))).into());
            }
        }
        let mut pauses = PAUSES.iter();
        loop {
            let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true).build();
            let request = request.map_err(TableError::unbuilt(READING))?;
            let answer = self.client.batch_get_item().request_items(&self.table, request).send().await;
            let answer = answer.map_err(TableError::sdk(READING))?;
            for item in answer.responses.unwrap_or_default().into_values().flatten() {
                let part = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
                let key = part("pk").zip(part("sk")).ok_or(TableError::Missing("the key of an item"))?;
                found.insert(key, item);
            }
            // What is left had no room in the answer, or the table was too busy for it.
            wanted = answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|rest| rest.keys).collect();
            if wanted.is_empty() {
                return Ok(found);
            }
            let pause = pauses.next().ok_or_else(|| TableError::code(READING, "ThrottlingError"))?;
            sleep(*pause).await;
        }
    }
}

/// Reads of whole partitions, or of the part of one whose sort keys begin alike. A busy publisher reads the same one again
/// and again: what is asked for while a read is under way shares the next one.
pub struct Partitions {
    pub(super) client: Client,
    pub(super) table: String,
}

impl Calls for Partitions {
    /// The partition key, and what the sort keys begin with.
    type Ask = (String, String);
    type Answer = Result<Arc<Vec<Item>>, TableError>;
    /// Each is a query of its own; the limit is on those at once.
    const LIMIT: usize = 16;

    async fn call(&self, asks: Vec<Self::Ask>) -> Vec<Self::Answer> {
        let distinct: HashSet<&Self::Ask> = asks.iter().collect();
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
        let mut pages = query.into_paginator().items().send();
        let mut items = Vec::new();
        while let Some(item) = pages.next().await {
            items.push(item.map_err(TableError::sdk(READING))?);
        }
        Ok(items)
    }
}
