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
use crate::{
    auth::entity::AuthorizedEntity,
    clock::Time,
    events::outbox::{Announcement, Outbox},
    logging,
    table::{Item, Table, TableError, Transacted, number, read_item, text, write_item},
};
use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{
        AttributeValue, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
        builders::UpdateBuilder,
    },
};

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

    /// All connections of an entity, in the order of the providers' names.
    pub async fn of(&self, entity: &AuthorizedEntity) -> Result<Vec<Connection>, TableError> {
        const DOING: &str = "reading an entity's connections";
        let items = self.table.partition(partition(entity.id()), Some(SORT_KEY), DOING).await?;
        items.into_iter().map(|item| read_item::<ConnectionItem>(item, DOING).map(|item| item.connection)).collect()
    }

    /// Whether an entity has a connection to a provider, whoever holds it.
    pub async fn include(&self, entity: &AuthorizedEntity, provider: &ProviderName) -> Result<bool, TableError> {
        let item: Option<ConnectionItem> =
            self.table.get(key(entity.id(), provider), true, "finding a connection").await?;
        Ok(item.is_some())
    }

    /// Keeps a new connection, in the place of one that may be there. Whoever holds that one has lost it.
    pub async fn establish(
        &self,
        entity: &AuthorizedEntity,
        stored: &StoredConnection,
        announcement: &Announcement,
    ) -> Result<(), TableError> {
        const DOING: &str = "keeping a connection";
        debug_assert_eq!(entity.id(), &stored.connection.owner_identifier);
        let item = write_item(&ConnectionItem::from(stored), DOING)?;
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item)).build();
        let put = TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build();
        match self.table.transact(vec![put, self.outbox.put(announcement)?], DOING).await? {
            Transacted::Yes => Ok(()),
            Transacted::ConditionLost => Err(TableError::Missing("a transaction without a condition lost one")),
        }
    }

    /// A page of what is due, the longest due first, and where the next page begins. The index may lag behind a little. An
    /// entry that cannot be read is logged and left out, so that it holds up no other.
    pub async fn due_before(
        &self,
        now: Time,
        limit: i32,
        start: Option<Item>,
    ) -> Result<(Vec<DueConnection>, Option<Item>), TableError> {
        const DOING: &str = "looking for connections that are due";
        let query = self
            .table
            .client
            .query()
            .table_name(&self.table.name)
            .index_name("byDue")
            .key_condition_expression("dueShard = :shard AND dueAt <= :now")
            .expression_attribute_values(":shard", text(SHARD))
            .expression_attribute_values(":now", text(now))
            .set_exclusive_start_key(start)
            .limit(limit);
        let answer = query.send().await.map_err(TableError::sdk(DOING))?;
        let entries = answer.items.unwrap_or_default().into_iter().filter_map(|item| {
            let entry = read_item::<DueItem>(item, DOING)
                .inspect_err(|error| tracing::error!(error = %logging::chain(error), "skipped"))
                .ok()?;
            let due = entry.read();
            if due.is_none() {
                tracing::error!(?entry, "skipped, since its key is no connection's");
            }
            due
        });
        Ok((entries.collect(), answer.last_evaluated_key))
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
            writes.push(self.outbox.put(announcement)?);
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
        self.table.transact(vec![delete, self.outbox.put(announcement)?], DOING).await
    }
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
    use crate::payments::item::tests::stored;

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
