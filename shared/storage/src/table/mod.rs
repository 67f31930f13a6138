//! The DynamoDB table: one client, one name, and the only translation of its errors.

mod expression;
mod query;
mod read;
mod scan;
mod statement;
mod value;
mod write;

pub use query::{Page, Place, Query};
pub use scan::{Scan, Scanned};
pub use statement::{Executed, Statement};
pub use value::{Key, Path, Value, read_item};
pub use write::{
    Change, Comparison, Condition, Delete, Put, Transaction, Write, Written, absent, at_least, at_most, begins_with,
    contains, differs, exists, is, is_new, less, more, present,
};

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::{BuildError, ProvideErrorMetadata, SdkError},
    operation::{
        delete_item::DeleteItemError, put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{
        self as transact, AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
    },
};
use aws_types::SdkConfig;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::sleep;

use base::{clock::Time, gather::Gather, logging};
use expression::Expressions;
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
    #[error("an item of the table could not be read or written: {doing}{}", at(key.as_ref()))]
    Item {
        /// What was being done.
        doing: &'static str,
        /// Which item, where it was read.
        key: Option<Key>,
        /// What is wrong with the item.
        #[source]
        source: Arc<serde_dynamo::Error>,
    },
    /// An item that must be there is not.
    #[error("an item that must exist is missing: {0}")]
    Missing(&'static str),
}

