//! The DynamoDB table: one client, one name, and the only translation of its errors.

mod read;
mod statement;

pub use statement::{Executed, Statement};

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::{BuildError, ProvideErrorMetadata, SdkError},
    operation::transact_write_items::TransactWriteItemsError,
    types::{AttributeValue, TransactWriteItem},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::sleep;

use base::{clock::Time, gather::Gather, logging};
use problem::Problem;
use read::{Partitions, ReadAnswer, Reads};
use statement::{Answer, Writes};

/// An item as DynamoDB knows it.
pub type Item = HashMap<String, AttributeValue>;

/// The table with everything that lasts.
#[derive(Debug, Clone)]
pub struct Table {
    /// The client; its calls stand in the stores, one store per kind of item.
    pub client: Client,
    /// The table's name.
    pub name: String,
    writes: Gather<Writes>,
    reads: Gather<Reads>,
    partitions: Gather<Partitions>,
}

/// Why the table did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    /// DynamoDB could not be reached, was too busy or failed, after the SDK's own retries.
    #[error("the table did not answer: {doing}")]
    Unavailable {
        /// What was being done.
        doing: &'static str,
        /// What the SDK says.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// DynamoDB refused the request as such: a fault of this program or of its permissions.
    #[error("the table refused a request: {doing}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// What the SDK says.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An item is not in the form in which this program writes it.
    #[error("an item of the table could not be read or written: {doing}")]
    Item {
        /// What was being done.
        doing: &'static str,
        /// What is wrong with the item.
        #[source]
        source: Arc<serde_dynamo::Error>,
    },
    /// An item that must be there is not.
    #[error("an item that must exist is missing: {0}")]
    Missing(&'static str),
}

/// The codes with which DynamoDB says "not now" rather than "not so".
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
const PASSING: [&str; 8] = [
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionInProgressException",
    "TransactionConflictException",
];

impl TableError {
    /// Sorts an error of the SDK by whose fault it is.
    pub fn sdk<E>(doing: &'static str) -> impl Fn(SdkError<E>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        move |error| {
            let passing = match &error {
                SdkError::ServiceError(service) => {
                    service.raw().status().is_server_error() || service.err().code().is_some_and(passing_code)
                }
                SdkError::ConstructionFailure(_) => false,
                _ => true,
            };
            let source = Arc::new(error);
            if passing { Self::Unavailable { doing, source } } else { Self::Refused { doing, source } }
        }
    }

    /// A request that could not even be put together.
    pub fn unbuilt(doing: &'static str) -> impl Fn(BuildError) -> Self {
        move |error| Self::Refused { doing, source: Arc::new(error) }
    }

    /// An answer of a batch or a transaction that failed for this reason code, without an error of its own.
    pub fn code(doing: &'static str, code: &str) -> Self {
        let source = Box::<dyn std::error::Error + Send + Sync>::from(format!("answered with {code}")).into();
        if passing_code(code) { Self::Unavailable { doing, source } } else { Self::Refused { doing, source } }
    }
}

/// Whether a reason code of a batch or a transaction says "not now". They are spelt unlike the errors of single calls.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html>
pub fn passing_code(code: &str) -> bool {
    const REASONS: [&str; 4] =
        ["ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError", "TransactionConflict"];
    REASONS.contains(&code) || PASSING.contains(&code)
}

/// The pauses before a batch or a transaction is tried again whose answer said "not now": the SDK tries only calls that
/// fail as a whole again.
pub const PAUSES: [Duration; 5] = [
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(90),
    Duration::from_millis(270),
    Duration::from_millis(810),
];

/// How a transaction ended that was not refused as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transacted {
    /// Everything was written.
    Yes,
    /// A condition did not hold, and nothing was written.
    ConditionLost,
}

