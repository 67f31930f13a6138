//! A simulated DynamoDB table. Its responses depend only on the requests, the given time, and the faults and delays
//! that the caller chooses. It supports the operations and expressions that the service uses, and refuses all others.

mod batches;
mod condition;
mod decimal;
mod pages;
mod parser;
mod range;
mod reads;
mod refusal;
mod request;
mod schema;
mod statement;
mod store;
mod touched;
mod update;
mod value;
mod write;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub use refusal::Refusal;
pub use schema::{Index, Projection, Schema};

use batches::Tokens;
use store::Store;

/// An item: its attributes, each with a value in DynamoDB's JSON format. Since all of a run's versions are kept, an
/// item's versions share equal values.
pub type Item = BTreeMap<Arc<str>, Arc<Value>>;

/// An item's partition key and sort key.
pub type ItemKey = (String, String);

/// A copy of the items, which writes reach with a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// The copy that eventually consistent reads of the table use.
    Replica,
    /// An index.
    Index,
}

/// The faults and delays, which the caller chooses, for example from a seed.
pub trait Conditions {
    /// Whether the partition of this item currently refuses all requests. For a query, and for an index that a write
    /// changes, the key is the partition with an empty sort key; for a scan, both are empty.
    fn throttles(&mut self, key: &ItemKey, index: Option<&str>, write: bool) -> bool;

    /// Whether a transaction that includes one of these items is in progress. Called once for a transaction, and once
    /// for each other write.
    fn conflicts(&mut self, keys: &[ItemKey]) -> bool;

    /// Whether a batch leaves the next item unprocessed, or a page of a query or a scan ends before it.
    fn leaves_out(&mut self) -> bool;

    /// The number of milliseconds until a write is visible in a copy. Called for each index that contains the item
    /// before or after the write.
    fn lag(&mut self, copy: Copy) -> u64;
}

/// A write that was carried out.
#[derive(Debug, Clone)]
pub struct Version {
    /// When it was written, in milliseconds.
    pub at: u64,
    /// The item's key.
    pub key: ItemKey,
    /// The item after the write; `None` if the write removed it.
    pub item: Option<Arc<Item>>,
}

/// The simulated table.
#[derive(Debug)]
pub struct Table {
    store: Store,
    tokens: Tokens,
}

impl Table {
    /// An empty table.
    pub fn new(schema: Schema) -> Self {
        Self { store: Store::new(schema), tokens: Tokens::default() }
    }

    /// Handles a request, given as JSON, at a time in milliseconds that must not decrease between calls.
    pub fn call(
        &mut self,
        operation: &str,
        request: &Value,
        now: u64,
        conditions: &mut dyn Conditions,
    ) -> Result<Value, Refusal> {
        let store = &mut self.store;
        store.settle_due(now);
        match operation {
            "GetItem" => reads::get(store, request, now, conditions),
            "BatchGetItem" => reads::batch_get(store, request, now, conditions),
            "Query" => pages::query(store, request, now, conditions),
            "Scan" => pages::scan(store, request, now, conditions),
            "PutItem" | "UpdateItem" | "DeleteItem" => write::single(store, operation, request, now, conditions),
            "TransactWriteItems" => batches::transaction(store, &mut self.tokens, request, now, conditions),
            "BatchExecuteStatement" => batches::statements(store, request, now, conditions),
            _ => Err(Refusal::unknown_operation(operation)),
        }
    }

    /// The items that a request names, in order, and a short label for its effect on them, such as
    /// `BatchExecuteStatement UPDATE DLV/HEAD`. A query names its partition with an empty sort key.
    pub fn touched(operation: &str, request: &Value) -> (String, Vec<ItemKey>) {
        touched::touched(operation, request)
    }

    /// The current item with this key.
    pub fn item(&self, key: &ItemKey) -> Option<&Item> {
        self.store.present(key).map(Arc::as_ref)
    }

    /// All current items, ordered by key.
    pub fn items(&self) -> impl Iterator<Item = (&ItemKey, &Item)> {
        self.store.rows.iter().filter_map(|(key, row)| Some((key, row.present()?.item.as_ref())))
    }

    /// All writes that were carried out, in order, except those that were forgotten.
    pub fn versions(&self) -> &[Version] {
        &self.store.log
    }

    /// Removes items that expired more than this many milliseconds ago. DynamoDB removes them within days. The removal
    /// becomes visible everywhere as soon as the item's earlier writes are.
    pub fn remove_expired(&mut self, now: u64, older_than: u64) {
        self.store.settle_due(now);
        let attribute = self.store.schema.expiry.as_str();
        let is_expired = |item: &Item| {
            let expiry = item.get(attribute).and_then(|value| value.get("N")?.as_str()?.parse::<u64>().ok());
            expiry.is_some_and(|expiry| expiry.saturating_mul(1000) < now.saturating_sub(older_than))
        };
        let expired: Vec<_> = self.items().filter(|(_, item)| is_expired(item)).map(|(key, _)| key.clone()).collect();
        for key in expired {
            self.store.write(key, None, now, None);
        }
    }

    /// Drops writes from before this time from [`Self::versions`]. No reader needs these writes.
    pub fn forget_before(&mut self, at: u64) {
        let forgotten = self.store.log.partition_point(|version| version.at < at);
        self.store.log.drain(..forgotten);
    }
}
