//! Connections in the table, one per provider. An entity's connections share a partition with its webhooks.
//!
//! A refresh and a disconnection each hold a lease while they ask the provider, so that they never overlap: using a
//! refresh token twice can cost the connection. Every change requires the lease, and an event is written in the
//! transaction of the change that it announces.

use std::time::Duration;

use crate::{
    connection::{BreakReason, Connection, ConnectionStatus},
    item::{ConnectionItem, DUE, DueConnection, DueItem, SHARD, SORT_KEY, StoredConnection, key, partition},
    last_error::LastError,
    provider::ProviderName,
};
use auth::AuthorizedEntity;
use base::{ConnectionId, Time};
use storage::table::{
    Change, Condition, Delete, Page, PageEnd, Put, Query, Table, TableError, Transaction, Written, absent, at_most,
    exists, is, is_new,
};
use storage::{IdempotencyError, Record};
use webhooks::outbox::{Outbox, OutboxEvent};

/// How long a connection is held: long enough for the provider's response and for recording it.
pub const LEASE: Duration = Duration::from_secs(30);

/// The connections in the table.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Table,
    outbox: Outbox,
}

/// A connection that only the caller may change until the lease runs out.
#[derive(Debug)]
pub struct HeldConnection {
    pub stored: StoredConnection,
    /// When another caller can claim the connection.
    pub until: Time,
    lease: String,
}

/// A claim's purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To refresh the connection, if it is due.
    Refresh,
    /// To disconnect it, due or not.
    Disconnect,
}

/// A claim's result.
#[derive(Debug)]
pub enum Claim {
    Held(Box<HeldConnection>),
    /// Another caller holds it, or it is not due.
    Busy,
    Missing,
}

impl Connections {
    /// Creates the store in this table.
    pub fn new(table: Table) -> Self {
        Self { outbox: Outbox::new(table.clone()), table }
    }

    /// All of an entity's connections, ordered by provider name.
    pub async fn of(&self, entity: &AuthorizedEntity) -> Result<Vec<Connection>, TableError> {
        let query = Query::partition(partition(entity.id())).beginning_with("sk", SORT_KEY);
        let items: Vec<ConnectionItem> = self.table.all(query, "reading an entity's connections").await?;
        Ok(items.into_iter().map(|item| StoredConnection::from(item).connection).collect())
    }

    /// An entity's connection to a provider, held or not.
    pub async fn find(
        &self,
        entity: &AuthorizedEntity,
        provider: &ProviderName,
    ) -> Result<Option<Connection>, TableError> {
        let item: Option<ConnectionItem> =
            self.table.get(key(entity.id(), provider), true, "finding a connection").await?;
        Ok(item.map(|item| StoredConnection::from(item).connection))
    }

    /// Stores a new connection in place of `before`. A refresh that holds `before` loses its lease. Returns `Lost` if
    /// the current connection is not `before`.
    ///
    /// Unless `replace` is set, the write is also lost if `before` may be a connection to another account.
    pub async fn establish(
        &self,
        stored: &StoredConnection,
        before: Option<&ConnectionId>,
        replace: bool,
        outbox_event: &OutboxEvent,
    ) -> Result<Written<()>, TableError> {
        const DOING: &str = "storing a connection";
        let put = Put::item(&ConnectionItem::from(stored), DOING)?;
        let put = put.only_if(in_place_of(before, &stored.connection, replace));
        self.table.write_all(Transaction::new().with(put).with(self.outbox.put(outbox_event)?), DOING).await
    }

    /// A page of the due connections. An entry whose key is not a connection's is logged and skipped.
    pub async fn due_before(
        &self,
        now: Time,
        limit: i32,
        start: Option<PageEnd>,
    ) -> Result<Page<DueConnection>, TableError> {
        let query = Query::index("byDue", "dueShard", SHARD).between("dueAt", "0", now).limit(limit).after(start);
        let Page { entries, next } =
            self.table.page::<DueItem>(query.skipping_unreadable(), "looking for connections that are due").await?;
        let connections = entries.iter().filter_map(|entry| {
            let due = entry.read();
            if due.is_none() {
                tracing::error!(
                    pk = entry.pk,
                    sk = entry.sk,
                    "skipped an entry in the index byDue because its key does not belong to a connection"
                );
            }
            due
        });
        Ok(Page { entries: connections.collect(), next })
    }

    /// Claims a connection under a lease with this name. If the caller crashes, the lease runs out.
    pub async fn claim(
        &self,
        entity: &AuthorizedEntity,
        provider: &ProviderName,
        purpose: Purpose,
        lease: String,
        now: Time,
    ) -> Result<Claim, TableError> {
        let until = now + LEASE;
        let change = Change::of(key(entity.id(), provider)).set("lease", lease.as_str()).set("leaseUntil", until);
        let (change, wanted) = match purpose {
            // After a crash, the connection is due again when the lease is over.
            Purpose::Refresh => (change.set("dueAt", until), at_most("dueAt", now)),
            Purpose::Disconnect => (change, exists()),
        };
        let free = absent("leaseUntil").or(at_most("leaseUntil", now));
        // Our own lease is accepted: the SDK may repeat a claim whose response was lost.
        let change = change.only_if(wanted.and(free).or(is("lease", lease.as_str())));
        let item: ConnectionItem = match self.table.write_and_read(change, "claiming a connection").await? {
            Written::Done(item) => item,
            Written::Lost(Some(_)) => return Ok(Claim::Busy),
            Written::Lost(None) => return Ok(Claim::Missing),
        };
        let mut stored = StoredConnection::from(item);
        // Owner and provider come from the key, for which the tokens are sealed: a copied item must not change them.
        stored.connection.owner_identifier = entity.id().clone();
        stored.connection.provider = provider.clone();
        Ok(Claim::Held(Box::new(HeldConnection { stored, until, lease })))
    }

