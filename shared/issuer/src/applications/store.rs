//! Applications in the table. Each has a separate partition, so that one read finds it for authentication. Pointers in
//! the owner's partition list an owner's applications.

use std::{collections::BTreeMap, sync::LazyLock};

use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::{
    application::{Application, RemainingCredentials},
    client_secret::ClientSecret,
    new_application::NewApplication,
};
use auth::{AuthorizedEntity, Entities, EntityId, Scopes, revocations};
use base::Time;
use storage::table::{
    Change, Condition, Delete, Key, Put, Query, Scan, Table, TableError, Transaction, Value, Written, absent, exists,
    is, less,
};
use storage::{IdempotencyError, Record, SecretBytes};

/// The sort key of every application.
const SORT_KEY: &str = "APP";
/// The longest client identifier that is looked up, in bytes: longer than any existing one, and short enough for a key.
const MAX_CLIENT_ID: usize = 256;

/// The applications in the table.
#[derive(Debug, Clone)]
pub struct Applications {
    table: Table,
}

#[derive(Debug, Serialize, Deserialize)]
struct ApplicationItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    application: Application,
}

/// An owner's pointer to one of its applications.
#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    pk: String,
    sk: String,
}

impl From<Application> for ApplicationItem {
    fn from(application: Application) -> Self {
        let Key { partition: pk, sort: sk } = key(&application.client_id);
        Self { pk, sk, application }
    }
}

impl Applications {
    /// Creates the store in this table.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// The application with this client identifier. The read is strongly consistent.
    pub async fn find(&self, client_id: &str) -> Result<Option<Application>, TableError> {
        if client_id.len() > MAX_CLIENT_ID {
            return Ok(None);
        }
        let Key { partition, sort } = key(client_id);
        let item: Option<ApplicationItem> = self.table.read((partition, sort), "reading an application").await?;
        Ok(item.map(|item| item.application))
    }

    /// Does the work that would be skipped for an unknown client identifier (reading an item, hashing, comparing), so
    /// that response times do not reveal whether an application exists.
    pub fn compare_with_decoy(secret: &str, pepper: &SecretBytes) {
        const DOING: &str = "a decoy";
        static DECOY: LazyLock<Option<Put>> = LazyLock::new(|| Put::item(&ApplicationItem::from(decoy()), DOING).ok());
        let item = DECOY.as_ref().and_then(|put| put.read_back::<ApplicationItem>(DOING).ok());
        let found = item.as_ref().and_then(|item| item.application.secret(secret, pepper, Time::from_millis(0)));
        std::hint::black_box(found);
    }

    /// The number of applications that an entity owns.
    pub(super) async fn count_of(&self, owner: &AuthorizedEntity) -> Result<usize, TableError> {
        Ok(self.pointers(owner.id()).await?.len())
    }

    /// All applications that an entity owns, newest first. The read is strongly consistent.
    pub async fn of(&self, owner: &EntityId) -> Result<Vec<Application>, TableError> {
        let pointers = self.pointers(owner).await?;
        let found = try_join_all(pointers.iter().map(|pointer| self.find(&pointer.sk))).await?;
        let mut found: Vec<_> = found.into_iter().flatten().collect(); // one may have been removed since
        found.sort_by(|one, other| (other.created_date, &other.client_id).cmp(&(one.created_date, &one.client_id)));
        Ok(found)
    }

    /// A scan for all applications, with or without an owner, for the operator. No index lists them.
    pub fn of_all_owners() -> Scan {
        Scan::default().only(is("sk", SORT_KEY))
    }

    async fn pointers(&self, owner: &EntityId) -> Result<Vec<Pointer>, TableError> {
        self.table.all(Query::partition(pointers(owner)), "listing an entity's applications").await
    }