impl Table {
    /// The table of this name.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let name = name.into();
        let writes = Gather::new(Writes { client: client.clone(), table: name.clone() });
        let reads = Gather::new(Reads { client: client.clone(), table: name.clone() });
        let partitions = Gather::new(Partitions { client: client.clone(), table: name.clone() });
        Self { client, name, writes, reads, partitions }
    }

    /// Writes one item, together with whatever else is written at this moment.
    pub async fn execute(&self, statement: Statement) -> Result<Executed, TableError> {
        let mut pauses = PAUSES.iter();
        loop {
            let answer = self.writes.ask(statement.clone()).await;
            match answer.map_err(|_| TableError::Missing("the outcome of a write"))? {
                Answer::Decided(outcome) => return outcome,
                Answer::NotNow(error) => sleep(*pauses.next().ok_or(error)?).await,
            }
        }
    }

    /// Reads one item by its key, consistently, together with whatever else is read at this moment.
    pub async fn read<T: DeserializeOwned>(
        &self,
        key: (String, String),
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        let mut pauses = PAUSES.iter();
        loop {
            let answer = self.reads.ask(key.clone()).await;
            match answer.map_err(|_| TableError::Missing("the outcome of a read"))? {
                ReadAnswer::Decided(item) => return item?.map(|item| read_item(item, doing)).transpose(),
                ReadAnswer::NotNow(error) => sleep(*pauses.next().ok_or(error)?).await,
            }
        }
    }

    /// Reads one item by its key; `None` when there is none.
    ///
    /// A consistent read sees every write that was acknowledged before it, at twice the price.
    pub async fn get<T: DeserializeOwned>(
        &self,
        (pk, sk): (String, String),
        consistent: bool,
        doing: &'static str,
    ) -> Result<Option<T>, TableError> {
        let request = self.client.get_item().table_name(&self.name).consistent_read(consistent);
        let answer = request
            .key("pk", AttributeValue::S(pk))
            .key("sk", AttributeValue::S(sk))
            .send()
            .await
            .map_err(TableError::sdk(doing))?;
        answer.item.map(|item| read_item(item, doing)).transpose()
    }

    /// Writes one item, whatever was there before.
    pub async fn put(&self, item: &impl Serialize, doing: &'static str) -> Result<(), TableError> {
        let request = self.client.put_item().table_name(&self.name).set_item(Some(write_item(item, doing)?));
        request.send().await.map_err(TableError::sdk(doing))?;
        Ok(())
    }

    /// The items of a partition whose sort keys begin so, in their order, read consistently; whoever asks for the same while
    /// it is being read shares the next answer.
    pub async fn shared_partition(&self, pk: String, sk_prefix: &str) -> Result<Arc<Vec<Item>>, TableError> {
        let asked = self.partitions.ask((pk, sk_prefix.to_owned())).await;
        asked.map_err(|_| TableError::Missing("the outcome of a query"))?
    }

    /// A page of what is due in one shard of the index `byDue`, the longest due first, and where the next page begins. The
    /// index may lag behind a little. An entry that cannot be read is logged and left out, so that it holds up no other.
    pub async fn due_before<T: DeserializeOwned>(
        &self,
        shard: &str,
        now: Time,
        limit: i32,
        start: Option<Item>,
        doing: &'static str,
    ) -> Result<(Vec<T>, Option<Item>), TableError> {
        self.due_between(shard, ("0", &now.to_string()), limit, start, doing).await
    }

    /// The same of what stands between two keys, both included, for shards that are sorted by something else than time.
    pub async fn due_between<T: DeserializeOwned>(
        &self,
        shard: &str,
        (from, to): (&str, &str),
        limit: i32,
        start: Option<Item>,
        doing: &'static str,
    ) -> Result<(Vec<T>, Option<Item>), TableError> {
        let query = self
            .client
            .query()
            .table_name(&self.name)
            .index_name("byDue")
            .key_condition_expression("dueShard = :shard AND dueAt BETWEEN :from AND :to")
            .expression_attribute_values(":shard", text(shard))
            .expression_attribute_values(":from", text(from))
            .expression_attribute_values(":to", text(to))
            .set_exclusive_start_key(start)
            .limit(limit);
        let answer = query.send().await.map_err(TableError::sdk(doing))?;
        let entries = answer.items.unwrap_or_default().into_iter().filter_map(|item| {
            read_item(item, doing).inspect_err(|error| tracing::error!(error = %logging::chain(error), "skipped")).ok()
        });
        Ok((entries.collect(), answer.last_evaluated_key))
    }

    /// Writes all of it or nothing.
    ///
    /// Another write to one of the items at this very moment cancels a transaction, so that one is tried again; the
    /// conditions in it must make that harmless.
    pub async fn transact(
        &self,
        writes: Vec<TransactWriteItem>,
        doing: &'static str,
    ) -> Result<Transacted, TableError> {
        let mut pauses = PAUSES.iter();
        loop {
            let call = self.client.transact_write_items().set_transact_items(Some(writes.clone()));
            let Err(error) = call.send().await else { return Ok(Transacted::Yes) };
            let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
            else {
                return Err(TableError::sdk(doing)(error));
            };
            let mut codes = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code());
            let Some(code) = codes.find(|code| !["None", "ConditionalCheckFailed"].contains(code)) else {
                return Ok(Transacted::ConditionLost);
            };
            match pauses.next() {
                Some(pause) if passing_code(code) => sleep(*pause).await,
                _ => return Err(TableError::code(doing, code)),
            }
        }
    }

    /// All items of one partition, in the order of the sort key, read consistently: those whose sort key begins so, if
    /// it is said how.
    pub async fn partition(
        &self,
        pk: String,
        sk_prefix: Option<&str>,
        doing: &'static str,
    ) -> Result<Vec<Item>, TableError> {
        let mut query = self
            .client
            .query()
            .table_name(&self.name)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(pk));
        if let Some(prefix) = sk_prefix {
            query = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
                .expression_attribute_values(":sk", AttributeValue::S(prefix.into()));
        }
        let mut pages = query.into_paginator().items().send();
        let mut items = Vec::new();
        while let Some(item) = pages.next().await {
            items.push(item.map_err(TableError::sdk(doing))?);
        }
        Ok(items)
    }
}

/// A text as an attribute.
pub fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

/// A number as an attribute.
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Turns an item into the type that wrote it.
pub fn read_item<T: DeserializeOwned>(item: Item, doing: &'static str) -> Result<T, TableError> {
    serde_dynamo::from_item(item).map_err(|source| TableError::Item { doing, source: source.into() })
}

/// Turns a value into an attribute.
pub fn write_value(value: &impl Serialize, doing: &'static str) -> Result<AttributeValue, TableError> {
    serde_dynamo::to_attribute_value(value).map_err(|source| TableError::Item { doing, source: source.into() })
}

/// Turns a value into an item.
pub fn write_item(value: &impl Serialize, doing: &'static str) -> Result<Item, TableError> {
    serde_dynamo::to_item(value).map_err(|source| TableError::Item { doing, source: source.into() })
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable { .. } => Self::unavailable(error),
            TableError::Refused { .. } | TableError::Item { .. } | TableError::Missing(_) => Self::internal(error),
        }
    }
}
