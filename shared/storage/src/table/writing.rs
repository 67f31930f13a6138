//! Calls that write: one item alone, one item in a batch, or several items in a transaction.

use aws_sdk_dynamodb::{
    error::BuildError,
    operation::{
        delete_item::DeleteItemError,
        put_item::PutItemError,
        transact_write_items::TransactWriteItemsError,
        update_item::{UpdateItemError, UpdateItemOutput},
    },
    types::{self as transact, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update},
};
use futures::FutureExt;
use serde::de::DeserializeOwned;

use super::{
    Table, TableFuture,
    error::TableError,
    expression::Expressions,
    key::Item,
    retry::{
        TableResponse::{self, Decided},
        until_decided, until_decided_in_batch,
    },
    statement::Statement,
    value::read_item,
    write::{Change, Delete, Put, Transaction, Write, Written},
};

/// The reason code of a write whose condition did not hold.
const LOST: &str = "ConditionalCheckFailed";

/// A transaction that changed nothing, because conditions in it did not hold.
#[derive(Debug)]
pub struct Cancelled(Vec<bool>);

impl Cancelled {
    /// Whether the condition of the write at this position did not hold.
    pub fn is_by(&self, position: usize) -> bool {
        self.0.get(position).copied().unwrap_or_default()
    }
}

/// Adds the condition, and the names and values of the placeholders, to a call or a part of a transaction.
macro_rules! conditional {
    ($call:expr, $expressions:ident, $conditions:expr) => {{
        let condition = $expressions.condition($conditions);
        let (names, values) = $expressions.into_maps();
        let call = $call.set_condition_expression(condition).set_expression_attribute_names(names);
        call.set_expression_attribute_values(values)
    }};
}

/// A single write's outcome. A conflict with a transaction counts as throttling: nothing was written, and a retry
/// checks the condition again.
macro_rules! written {
    ($sent:expr, $error:ident, $doing:expr, $item:expr) => {
        match $sent {
            Ok(done) => Decided(Ok(Written::Done($item(done)))),
            Err(error) => match error.as_service_error() {
                Some($error::ConditionalCheckFailedException(lost)) => Decided(Ok(Written::Lost(lost.item().cloned()))),
                _ => TableResponse::failed(TableError::sdk($doing)(error)),
            },
        }
    };
}

impl Table {
    /// Writes one item in a separate call.
    pub async fn write(&self, write: impl Into<Write>, doing: &'static str) -> Result<Written<()>, TableError> {
        Ok(unread(self.alone(write.into(), false, doing).await?))
    }

