//! Consistent reads. Those of single items at the same moment share a call, and those of the same thing an answer.

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

use super::{error::TableError, key::Item};
use base::gather::Calls;

const READING: &str = "reading items";

/// Reads that share a call.
pub struct Reads {
    pub(super) client: Client,
    pub(super) table: String,
}

type Key = (String, String);

/// What a call says of one of its reads.
#[derive(Debug)]
pub enum ReadAnswer {
    /// It is decided.
    Decided(Result<Option<Item>, TableError>),
    /// "Not now", of this item alone: it had no room in the answer, or its partition is too busy. The others of this call must
    /// not wait for it, nor fail with it.
    NotNow(TableError),
}

impl Calls for Reads {
    type Request = Key;
    type Response = ReadAnswer;
    /// A call takes 100, but answers with 16 MB at most: this many of the largest items that we write fit.
    const LIMIT: usize = 50;

    async fn call(&self, keys: Vec<Key>) -> Vec<ReadAnswer> {
        match self.read(&keys).await {
            Ok(answer) => answers(&keys, answer),
            Err(error) => keys.iter().map(|_| ReadAnswer::Decided(Err(error.clone()))).collect(),
        }
    }
}

impl Reads {
    async fn read(&self, keys: &[Key]) -> Result<BatchGetItemOutput, TableError> {
        // Asking for an item twice is refused.
        let distinct: HashSet<&Key> = keys.iter().collect();
        let wanted = distinct.into_iter().map(|(pk, sk)| {
            let key = [("pk", pk), ("sk", sk)];
            key.map(|(name, part)| (name.to_owned(), AttributeValue::S(part.clone()))).into()
        });
        let request = KeysAndAttributes::builder().set_keys(Some(wanted.collect())).consistent_read(true).build();
        let request = request.map_err(TableError::unbuilt(READING))?;
        let answer = self.client.batch_get_item().request_items(&self.table, request).send().await;
        answer.map_err(TableError::sdk(READING))
    }
}

/// What an answer says of each of the keys that it was asked for.
fn answers(keys: &[Key], answer: BatchGetItemOutput) -> Vec<ReadAnswer> {
    let items = answer.responses.unwrap_or_default().into_values().flatten();
    let found: HashMap<Key, Item> = items.filter_map(|item| Some((key_of(&item)?, item))).collect();
    let left = answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|rest| rest.keys);
    let left: HashSet<Key> = left.filter_map(|key| key_of(&key)).collect();
    let answer = |key: &Key| match found.get(key) {
        Some(item) => ReadAnswer::Decided(Ok(Some(item.clone()))),
        None if left.contains(key) => ReadAnswer::NotNow(TableError::code(READING, "ThrottlingError")),
        None => ReadAnswer::Decided(Ok(None)),
    };
    keys.iter().map(answer).collect()
}

fn key_of(item: &Item) -> Option<Key> {
    let part = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    part("pk").zip(part("sk"))
}

/// Reads of whole partitions, or of the part of one whose sort keys begin alike. A busy publisher reads the same one again
/// and again: what is asked for while a read is under way shares the next one.
pub struct Partitions {
    pub(super) client: Client,
    pub(super) table: String,
}

impl Calls for Partitions {
    /// The partition key, and what the sort keys begin with.
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
        let mut pages = query.into_paginator().items().send();
        let mut items = Vec::new();
        while let Some(item) = pages.next().await {
            items.push(item.map_err(TableError::sdk(READING))?);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::value::Value;

    fn key(name: &str) -> Key {
        (name.to_owned(), "HEAD".to_owned())
    }

    fn item(name: &str) -> Item {
        [("pk", name), ("sk", "HEAD")].map(|(name, part)| (name.to_owned(), Value::text(part).0)).into()
    }

    /// All reads of a call once failed with the one whose partition was too busy.
    #[test]
    fn a_throttled_key_leaves_the_reads_alone_that_share_its_call() {
        let left = KeysAndAttributes::builder().keys(item("busy")).build().expect("complete");
        let answer = BatchGetItemOutput::builder()
            .responses("table", vec![item("there")])
            .unprocessed_keys("table", left)
            .build();
        let answers = answers(&["there", "busy", "absent", "there"].map(key), answer);
        let [
            ReadAnswer::Decided(Ok(Some(there))),
            ReadAnswer::NotNow(TableError::Unavailable { .. }),
            ReadAnswer::Decided(Ok(None)),
            ReadAnswer::Decided(Ok(Some(again))),
        ] = answers.as_slice()
        else {
            panic!("{answers:?}")
        };
        assert_eq!((there, again), (&item("there"), &item("there")));
    }

    /// Stores read rows whose attributes are named by what they count.
    #[test]
    fn numbers_reach_flattened_members_as_numbers() {
        #[derive(serde::Deserialize)]
        struct Row {
            sk: String,
            #[serde(flatten)]
            health: Health,
            #[serde(flatten)]
            rest: HashMap<String, serde_json::Value>,
        }
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Health {
            failures: u32,
            since: Option<String>,
        }
        let mut row = item("there");
        row.extend([("failures".to_owned(), Value::number(5).0), ("d14".to_owned(), Value::number(7).0)]);
        let row: Row = crate::table::read_item(row, "reading").expect("read");
        assert_eq!((row.sk.as_str(), row.health.failures, row.health.since), ("HEAD", 5, None));
        assert_eq!(row.rest["d14"].as_u64(), Some(7));
    }
}
