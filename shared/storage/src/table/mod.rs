//! The DynamoDB table: one client, one name, and the only translation of its errors.

mod error;
mod expression;
mod key;
mod query;
mod read;
mod scan;
mod statement;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use error::TableError;
use error::{PAUSES, passing_code};
use key::Item;
pub use key::Key;
pub use query::{Count, Page, Place, Query};
pub use scan::{Scan, Scanned};
use statement::{Executed, Statement};
pub use value::{Path, Row, Value};
use value::{read_item, write_item};
pub use write::{
    Change, Comparison, Condition, Delete, Put, Transaction, Write, Written, absent, at_least, at_most, begins_with,
    contains, differs, exists, is, is_new, less, more, present,
};

use aws_sdk_dynamodb::{
    Client,
    operation::{
        delete_item::DeleteItemError, put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{
        self as transact, AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, Select, TransactWriteItem,
        Update,
    },
};
use aws_types::SdkConfig;
use serde::{Serialize, de::DeserializeOwned};

use base::clock::pause;
use base::{gather::Gather, logging};
use expression::Expressions;
use read::{Partitions, ReadAnswer, Reads};
use statement::{Answer, Writes};

/// The table with everything that lasts.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    name: String,
    writes: Gather<Writes>,
    reads: Gather<Reads>,
    partitions: Gather<Partitions>,
}

/// How a transaction ended that was not refused as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transacted {
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
    async fn execute(&self, statement: Statement) -> Result<Executed, TableError> {
        let mut pauses = PAUSES.iter();
        loop {
            let answer = self.writes.ask(statement.clone()).await;
            match answer.map_err(|_| TableError::Missing("the outcome of a write"))? {
                Answer::Decided(outcome) => return outcome,
                Answer::NotNow(error) => pause(*pauses.next().ok_or(error)?).await,
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

    /// Writes a whole item in a call of its own. Done gives the item as it was written, and lost the item that stands in its
    /// place.
    pub async fn put_and_read<T: DeserializeOwned>(
        &self,
        put: Put,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.write_alone(&put.into(), true, doing).await?, doing)
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

    /// Writes in a call of its own. A transaction that holds the item at this very moment refuses the call, so that it is tried
    /// again: nothing was written, and the condition is checked anew.
    async fn write_alone(
        &self,
        write: &Write,
        read: bool,
        doing: &'static str,
    ) -> Result<Written<Option<Item>>, TableError> {
        let mut pauses = PAUSES.iter();
        loop {
            if let Some(written) = self.write_once(write, read, doing).await? {
                return Ok(written);
            }
            let held = || TableError::code(doing, "TransactionConflict");
            pause(*pauses.next().ok_or_else(held)?).await;
        }
    }

    /// `None` when a transaction holds the item.
    async fn write_once(
        &self,
        write: &Write,
        read: bool,
        doing: &'static str,
    ) -> Result<Option<Written<Option<Item>>>, TableError> {
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
                    Ok(answer) => Ok(Some(Written::Done(answer.attributes))),
                    Err(error) => match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(lost)) => {
                            Ok(Some(Written::Lost(lost.item().cloned().map(Some))))
                        }
                        Some(UpdateItemError::TransactionConflictException(_)) => Ok(None),
                        _ => Err(TableError::sdk(doing)(error)),
                    },
                }
            }
            Write::Put(Put { item, conditions }) => {
                let call = self.client.put_item().table_name(&self.name).set_item(Some(item.clone()));
                let condition = expressions.condition(conditions);
                let (names, values) = expressions.into_maps();
                let call = call.set_condition_expression(condition).set_expression_attribute_names(names);
                let call = call.set_return_values_on_condition_check_failure(on_loss);
                match call.set_expression_attribute_values(values).send().await {
                    Ok(_) => Ok(Some(Written::Done(read.then(|| item.clone())))),
                    Err(error) => match error.as_service_error() {
                        Some(PutItemError::ConditionalCheckFailedException(lost)) => {
                            Ok(Some(Written::Lost(lost.item().cloned().map(Some))))
                        }
                        Some(PutItemError::TransactionConflictException(_)) => Ok(None),
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
                    Ok(_) => Ok(Some(Written::Done(None))),
                    Err(error) => match error.as_service_error() {
                        Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(Some(Written::Lost(None))),
                        Some(DeleteItemError::TransactionConflictException(_)) => Ok(None),
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
        Ok(self.page_looked_at(query, doing).await?.0)
    }

    /// The same, and how many items were looked at for it, wanted or not.
    pub async fn page_looked_at<T: DeserializeOwned>(
        &self,
        query: Query,
        doing: &'static str,
    ) -> Result<(Page<T>, usize), TableError> {
        let skips = query.skips_unreadable;
        let (rows, looked_at) = self.row_page(query, doing).await?;
        let mut entries = Vec::new();
        for row in rows.entries {
            match row.read(doing) {
                Ok(entry) => entries.push(entry),
                Err(error) if skips => tracing::error!(error = %logging::chain(&error), "an item is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok((Page { entries, next: rows.next }, looked_at))
    }

    async fn row_page(&self, query: Query, doing: &'static str) -> Result<(Page<Row>, usize), TableError> {
        let answer = query.call(&self.client, &self.name).send().await.map_err(TableError::sdk(doing))?;
        let looked_at = usize::try_from(answer.scanned_count()).unwrap_or_default();
        let entries = answer.items.unwrap_or_default().into_iter().map(Row).collect();
        Ok((Page { entries, next: answer.last_evaluated_key.map(Place) }, looked_at))
    }

    /// The items that a query finds, page after page, each to be read by its sort key: for partitions that have items of
    /// several types.
    pub async fn rows(&self, query: Query, doing: &'static str) -> Result<Vec<Row>, TableError> {
        let (mut rows, mut next) = (Vec::new(), None);
        loop {
            let (page, _) = self.row_page(query.clone().after(next), doing).await?;
            rows.extend(page.entries);
            if page.next.is_none() {
                return Ok(rows);
            }
            next = page.next;
        }
    }

    /// How many items one call of a query finds, which it does not send.
    pub async fn count(&self, query: Query, doing: &'static str) -> Result<Count, TableError> {
        let call = query.call(&self.client, &self.name).select(Select::Count);
        let answer = call.send().await.map_err(TableError::sdk(doing))?;
        let [found, looked_at] =
            [answer.count(), answer.scanned_count()].map(|number| usize::try_from(number).unwrap_or_default());
        Ok(Count { found, looked_at, next: answer.last_evaluated_key.map(Place) })
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
                ReadAnswer::NotNow(error) => pause(*pauses.next().ok_or(error)?).await,
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

    /// The items of a partition whose sort keys begin so, in their order, read consistently. Callers that ask for the same
    /// while it is being read share the next answer.
    pub async fn shared_partition<T: DeserializeOwned>(
        &self,
        pk: String,
        sk_prefix: &str,
        doing: &'static str,
    ) -> Result<Vec<T>, TableError> {
        let asked = self.partitions.ask((pk, sk_prefix.to_owned())).await;
        let items = asked.map_err(|_| TableError::Missing("the outcome of a query"))??;
        items.iter().map(|item| read_item(item.clone(), doing)).collect()
    }

    /// Writes all of it or nothing.
    ///
    /// Another write to one of the items at this very moment cancels a transaction, so that one is tried again; the
    /// conditions in it must make that harmless.
    async fn transact(&self, writes: Vec<TransactWriteItem>, doing: &'static str) -> Result<Transacted, TableError> {
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
                Some(next) if passing_code(code) => pause(*next).await,
                _ => return Err(TableError::code(doing, code)),
            }
        }
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