fn at(key: Option<&Key>) -> String {
    key.map(|key| format!(" (`{}` / `{}`)", key.partition, key.sort)).unwrap_or_default()
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
    /// The table of this name, for a program that is no function: with these credentials, at AWS or at this endpoint.
    pub fn connect(aws: &SdkConfig, endpoint: Option<&str>, name: impl Into<String>) -> Self {
        let mut config = aws_sdk_dynamodb::config::Builder::from(aws);
        if let Some(endpoint) = endpoint {
            config.set_endpoint_url(Some(endpoint.to_owned()));
        }
        Self::new(Client::from_conf(config.build()), name)
    }

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

    /// Writes one item in a call of its own.
    pub async fn write(&self, write: impl Into<Write>, doing: &'static str) -> Result<Written<()>, TableError> {
        Ok(match self.write_alone(&write.into(), false, doing).await? {
            Written::Done(_) => Written::Done(()),
            Written::Lost(_) => Written::Lost(None),
        })
    }

    /// The same, and the item as it is then: with the change, or as it was found when a condition did not hold.
    pub async fn write_and_read<T: DeserializeOwned>(
        &self,
        change: Change,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.write_alone(&change.into(), true, doing).await?, doing)
    }

    /// Writes one item together with whatever else is written at this moment, which saves round trips under load and costs
    /// the same. What PartiQL has no words for goes alone.
    pub async fn write_together(
        &self,
        write: impl Into<Write>,
        doing: &'static str,
    ) -> Result<Written<()>, TableError> {
        Ok(match self.together(&write.into(), false, doing).await? {
            Written::Done(_) => Written::Done(()),
            Written::Lost(_) => Written::Lost(None),
        })
    }

    /// The same, and the item as it is then.
    pub async fn write_together_and_read<T: DeserializeOwned>(
        &self,
        change: Change,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.together(&change.into(), true, doing).await?, doing)
    }

    async fn together(
        &self,
        write: &Write,
        read: bool,
        doing: &'static str,
    ) -> Result<Written<Option<Item>>, TableError> {
        match Statement::of(write) {
            Some(statement) => Ok(match self.execute(statement).await? {
                Executed::Done(item) => Written::Done(item),
                Executed::ConditionLost(item) => Written::Lost(item.map(Some)),
            }),
            None => self.write_alone(write, read, doing).await,
        }
    }

    async fn write_alone(
        &self,
        write: &Write,
        read: bool,
        doing: &'static str,
    ) -> Result<Written<Option<Item>>, TableError> {
        let mut expressions = Expressions::default();
        let on_loss = read.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        match write {
            Write::Change(Change { key, assignments, conditions }) => {
                let call = self.client.update_item().table_name(&self.name).set_key(Some(key.attributes()));
                let (update, condition) = (expressions.update(assignments), expressions.condition(conditions));
                let (names, values) = expressions.into_maps();
                let call = call.set_update_expression(update).set_condition_expression(condition);
                let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
                let call = call.set_return_values_on_condition_check_failure(on_loss);
                match call.set_return_values(read.then_some(ReturnValue::AllNew)).send().await {
                    Ok(answer) => Ok(Written::Done(answer.attributes)),
                    Err(error) => match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(lost)) => {
                            Ok(Written::Lost(lost.item().cloned().map(Some)))
                        }
                        _ => Err(TableError::sdk(doing)(error)),
                    },
                }
            }
            Write::Put(Put { item, conditions }) => {
                let call = self.client.put_item().table_name(&self.name).set_item(Some(item.clone()));
                let condition = expressions.condition(conditions);
                let (names, values) = expressions.into_maps();
                let call = call.set_condition_expression(condition).set_expression_attribute_names(names);
                match call.set_expression_attribute_values(values).send().await {
                    Ok(_) => Ok(Written::Done(None)),
                    Err(error) => match error.as_service_error() {
                        Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(Written::Lost(None)),
                        _ => Err(TableError::sdk(doing)(error)),
                    },
                }
            }
            Write::Delete(Delete { key, conditions }) => {
                let call = self.client.delete_item().table_name(&self.name).set_key(Some(key.attributes()));
                let condition = expressions.condition(conditions);
                let (names, values) = expressions.into_maps();
                let call = call.set_condition_expression(condition).set_expression_attribute_names(names);
                match call.set_expression_attribute_values(values).send().await {
                    Ok(_) => Ok(Written::Done(None)),
                    Err(error) => match error.as_service_error() {
                        Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(Written::Lost(None)),
                        _ => Err(TableError::sdk(doing)(error)),
                    },
                }
            }
        }
    }

    /// Writes all of it or nothing. Another write to one of the items at this very moment cancels a transaction, so that one
    /// is tried again; the conditions in it must make that harmless.
    pub async fn write_all(&self, writes: Transaction, doing: &'static str) -> Result<Written<()>, TableError> {
        let writes = writes.0.iter().map(|write| self.in_transaction(write, doing)).collect::<Result<_, _>>()?;
        Ok(match self.transact(writes, doing).await? {
            Transacted::Yes => Written::Done(()),
            Transacted::ConditionLost => Written::Lost(None),
        })
    }

    fn in_transaction(&self, write: &Write, doing: &'static str) -> Result<TransactWriteItem, TableError> {
        let mut expressions = Expressions::default();
        let whole = TransactWriteItem::builder();
        Ok(match write {
            Write::Change(Change { key, assignments, conditions }) => {
                let part = Update::builder().table_name(&self.name).set_key(Some(key.attributes()));
                let (update, condition) = (expressions.update(assignments), expressions.condition(conditions));
                let (names, values) = expressions.into_maps();
                let part = part.set_update_expression(update).set_condition_expression(condition);
                let part = part.set_expression_attribute_names(names).set_expression_attribute_values(values);
                whole.update(part.build().map_err(TableError::unbuilt(doing))?)
            }
            Write::Put(Put { item, conditions }) => {
                let part = transact::Put::builder().table_name(&self.name).set_item(Some(item.clone()));
                let condition = expressions.condition(conditions);
                let (names, values) = expressions.into_maps();
                let part = part.set_condition_expression(condition).set_expression_attribute_names(names);
                whole.put(part.set_expression_attribute_values(values).build().map_err(TableError::unbuilt(doing))?)
            }
            Write::Delete(Delete { key, conditions }) => {
                let part = transact::Delete::builder().table_name(&self.name).set_key(Some(key.attributes()));
                let condition = expressions.condition(conditions);
                let (names, values) = expressions.into_maps();
                let part = part.set_condition_expression(condition).set_expression_attribute_names(names);
                whole.delete(part.set_expression_attribute_values(values).build().map_err(TableError::unbuilt(doing))?)
            }
        }
        .build())
    }

    /// A page of what a query finds, in the order of the sort key.
    pub async fn page<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Page<T>, TableError> {
        let skips = query.skips_unreadable;
        let answer = query.call(&self.client, &self.name).send().await.map_err(TableError::sdk(doing))?;
        let mut entries = Vec::new();
        for item in answer.items.unwrap_or_default() {
            match read_item(item, doing) {
                Ok(entry) => entries.push(entry),
                Err(error) if skips => tracing::error!(error = %logging::chain(&error), "an item is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(Page { entries, next: answer.last_evaluated_key.map(Place) })
    }

    /// Everything that a query finds, page after page.
    pub async fn all<T: DeserializeOwned>(&self, query: Query, doing: &'static str) -> Result<Vec<T>, TableError> {
        let (mut entries, mut next) = (Vec::new(), None);
        loop {
            let page: Page<T> = self.page(query.clone().after(next), doing).await?;
            entries.extend(page.entries);
            if page.next.is_none() {
                return Ok(entries);
            }
            next = page.next;
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

fn read_back<T: DeserializeOwned>(
    written: Written<Option<Item>>,
    doing: &'static str,
) -> Result<Written<T>, TableError> {
    Ok(match written {
        Written::Done(item) => Written::Done(read_item(item.unwrap_or_default(), doing)?),
        Written::Lost(item) => Written::Lost(item.flatten().map(|item| read_item(item, doing)).transpose()?),
    })
}

/// A text as an attribute.
pub fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

/// A number as an attribute.
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Turns a value into an attribute.
pub fn write_value(value: &impl Serialize, doing: &'static str) -> Result<AttributeValue, TableError> {
    serde_dynamo::to_attribute_value(value).map_err(|source| TableError::Item {
        doing,
        key: None,
        source: source.into(),
    })
}

/// Turns a value into an item.
pub fn write_item(value: &impl Serialize, doing: &'static str) -> Result<Item, TableError> {
    serde_dynamo::to_item(value).map_err(|source| TableError::Item { doing, key: None, source: source.into() })
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable { .. } => Self::unavailable(error),
            TableError::Refused { .. } | TableError::Item { .. } | TableError::Missing(_) => Self::internal(error),
        }
    }
}
