//! A connection's item in the table.

use serde::{Deserialize, Serialize};

use crate::{connection::Connection, provider::ProviderName};
use auth::EntityId;
use base::Time;

/// The partition of connections in the `byDue` index.
pub const SHARD: &str = "REFRESH";
/// The prefix of their sort keys.
pub const SORT_KEY: &str = "PAY#";
/// The attributes of the `byDue` index: a connection that has neither is never due.
pub const DUE: [&str; 2] = ["dueShard", "dueAt"];

/// A connection with its tokens and due time.
#[derive(Debug, Clone)]
pub struct StoredConnection {
    pub connection: Connection,
    pub sealed_tokens: String,
    /// The number of failed refreshes since the last success.
    pub failures: u32,
    /// When the next refresh is due; `None` for never.
    pub due: Option<Time>,
}

/// A connection that is due.
#[derive(Debug, PartialEq, Eq)]
pub struct DueConnection {
    pub entity: EntityId,
    pub provider: ProviderName,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    connection: Connection,
    sealed_tokens: String,
    failures: u32,
    /// Both attributes of the `byDue` index, or neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
}

/// The key of an entry of the `byDue` index.
#[derive(Debug, Deserialize)]
pub struct DueItem {
    pub pk: String,
    pub sk: String,
}

impl From<&StoredConnection> for ConnectionItem {
    fn from(stored: &StoredConnection) -> Self {
        let (pk, sk) = key(&stored.connection.owner_identifier, &stored.connection.provider);
        Self {
            pk,
            sk,
            connection: stored.connection.clone(),
            sealed_tokens: stored.sealed_tokens.clone(),
            failures: stored.failures,
            due_shard: stored.due.map(|_| SHARD.to_owned()),
            due_at: stored.due,
        }
    }
}

impl From<ConnectionItem> for StoredConnection {
    fn from(item: ConnectionItem) -> Self {
        let ConnectionItem { connection, sealed_tokens, failures, due_at, .. } = item;
        Self { connection, sealed_tokens, failures, due: due_at }
    }
}

impl DueItem {
    /// This entry's connection; `None` if its key is not a connection's.
    pub fn read(&self) -> Option<DueConnection> {
        let entity = EntityId::parse(self.pk.strip_prefix("ENT#")?).ok()?;
        Some(DueConnection { entity, provider: ProviderName::parse(self.sk.strip_prefix(SORT_KEY)?).ok()? })
    }
}

/// The partition of all of an entity's connections.
pub fn partition(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

/// A connection's key.
pub fn key(entity: &EntityId, provider: &ProviderName) -> (String, String) {
    (partition(entity), format!("{SORT_KEY}{provider}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::connection::tests::connection;
    use serde_json::{from_value, to_value};

    /// A connection after three failures.
    pub fn stored(due: Option<Time>) -> StoredConnection {
        StoredConnection { connection: connection(), sealed_tokens: "a.sealed".into(), failures: 3, due }
    }

    #[test]
    fn an_item_is_read_back_as_it_was_written() {
        let now = Time::from_millis(1_795_167_900_123);
        for due in [None, Some(now)] {
            let mut written = stored(due);
            written.connection.account = due.map(|_| "M-1".to_owned());
            written.connection.expires_date = due;
            let item = to_value(ConnectionItem::from(&written)).expect("an item");
            assert_eq!(item.get("dueShard").is_some(), due.is_some());
            assert_eq!((&item["pk"], &item["sk"]), (&"ENT#demo-hotel".into(), &"PAY#square".into()));
            let read: StoredConnection = from_value::<ConnectionItem>(item).expect("read").into();
            assert_eq!(read.connection, written.connection);
            assert_eq!((read.sealed_tokens, read.failures, read.due), (written.sealed_tokens, 3, due));
        }
    }

    #[test]
    fn a_new_connection_has_no_lease() {
        let item = to_value(ConnectionItem::from(&stored(None))).expect("an item");
        assert!(item.get("lease").is_none() && item.get("leaseUntil").is_none());
    }

    #[test]
    fn an_entry_of_the_index_names_its_connection_or_is_skipped() {
        let entry = |pk: &str, sk: &str| DueItem { pk: pk.into(), sk: sk.into() }.read();
        let due = entry("ENT#demo-hotel", "PAY#square").expect("a connection");
        assert_eq!((due.entity.as_str(), due.provider.as_str()), ("demo-hotel", "square"));
        assert_eq!(entry("DLV#x", "HEAD"), None);
        assert_eq!(entry("ENT#demo-hotel", "PAY#"), None);
        assert_eq!(entry("ENT#", "PAY#square"), None);
    }
}