    /// Writes a refresh's new tokens and releases the lease.
    pub async fn refreshed(&self, held: &HeldConnection, after: &StoredConnection) -> Result<Written<()>, TableError> {
        let StoredConnection { connection, sealed_tokens, failures, due } = after;
        let change = held
            .change()
            .set("sealedTokens", sealed_tokens.as_str())
            .set("lastUpdate", connection.last_update)
            .set("failures", *failures)
            .remove("lastError")
            .set_or_remove("expiresDate", connection.expires_date);
        let change = match due {
            Some(due) => change.set("dueAt", *due),
            None => never_due(change),
        };
        self.write(change, None).await
    }

    /// Records a failed refresh, sets the next due time, and releases the lease. `failures` counts this failure too.
    pub async fn postpone(
        &self,
        held: &HeldConnection,
        (failures, error): (u32, &LastError),
        due: Time,
    ) -> Result<Written<()>, TableError> {
        let change = held.change().set("failures", failures).set("lastError", error.to_string()).set("dueAt", due);
        self.write(change, None).await
    }

    /// Marks a connection as broken and never due, and releases the lease. The tokens are kept for a later
    /// disconnection, since some providers require even dead ones.
    pub async fn break_off(
        &self,
        held: &HeldConnection,
        (reason, error): (BreakReason, Option<&LastError>),
        now: Time,
        outbox_event: &OutboxEvent,
    ) -> Result<Written<()>, TableError> {
        let change = held
            .change()
            .set("status", ConnectionStatus::Broken.as_str())
            .set("brokenReason", reason.as_str())
            .set_or_remove("lastError", error.map(ToString::to_string))
            .set("lastUpdate", now);
        self.write(never_due(change), Some(outbox_event)).await
    }

    /// Releases the lease, and leaves the connection unchanged.
    pub async fn release(&self, held: &HeldConnection) -> Result<Written<()>, TableError> {
        self.write(held.change(), None).await
    }

    /// Writes a change to a held connection, with the event that announces it, if any.
    ///
    /// The change is lost if the entity has connected again, or if the lease ran out and another caller has claimed the
    /// connection.
    async fn write(&self, change: Change, outbox_event: Option<&OutboxEvent>) -> Result<Written<()>, TableError> {
        let event = outbox_event.map(|outbox_event| self.outbox.put(outbox_event)).transpose()?;
        self.table.write_all(Transaction::new().with(change).with_all(event), "changing a connection").await
    }

    /// Removes a held connection and writes the event that announces it, with the request's record, if it has an
    /// idempotency key. The removal is lost in the same cases as a change.
    pub async fn remove(
        &self,
        held: &HeldConnection,
        outbox_event: &OutboxEvent,
        record: Option<Record>,
    ) -> Result<Written<()>, IdempotencyError> {
        let removal = Delete::of(held.key()).only_if(held.condition());
        let writes = Transaction::new().with(removal).with(self.outbox.put(outbox_event)?);
        self.table.write_recorded(writes, record, "removing a connection").await
    }
}

impl HeldConnection {
    fn key(&self) -> (String, String) {
        key(&self.stored.connection.owner_identifier, &self.stored.connection.provider)
    }

    fn condition(&self) -> Condition {
        is("lease", self.lease.as_str())
    }

    /// A change to the connection that releases its lease. It must set only the attributes that change: a key rotation
    /// may reseal the tokens in the meantime, and must not be undone.
    fn change(&self) -> Change {
        Change::of(self.key()).remove("lease").remove("leaseUntil").only_if(self.condition())
    }
}

fn never_due(change: Change) -> Change {
    DUE.into_iter().fold(change, |change, attribute| change.remove(attribute))
}

/// The condition that the current connection is `before` and may be replaced. Without `replace`, only the same account
/// may replace it. If either account is unknown, any account may, once the connection is broken.
fn in_place_of(before: Option<&ConnectionId>, connection: &Connection, replace: bool) -> Condition {
    let Some(before) = before else { return is_new() };
    let before = is("id", before.to_string());
    if replace {
        return before;
    }
    let broken = is("status", ConnectionStatus::Broken.as_str());
    before.and(match &connection.account {
        Some(account) => is("account", account.as_str()).or(broken.and(absent("account"))),
        None => broken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::tests::stored;

    #[test]
    fn a_connection_replaces_another_account_only_if_allowed() {
        let mut connection = stored(None).connection;
        let former = connection.id.clone();
        let before = || is("id", former.to_string());
        let broken = || is("status", "broken");
        assert_eq!(in_place_of(None, &connection, false), is_new());
        assert_eq!(in_place_of(None, &connection, true), is_new(), "a concurrent connection is read first");
        assert_eq!(in_place_of(Some(&former), &connection, true), before());
        assert_eq!(in_place_of(Some(&former), &connection, false), before().and(broken()));
        let expected = before().and(is("account", "M-1").or(broken().and(absent("account"))));
        connection.account = Some("M-1".into());
        assert_eq!(in_place_of(Some(&former), &connection, false), expected);
    }

    #[test]
    fn every_change_is_made_on_condition_of_the_lease_and_ends_it() {
        let held = HeldConnection { stored: stored(None), until: Time::from_millis(0), lease: "mine".into() };
        let key = ("ENT#demo-hotel".to_owned(), "PAY#square".to_owned());
        let expected = Change::of(key).remove("lease").remove("leaseUntil").only_if(is("lease", "mine"));
        assert_eq!(held.change(), expected);
    }
}