    /// Writes an application, overwriting any existing one, together with the request's idempotency record, if any.
    pub(crate) async fn put(&self, application: Application, record: Option<Record>) -> Result<(), IdempotencyError> {
        const DOING: &str = "writing an application";
        let pointer = pointer(&application).map(|Key { partition: pk, sort: sk }| Pointer { pk, sk });
        let pointer = pointer.map(|pointer| Put::item(&pointer, DOING)).transpose()?;
        let application = Put::item(&ApplicationItem::from(application), DOING)?;
        self.table.write_recorded(Transaction::new().with(application).with_all(pointer), record, DOING).await.map(drop)
    }

    /// Sets the application's credentials, if it has not changed since it was read, and revokes the tokens of the
    /// removed credentials.
    pub(super) async fn leave(
        &self,
        read: &Application,
        left: &RemainingCredentials,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<()>, IdempotencyError> {
        const DOING: &str = "changing an application's credentials";
        let change = credential_change(read, left, now, DOING)?;
        let revoke = |gone: &String| {
            let remains = left.keys.iter().any(|key| key.thumbprint() == *gone);
            let revoke = if remains { revocations::of_remaining_key } else { revocations::of_credential };
            revoke(&read.client_id, gone, now)
        };
        let revoked = left.gone.iter().map(revoke).collect::<Result<Vec<_>, _>>()?;
        self.table.write_recorded(Transaction::new().with_all(revoked).with(change), record, DOING).await
    }

    /// Sets the application's name, scopes and metadata to the changed ones, if it has not changed since it was read.
    /// Also writes the request's idempotency record, if any. A change that takes scopes away revokes the issued tokens.
    pub(super) async fn replace(
        &self,
        read: &Application,
        changed: &Application,
        record: Option<Record>,
    ) -> Result<Written<()>, IdempotencyError> {
        const DOING: &str = "changing an application";
        let now = changed.last_update;
        let name = changed.name.as_str();
        let scopes = Value::of(&changed.scopes, DOING)?;
        let metadata = Value::of(&changed.metadata, DOING)?;
        let written = is("name", name).and(is("scopes", scopes.clone())).and(is("metadata", metadata.clone()));
        let change = revision(read, written, now).set("name", name).set("scopes", scopes).set("metadata", metadata);
        let writes = if changed.lacks_scopes_of(read) {
            Transaction::new().with(revocations::of_issued_tokens(&read.client_id, now)?)
        } else {
            Transaction::new()
        };
        self.table.write_recorded(writes.with(change), record, DOING).await
    }

    /// Writes the record of a request that changes nothing.
    pub(super) async fn change_nothing(&self, record: Option<Record>) -> Result<(), IdempotencyError> {
        self.table.write_recorded(Transaction::new(), record, "changing an application").await.map(drop)
    }

    /// Grants or withdraws the application's right to publish, if it has not changed since it was read. Withdrawal
    /// revokes the tokens that have the right.
    pub(super) async fn set_publishing(
        &self,
        read: &Application,
        may_publish: bool,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        const DOING: &str = "changing an application's right to publish";
        let change = revision(read, is("mayPublish", may_publish), now).set("mayPublish", may_publish);
        let revoked = match may_publish {
            true => None,
            false => Some(revocations::of_issued_tokens(&read.client_id, now)?),
        };
        self.table.write_all(Transaction::new().with_all(revoked).with(change), DOING).await
    }

    /// Removes the application and revokes its tokens, even if it has changed since it was read: a thief must not be
    /// able to keep it alive by changing it repeatedly. Lost if it has already been removed.
    pub(super) async fn delete(
        &self,
        read: &Application,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<()>, IdempotencyError> {
        let writes = Transaction::new()
            .with(revocations::of_application(&read.client_id, now)?)
            .with(Delete::of(key(&read.client_id)).only_if(exists()))
            .with_all(pointer(read).map(Delete::of));
        self.table.write_recorded(writes, record, "removing an application").await
    }

    /// Once a day, notes the day (UTC, `2026-11-20`) on which a credential was last used. The version does not change,
    /// and a removed application does not reappear.
    pub async fn note_use(&self, client_id: &str, credential: &str, day: &str) -> Result<(), TableError> {
        let last_used = ("lastUsed", credential);
        let change = Change::of(key(client_id))
            .set(last_used, day)
            .only_if(exists())
            .only_if(absent(last_used).or(less(last_used, day)));
        self.table.write(change, "recording the use of a credential").await.map(drop)
    }
}

/// A change to an application, provided that it has not changed since it was read. The condition also holds if this
/// same change has already been written, which `written` detects: the SDK repeats a write whose response is lost, and
/// the first write must not be mistaken for a concurrent change.
fn revision(read: &Application, written: Condition, now: Time) -> Change {
    let next = read.version + 1;
    let repeated = is("version", next).and(is("lastUpdate", now)).and(written);
    Change::of(key(&read.client_id))
        .set("version", next)
        .set("lastUpdate", now)
        .only_if(is("version", read.version).or(repeated))
}

fn credential_change(
    read: &Application,
    left: &RemainingCredentials,
    now: Time,
    doing: &'static str,
) -> Result<Change, TableError> {
    let secrets = Value::of(&left.secrets, doing)?;
    let keys = Value::of(&left.keys, doing)?;
    let written = is("secrets", secrets.clone()).and(is("keys", keys.clone()));
    let change = revision(read, written, now).set("secrets", secrets).set("keys", keys);
    let days = days_of_removed(&read.last_used, left);
    Ok(days.fold(change, |change, credential| change.remove(("lastUsed", credential))))
}

/// The removed credentials whose last use is still recorded.
fn days_of_removed<'a>(
    last_used: &'a BTreeMap<String, String>,
    left: &'a RemainingCredentials,
) -> impl Iterator<Item = &'a str> {
    let kept = |credential: &str| {
        left.secrets.iter().any(|secret| secret.id.as_str() == credential)
            || left.keys.iter().any(|key| key.kid == credential)
    };
    last_used.keys().map(String::as_str).filter(move |credential| !kept(credential))
}

