//! Connections in the table: all of an entity's in one partition, with its webhooks; one for each provider.
//!
//! Whoever asks the provider anything with a connection's tokens holds it meanwhile by a lease, so that no two do: a
//! refresh token that is used twice can cost the connection. Every change is made on condition of that lease, and an event
//! is written in the transaction of the change that it tells of.

use std::time::Duration;

use super::{
    Connection, ConnectionStatus, ProviderName,
    item::{ConnectionItem, DUE, DueConnection, DueItem, SHARD, SORT_KEY, StoredConnection, key, partition},
};
use auth::entity::AuthorizedEntity;
use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{
        AttributeValue, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
        builders::{PutBuilder, UpdateBuilder},
    },
};
use base::clock::Time;
use storage::table::{Item, Table, TableError, Transacted, number, read_item, text, write_item};
use webhooks::events::outbox::{Announcement, Outbox};

/// How long a connection is held: the provider's answer and the time to record it.
pub const LEASE: Duration = Duration::from_secs(30);

/// The connections in the table.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Table,
    outbox: Outbox,
}

/// A connection that is the caller's alone until the lease runs out.
#[derive(Debug)]
pub struct HeldConnection {
    /// The connection, as it was when the caller took hold of it.
    pub stored: StoredConnection,
    /// When somebody else can take it.
    pub until: Time,
    lease: String,
}

/// What a connection is taken hold of for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To refresh it, if it is due.
    Refresh,
    /// To disconnect it, due or not.
    Disconnect,
}

/// What came of taking hold of a connection.
#[derive(Debug)]
pub enum Hold {
    /// It is the caller's.
    Held(Box<HeldConnection>),
    /// Somebody else holds it, or it is not due.
    Busy,
    /// There is none.
    Missing,
}

impl Connections {
    /// The connections in this table.
    pub fn new(table: Table) -> Self {
        Self { outbox: Outbox::new(table.clone()), table }
    }

    /// The write of an event, for a transaction.
    fn event(&self, announcement: &Announcement) -> Result<TransactWriteItem, TableError> {
        self.table.in_transaction(&self.outbox.put(announcement)?.into(), "putting an event into the outbox")
    }

    /// All connections of an entity, in the order of the providers' names.
    pub async fn of(&self, entity: &AuthorizedEntity) -> Result<Vec<Connection>, TableError> {
        const DOING: &str = "reading an entity's connections";
        let items = self.table.partition(partition(entity.id()), Some(SORT_KEY), DOING).await?;
        items.into_iter().map(|item| read_item::<ConnectionItem>(item, DOING).map(|item| item.connection)).collect()
    }

    /// An entity's connection to a provider, held or not.
    pub async fn find(
        &self,
        entity: &AuthorizedEntity,
        provider: &ProviderName,
    ) -> Result<Option<Connection>, TableError> {
        let item: Option<ConnectionItem> =
            self.table.get(key(entity.id(), provider), true, "finding a connection").await?;
        Ok(item.map(|item| item.connection))
    }

