//! Jobs in the table.

use super::{
    cancel_progress::Cancellation,
    job::{JobItem, RECOVER, Work, partition},
    recover_ranges::Ranges,
};
use crate::deliveries::error::DeliveryError;
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use storage::table::{Delete, Put, Table, TableError, Transaction, Written, is, is_new};
use storage::{OnceError, Record};

/// How often a write is tried again when others meet it.
pub(super) const TRIES: usize = 20;

pub(super) const TAKING: &str = "taking up a job";
pub(super) const WRITING: &str = "writing a job";
const REMOVING: &str = "removing a job";

/// The jobs in the table.
#[derive(Debug, Clone)]
pub struct Jobs(pub(super) Table);

impl Jobs {
    /// The jobs in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The write of the job that ends the deliveries which wait for a webhook, for the transaction that removes the
    /// webhook. Its entity has a place already.
    pub(crate) fn cancellation(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<Put, TableError> {
        let work = Work::Cancel(Cancellation::new(now));
        Put::item(&JobItem { version: 1, ..JobItem::new(entity.id(), webhook, work, now) }, WRITING)
    }

    /// The ranges of a webhook's deliveries that are being recovered.
    pub(in crate::deliveries) async fn ranges(&self, webhook: &WebhookId) -> Result<Ranges, TableError> {
        match self.get(&partition(webhook), RECOVER).await?.map(|item| item.work) {
            Some(Work::Recover(ranges)) => Ok(ranges),
            _ => Ok(Ranges::default()),
        }
    }

    /// Has a range of a webhook's failed and cancelled deliveries recovered; a range that is being recovered already is
    /// not begun again. The record of the request for it, if that has an idempotency key, is written with the job.
    pub(in crate::deliveries) async fn recover(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        (since, until): (Time, Time),
        record: Option<Record>,
        now: Time,
    ) -> Result<(), DeliveryError> {
        self.ask_for_turn(entity.id(), now).await?;
        for _ in 0..TRIES {
            let found = self.get(&partition(webhook), RECOVER).await?;
            let mut item =
                found.unwrap_or_else(|| JobItem::new(entity.id(), webhook, Work::Recover(Ranges::default()), now));
            let Work::Recover(ranges) = &mut item.work else {
                return Err(TableError::Missing("the ranges of a recovery").into());
            };
            if !ranges.ask(since, until)? {
                return Ok(self.nothing_to_recover(record).await?);
            }
            let write = Transaction::new().with(next_version(&mut item)?);
            if self.0.write_recorded(write, record.clone(), WRITING).await?.is_done() {
                return Ok(());
            }
        }
        Err(TableError::code(WRITING, "TransactionConflict").into())
    }

    /// Writes the record of a request to recover for which there is nothing to do.
    pub(in crate::deliveries) async fn nothing_to_recover(&self, record: Option<Record>) -> Result<(), OnceError> {
        self.0.write_recorded(Transaction::new(), record, WRITING).await.map(drop)
    }

    pub(super) async fn get(&self, pk: &str, sk: &str) -> Result<Option<JobItem>, TableError> {
        self.0.get((pk.to_owned(), sk.to_owned()), true, TAKING).await
    }

    /// Writes an item; lost when the table has another version than was read. Version 0 is an item that is not there
    /// yet.
    pub(super) async fn write(&self, item: &mut JobItem) -> Result<Written<()>, TableError> {
        self.0.write(next_version(item)?, WRITING).await
    }

    /// Removes an item; lost when the table has another version than was read.
    pub(super) async fn remove(&self, item: &JobItem) -> Result<Written<()>, TableError> {
        let delete = Delete::of((item.pk.clone(), item.sk.clone())).only_if(is("version", item.version));
        self.0.write(delete, REMOVING).await
    }
}

/// The write of an item on condition of the version that was read.
fn next_version(item: &mut JobItem) -> Result<Put, TableError> {
    let read = item.version;
    item.version += 1;
    Ok(Put::item(item, WRITING)?.only_if(if read == 0 { is_new() } else { is("version", read) }))
}