/// An application that does not exist, with a secret whose hash nothing matches.
fn decoy() -> Application {
    let new = NewApplication::of_operator("Decoy".to_owned(), Scopes::ALL, Entities::new([]));
    new.with("appDecoy".to_owned(), Some(ClientSecret::matching_no_text()), Time::from_millis(0))
}

fn key(client_id: &str) -> Key {
    Key::new(format!("APP#{client_id}"), SORT_KEY)
}

fn pointers(owner: &EntityId) -> String {
    format!("APPS#{owner}")
}

/// The key of the owner's pointer to this application.
fn pointer(application: &Application) -> Option<Key> {
    let owner = application.owner.as_ref()?;
    Some(Key::new(pointers(owner), application.client_id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(application: Application) -> Put {
        Put::item(&ApplicationItem::from(application), "").expect("an item")
    }

    #[test]
    fn an_application_is_read_as_written() {
        let application = Application { last_used: [("sec_1".into(), "2026-11-20".into())].into(), ..decoy() };
        let read = written(application.clone()).read_back::<ApplicationItem>("").expect("an item").application;
        assert_eq!(
            (read.client_id, read.scopes, read.secrets),
            (application.client_id, application.scopes, application.secrets)
        );
        assert_eq!((read.last_used, read.version), (application.last_used, 1));
    }

    #[test]
    fn the_map_of_uses_exists_before_the_first_use() {
        let item = written(decoy()).read_back::<serde_json::Value>("").expect("an item");
        assert_eq!(item["lastUsed"], serde_json::json!({}));
    }

    #[test]
    fn only_the_days_of_removed_credentials_are_dropped() {
        let left = RemainingCredentials {
            secrets: vec![ClientSecret::matching_no_text()],
            keys: Vec::new(),
            gone: Vec::new(),
        };
        let kept = left.secrets[0].id.as_str();
        let forgotten = |used: &[&str]| {
            let day = |credential: &&str| ((*credential).to_owned(), "2026-11-20".to_owned());
            let last_used = used.iter().map(day).collect();
            days_of_removed(&last_used, &left).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(forgotten(&[kept]).is_empty());
        assert_eq!(forgotten(&["a.b", kept, "c"]), ["a.b", "c"]);
    }
}