    /// Keeps a new connection in the place of one that may be there; a refresh that holds that one has lost it.
    ///
    /// Where another account may not be replaced, the condition is lost when one is connected that is not certainly the same.
    pub async fn establish(
        &self,
        entity: &AuthorizedEntity,
        stored: &StoredConnection,
        replace: bool,
        announcement: &Announcement,
    ) -> Result<Transacted, TableError> {
        const DOING: &str = "keeping a connection";
        debug_assert_eq!(entity.id(), &stored.connection.owner_identifier);
        let item = write_item(&ConnectionItem::from(stored), DOING)?;
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item));
        let put = if replace { put } else { unless_another(put, &stored.connection) }.build();
        let put = TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build();
        self.table.transact(vec![put, self.event(announcement)?], DOING).await
    }

    /// A page of what is due, and where the next page begins. An entry that is no connection's is logged and left out.
    pub async fn due_before(
        &self,
        now: Time,
        limit: i32,
        start: Option<Item>,
    ) -> Result<(Vec<DueConnection>, Option<Item>), TableError> {
        let due = self.table.due_before::<DueItem>(SHARD, now, limit, start, "looking for connections that are due");
        let (entries, next) = due.await?;
        let connections = entries.iter().filter_map(|entry| {
            let due = entry.read();
            if due.is_none() {
                tracing::error!(?entry, "skipped, since its key is no connection's");
            }
            due
        });
        Ok((connections.collect(), next))
    }

    /// Takes hold of a connection for a purpose. If the caller dies, the lease runs out.
    pub async fn take(
        &self,
        entity: &AuthorizedEntity,
        provider: &ProviderName,
        purpose: Purpose,
        lease: String,
        now: Time,
    ) -> Result<Hold, TableError> {
        const DOING: &str = "taking hold of a connection";
        let (update, condition) = match purpose {
            // If the caller dies, it is due again when the lease is over.
            Purpose::Refresh => ("SET lease = :lease, leaseUntil = :until, dueAt = :until", "dueAt <= :now"),
            Purpose::Disconnect => ("SET lease = :lease, leaseUntil = :until", "attribute_exists(pk)"),
        };
        let until = now + LEASE;
        let (pk, sk) = key(entity.id(), provider);
        let request = self
            .table
            .client
            .update_item()
            .table_name(&self.table.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .update_expression(update)
            .condition_expression(format!(
                "{condition} AND (attribute_not_exists(leaseUntil) OR leaseUntil <= :now) OR lease = :lease"
            ))
            .expression_attribute_values(":lease", text(&lease))
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":now", text(now))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let item = match request.send().await {
            Ok(answer) => answer.attributes.unwrap_or_default(),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(lost)) => {
                    return Ok(if lost.item.is_some() { Hold::Busy } else { Hold::Missing });
                }
                _ => return Err(TableError::sdk(DOING)(error)),
            },
        };
        let mut stored: StoredConnection = read_item::<ConnectionItem>(item, DOING)?.into();
        // Whose it is, its place says, for which its tokens are sealed; not the row, which may be a copy of another's.
        stored.connection.owner_identifier = entity.id().clone();
        stored.connection.provider = provider.clone();
        Ok(Hold::Held(Box::new(HeldConnection { stored, until, lease })))
    }

    /// Writes the outcome of a refresh and lets go.
    pub async fn refreshed(&self, held: &HeldConnection, after: &StoredConnection) -> Result<Transacted, TableError> {
        let StoredConnection { connection, sealed_tokens, failures, due } = after;
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        set.push(("sealedTokens", text(sealed_tokens)));
        set.push(("lastUpdate", text(connection.last_update)));
        set.push(("failures", number(failures)));
        match connection.expires_date {
            Some(end) => set.push(("expiresDate", text(end))),
            None => remove.push("expiresDate"),
        }
        match due {
            Some(due) => set.push(("dueAt", text(due))),
            None => remove.extend(DUE),
        }
        self.change(held, set, remove, None).await
    }

    /// Has a connection looked at another time, after so many failures in a row, and lets go.
    pub async fn postpone(&self, held: &HeldConnection, failures: u32, due: Time) -> Result<Transacted, TableError> {
        self.change(held, vec![("failures", number(failures)), ("dueAt", text(due))], Vec::new(), None).await
    }

    /// Marks a connection as broken and lets go. It is never due again. The tokens stay, for whoever disconnects it: some
    /// providers want them all the same.
    pub async fn break_off(
        &self,
        held: &HeldConnection,
        now: Time,
        announcement: &Announcement,
    ) -> Result<Transacted, TableError> {
        let set = vec![("status", text(ConnectionStatus::Broken.as_str())), ("lastUpdate", text(now))];
        self.change(held, set, DUE.to_vec(), Some(announcement)).await
    }

    /// Lets go of a connection, and leaves it as it is.
    pub async fn release(&self, held: &HeldConnection) -> Result<Transacted, TableError> {
        self.change(held, Vec::new(), Vec::new(), None).await
    }

    /// Changes a held connection, with the event that tells of it if there is one, and lets go of it. Only what is named is
    /// written: keys are rotated meanwhile, and what was sealed anew must stay so.
    ///
    /// The condition is lost when the connection was made anew, or when the lease had run out and somebody else took hold
    /// of it: theirs counts.
    async fn change(
        &self,
        held: &HeldConnection,
        set: Vec<(&'static str, AttributeValue)>,
        remove: Vec<&'static str>,
        announcement: Option<&Announcement>,
    ) -> Result<Transacted, TableError> {
        const DOING: &str = "changing a connection";
        let update = changed(&self.table.name, held, set, remove).build().map_err(TableError::unbuilt(DOING))?;
        let mut writes = vec![TransactWriteItem::builder().update(update).build()];
        if let Some(announcement) = announcement {
            writes.push(self.event(announcement)?);
        }
        self.table.transact(writes, DOING).await
    }

    /// Removes a held connection, with the event that tells of it. The condition is lost as when it is
    /// changed.
    pub async fn remove(&self, held: &HeldConnection, announcement: &Announcement) -> Result<Transacted, TableError> {
        const DOING: &str = "removing a connection";
        let (pk, sk) = key(&held.stored.connection.owner_identifier, &held.stored.connection.provider);
        let delete = Delete::builder()
            .table_name(&self.table.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .condition_expression(HELD)
            .expression_attribute_values(":lease", text(&held.lease))
            .build();
        let delete = TransactWriteItem::builder().delete(delete.map_err(TableError::unbuilt(DOING))?).build();
        self.table.transact(vec![delete, self.event(announcement)?], DOING).await
    }
}

/// On condition that no other account is connected. A connection whose account is not known gives way only when it is
/// broken; and one that this very request made before, whose answer was lost, is no other.
fn unless_another(put: PutBuilder, connection: &Connection) -> PutBuilder {
    let (same, values) = match &connection.account {
        Some(account) => (
            "account = :account OR #status = :broken AND attribute_not_exists(account)",
            Some((":account", text(account))),
        ),
        None => ("#status = :broken", None),
    };
    let put = put
        .condition_expression(format!("attribute_not_exists(pk) OR id = :id OR {same}"))
        .expression_attribute_names("#status", "status")
        .expression_attribute_values(":id", text(&connection.id))
        .expression_attribute_values(":broken", text(ConnectionStatus::Broken.as_str()));
    values.into_iter().fold(put, |put, (name, value)| put.expression_attribute_values(name, value))
}

/// The change of a held connection.
fn changed(
    table: &str,
    held: &HeldConnection,
    set: Vec<(&'static str, AttributeValue)>,
    remove: Vec<&'static str>,
) -> UpdateBuilder {
    let (pk, sk) = key(&held.stored.connection.owner_identifier, &held.stored.connection.provider);
    let mut update = Update::builder()
        .table_name(table)
        .key("pk", text(pk))
        .key("sk", text(sk))
        .condition_expression(HELD)
        .expression_attribute_values(":lease", text(&held.lease));
    let mut sets = Vec::new();
    // Names of attributes stand for themselves, since some are words of the language of expressions.
    for (name, value) in set {
        sets.push(format!("#{name} = :{name}"));
        update = update
            .expression_attribute_names(format!("#{name}"), name)
            .expression_attribute_values(format!(":{name}"), value);
    }
    let removes = ["lease", "leaseUntil"].into_iter().chain(remove).collect::<Vec<_>>().join(", ");
    let sets = if sets.is_empty() { String::new() } else { format!("SET {} ", sets.join(", ")) };
    update.update_expression(format!("{sets}REMOVE {removes}"))
}

/// The condition of whoever holds a connection.
const HELD: &str = "lease = :lease";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::tests::stored;

    #[test]
    fn a_connection_takes_no_other_accounts_place() {
        let mut connection = stored(None).connection;
        let condition = |connection: &Connection| {
            let put = unless_another(Put::builder().table_name("table").item("pk", text("x")), connection);
            let put = put.build().expect("built");
            let mut values: Vec<_> = put.expression_attribute_values().expect("values").keys().cloned().collect();
            values.sort();
            (put.condition_expression().expect("a condition").to_owned(), values.join(" "))
        };
        let unnamed = "attribute_not_exists(pk) OR id = :id OR #status = :broken";
        assert_eq!(condition(&connection), (unnamed.to_owned(), ":broken :id".to_owned()));
        connection.account = Some("M-1".into());
        let named = "attribute_not_exists(pk) OR id = :id OR account = :account OR #status = :broken AND \
                     attribute_not_exists(account)";
        assert_eq!(condition(&connection), (named.to_owned(), ":account :broken :id".to_owned()));
    }

    #[test]
    fn every_change_is_made_on_condition_of_the_lease_and_ends_it() {
        let held = HeldConnection { stored: stored(None), until: Time::from_millis(0), lease: "mine".into() };
        for (set, remove, expression) in [
            (vec![], vec![], "REMOVE lease, leaseUntil"),
            (vec![("status", text("broken"))], vec!["dueAt"], "SET #status = :status REMOVE lease, leaseUntil, dueAt"),
        ] {
            let change = changed("table", &held, set, remove).build().expect("built");
            assert_eq!(change.update_expression(), expression);
            assert_eq!(change.condition_expression(), Some("lease = :lease"));
            assert_eq!(change.expression_attribute_values().expect("values")[":lease"], text("mine"));
        }
    }
}