    /// Writes one item in a separate call and returns the changed item, or the existing one if a condition did not
    /// hold.
    pub async fn write_and_read<T: DeserializeOwned>(
        &self,
        change: Change,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.alone(change.into(), true, doing).await?, doing)
    }

    /// Writes a whole item in a separate call and returns it, or the existing item if a condition did not hold.
    pub async fn put_and_read<T: DeserializeOwned>(
        &self,
        put: Put,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.alone(put.into(), true, doing).await?, doing)
    }

    /// Writes one item in a batch with concurrent writes, which saves round trips under load and costs the same. Writes
    /// that PartiQL cannot express are sent alone.
    pub async fn write_together(
        &self,
        write: impl Into<Write>,
        doing: &'static str,
    ) -> Result<Written<()>, TableError> {
        Ok(unread(self.together(write.into(), false, doing).await?))
    }

    /// Writes one item in a batch and returns the changed item, or the existing one if a condition did not hold.
    pub async fn write_together_and_read<T: DeserializeOwned>(
        &self,
        change: Change,
        doing: &'static str,
    ) -> Result<Written<T>, TableError> {
        read_back(self.together(change.into(), true, doing).await?, doing)
    }

    fn together(&self, write: Write, read: bool, doing: &'static str) -> TableFuture<'_, Written<Item>> {
        let Some(statement) = Statement::of(&write, read) else { return self.alone(write, read, doing) };
        async move {
            until_decided_in_batch(self.deadline, || async {
                TableResponse::carried(self.writes.submit(statement.clone()).await)
            })
            .await
        }
        .boxed()
    }

    fn alone(&self, write: Write, read: bool, doing: &'static str) -> TableFuture<'_, Written<Item>> {
        async move { until_decided(self.deadline, || self.write_once(&write, read, doing)).await }.boxed()
    }

    async fn write_once(&self, write: &Write, read: bool, doing: &'static str) -> TableResponse<Written<Item>> {
        let mut expressions = Expressions::default();
        let on_loss = read.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        match write {
            Write::Change(Change { key, assignments, conditions }) => {
                let call = self.client.update_item().table_name(&self.name).set_key(Some(key.attributes()));
                let call = call.set_update_expression(expressions.update(assignments));
                let call = conditional!(call, expressions, conditions);
                let call = call.set_return_values(read.then_some(ReturnValue::AllNew));
                let sent = call.set_return_values_on_condition_check_failure(on_loss).send().await;
                written!(sent, UpdateItemError, doing, |done: UpdateItemOutput| done.attributes.unwrap_or_default())
            }
            Write::Put(Put { item, conditions }) => {
                let call = self.client.put_item().table_name(&self.name).set_item(Some(item.clone()));
                let call = conditional!(call, expressions, conditions);
                let sent = call.set_return_values_on_condition_check_failure(on_loss).send().await;
                written!(sent, PutItemError, doing, |_| if read { item.clone() } else { Item::new() })
            }
            Write::Delete(Delete { key, conditions }) => {
                let call = self.client.delete_item().table_name(&self.name).set_key(Some(key.attributes()));
                let sent = conditional!(call, expressions, conditions).send().await;
                written!(sent, DeleteItemError, doing, |_| Item::new())
            }
        }
    }

    /// Writes all items or none. A concurrent write to one of the items cancels the transaction, which is then
    /// repeated; its conditions must make that harmless.
    pub fn write_all(&self, writes: Transaction, doing: &'static str) -> TableFuture<'_, Written<()>> {
        let written = self.transact(writes, doing);
        async move { Ok(if written.await?.is_ok() { Written::Done(()) } else { Written::Lost(None) }) }.boxed()
    }

    /// Writes all items or none and returns which of the writes were lost.
    pub(crate) fn transact(&self, writes: Transaction, doing: &'static str) -> TableFuture<'_, Result<(), Cancelled>> {
        self.all_or_nothing(writes, doing).boxed()
    }

    async fn all_or_nothing(
        &self,
        writes: Transaction,
        doing: &'static str,
    ) -> Result<Result<(), Cancelled>, TableError> {
        let parts = writes.0.iter().map(|write| self.in_transaction(write)).collect::<Result<Vec<_>, _>>();
        let parts = parts.map_err(TableError::unbuilt(doing))?;
        until_decided(self.deadline, || async {
            let call = self.client.transact_write_items().set_transact_items(Some(parts.clone()));
            let Err(error) = call.send().await else { return Decided(Ok(Ok(()))) };
            let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
            else {
                return TableResponse::failed(TableError::sdk(doing)(error));
            };
            let codes = || cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap_or("None"));
            match codes().find(|code| !["None", LOST].contains(code)) {
                Some(code) => TableResponse::refused(doing, code),
                None => Decided(Ok(Err(Cancelled(codes().map(|code| code == LOST).collect())))),
            }
        })
        .await
    }

    fn in_transaction(&self, write: &Write) -> Result<TransactWriteItem, BuildError> {
        let mut expressions = Expressions::default();
        let whole = TransactWriteItem::builder();
        let whole = match write {
            Write::Change(Change { key, assignments, conditions }) => {
                let part = Update::builder().table_name(&self.name).set_key(Some(key.attributes()));
                let part = part.set_update_expression(expressions.update(assignments));
                whole.update(conditional!(part, expressions, conditions).build()?)
            }
            Write::Put(Put { item, conditions }) => {
                let part = transact::Put::builder().table_name(&self.name).set_item(Some(item.clone()));
                whole.put(conditional!(part, expressions, conditions).build()?)
            }
            Write::Delete(Delete { key, conditions }) => {
                let part = transact::Delete::builder().table_name(&self.name).set_key(Some(key.attributes()));
                whole.delete(conditional!(part, expressions, conditions).build()?)
            }
        };
        Ok(whole.build())
    }
}

/// Drops an outcome's item.
fn unread(written: Written<Item>) -> Written<()> {
    match written {
        Written::Done(_) => Written::Done(()),
        Written::Lost(_) => Written::Lost(None),
    }
}

fn read_back<T: DeserializeOwned>(written: Written<Item>, doing: &'static str) -> Result<Written<T>, TableError> {
    Ok(match written {
        Written::Done(item) => Written::Done(read_item(item, doing)?),
        Written::Lost(item) => Written::Lost(item.map(|item| read_item(item, doing)).transpose()?),
    })
}
