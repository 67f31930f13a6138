//! Applications in the table: each in a partition of its own, so that one read authenticates, with a pointer to it in its
//! owner's partition, so that one query lists them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{Delete, Put, TransactWriteItem, Update},
};
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::{Application, ClientKey, ClientSecret, credential_removal::Left, new_application::NewApplication};
use auth::{
    entity::{AuthorizedEntity, Entities, EntityId},
    scope::Scopes,
};
use base::clock::Time;
use storage::{
    secrets::SecretBytes,
    table::{Item, Table, TableError, Transacted, number, read_item, text, write_item, write_value},
};

/// Longer than any identifier that exists, and short enough for a key.
const MAX_CLIENT_ID: usize = 256;

/// The applications in the table.
#[derive(Debug, Clone)]
pub struct Applications(Table);

/// The item in the table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationItem {
    pk: String,
    sk: String,
    client_id: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner_identifier: Option<EntityId>,
    scopes: String,
    managing_entities: Entities,
    secrets: Vec<ClientSecret>,
    keys: Vec<ClientKey>,
    /// Always there, so that a use can be noted in it.
    last_used: BTreeMap<String, String>,
    version: u64,
    created_date: Time,
    last_update: Time,
}

/// Where an owner finds its applications.
#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    pk: String,
    sk: String,
}

/// How a change of an application ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is written.
    Yes,
    /// The application is not as it was read, or is gone: nothing was written.
    Lost,
}

impl From<Transacted> for Changed {
    fn from(transacted: Transacted) -> Self {
        match transacted {
            Transacted::Yes => Self::Yes,
            Transacted::ConditionLost => Self::Lost,
        }
    }
}

impl From<Application> for ApplicationItem {
    fn from(application: Application) -> Self {
        let (pk, sk) = key(&application.client_id);
        Self {
            pk,
            sk,
            client_id: application.client_id,
            name: application.name,
            owner_identifier: application.owner,
            scopes: application.scopes.to_string(),
            managing_entities: application.entities,
            secrets: application.secrets,
            keys: application.keys,
            last_used: application.last_used,
            version: application.version,
            created_date: application.created_date,
            last_update: application.last_update,
        }
    }
}

impl TryFrom<ApplicationItem> for Application {
    type Error = TableError;

    fn try_from(item: ApplicationItem) -> Result<Self, TableError> {
        let scopes = Scopes::parse(&item.scopes).map_err(|_| TableError::Missing("a known scope of an application"))?;
        Ok(Self {
            client_id: item.client_id,
            name: item.name,
            owner: item.owner_identifier,
            scopes,
            entities: item.managing_entities,
            secrets: item.secrets,
            keys: item.keys,
            last_used: item.last_used,
            version: item.version,
            created_date: item.created_date,
            last_update: item.last_update,
        })
    }
}

impl Applications {
    /// The applications in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The application with this client identifier. Sees every change that was acknowledged before.
    pub async fn find(&self, client_id: &str) -> Result<Option<Application>, TableError> {
        if client_id.len() > MAX_CLIENT_ID {
            return Ok(None);
        }
        let item: Option<ApplicationItem> = self.0.read(key(client_id), "reading an application").await?;
        item.map(Application::try_from).transpose()
    }

    /// The application with this client identifier that this entity owns; another's looks like a missing one.
    pub async fn find_of(&self, owner: &AuthorizedEntity, client_id: &str) -> Result<Option<Application>, TableError> {
        let found = self.find(client_id).await?;
        Ok(found.filter(|application| application.owner.as_ref() == Some(owner.id())))
    }

    /// The work that finding nothing would spare: reading an item, hashing and comparing.
    pub fn compare_with_nothing(secret: &str, pepper: &SecretBytes) {
        static NOTHING: LazyLock<Option<Item>> =
            LazyLock::new(|| write_item(&ApplicationItem::from(nobody()), "a decoy").ok());
        let item = NOTHING.clone().and_then(|item| read_item::<ApplicationItem>(item, "a decoy").ok());
        let nobody = item.and_then(|item| Application::try_from(item).ok());
        let found = nobody.as_ref().and_then(|nobody| nobody.secret(secret, pepper, Time::from_millis(0)));
        std::hint::black_box(found);
    }

    /// How many applications an entity owns.
    pub async fn count_of(&self, owner: &AuthorizedEntity) -> Result<usize, TableError> {
        Ok(self.pointers(owner.id()).await?.len())
    }

    /// All applications that an entity owns, the newest first. Sees every one that was acknowledged before.
    pub async fn of(&self, owner: &EntityId) -> Result<Vec<Application>, TableError> {
        let pointers = self.pointers(owner).await?;
        let found = try_join_all(pointers.iter().map(|pointer| self.find(&pointer.sk))).await?;
        let mut found: Vec<_> = found.into_iter().flatten().collect(); // one may have been removed meanwhile
        found.sort_by(|one, other| (other.created_date, &other.client_id).cmp(&(one.created_date, &one.client_id)));
        Ok(found)
    }

    async fn pointers(&self, owner: &EntityId) -> Result<Vec<Pointer>, TableError> {
        const DOING: &str = "listing an entity's applications";
        let items = self.0.partition(pointers(owner), None, DOING).await?;
        items.into_iter().map(|item| read_item(item, DOING)).collect()
    }

    /// Writes an application, whatever was there before.
    pub async fn put(&self, application: Application) -> Result<(), TableError> {
        const DOING: &str = "writing an application";
        let pointer = pointer(&application).map(|(pk, sk)| write_item(&Pointer { pk, sk }, DOING)).transpose()?;
        let item = write_item(&ApplicationItem::from(application), DOING)?;
        let put = |item| {
            let put = Put::builder().table_name(&self.0.name).set_item(Some(item)).build();
            Ok(TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build())
        };
        let writes = [Some(item), pointer].into_iter().flatten().map(put).collect::<Result<_, TableError>>()?;
        self.0.transact(writes, DOING).await.map(drop)
    }

    /// Gives the application these credentials, if it is still as it was read, and counts its version. The SDK asks again when
    /// an answer was lost; what the first request wrote is then no change of somebody else's, but this very one.
    pub async fn change_credentials(
        &self,
        read: &Application,
        secrets: &[ClientSecret],
        keys: &[ClientKey],
        now: Time,
    ) -> Result<Changed, TableError> {
        const DOING: &str = "changing an application's credentials";
        let change = CredentialChange::of(read, secrets, keys, now, DOING)?;
        let request = self
            .0
            .client
            .update_item()
            .table_name(&self.0.name)
            .set_key(Some(change.key))
            .update_expression(change.expression)
            .condition_expression(CredentialChange::CONDITION)
            .set_expression_attribute_names(Some(change.names))
            .set_expression_attribute_values(Some(change.values));
        match request.send().await {
            Ok(_) => Ok(Changed::Yes),
            Err(error) => match error.as_service_error() {
                Some(
                    UpdateItemError::ConditionalCheckFailedException(_)
                    // A transaction that removes it is under way.
                    | UpdateItemError::TransactionConflictException(_),
                ) => Ok(Changed::Lost),
                _ => Err(TableError::sdk(DOING)(error)),
            },
        }
    }

    /// Leaves the application these credentials, if it is still as it was read, together with these writes or not at all.
    pub async fn remove_credentials(
        &self,
        read: &Application,
        left: &Left,
        mut along: Vec<TransactWriteItem>,
        now: Time,
    ) -> Result<Changed, TableError> {
        const DOING: &str = "removing credentials of an application";
        let change = CredentialChange::of(read, &left.secrets, &left.keys, now, DOING)?;
        let update = Update::builder()
            .table_name(&self.0.name)
            .set_key(Some(change.key))
            .update_expression(change.expression)
            .condition_expression(CredentialChange::CONDITION)
            .set_expression_attribute_names(Some(change.names))
            .set_expression_attribute_values(Some(change.values))
            .build()
            .map_err(TableError::unbuilt(DOING))?;
        along.push(TransactWriteItem::builder().update(update).build());
        self.0.transact(along, DOING).await.map(Changed::from)
    }

    /// Removes the application, however it was changed since it was read, together with these writes or not at all: a thief
    /// who changes it again and again must not keep it alive. False when it was gone already.
    pub async fn remove(&self, read: &Application, mut along: Vec<TransactWriteItem>) -> Result<bool, TableError> {
        const DOING: &str = "removing an application";
        let delete = |(pk, sk)| Delete::builder().table_name(&self.0.name).key("pk", text(pk)).key("sk", text(sk));
        let item = delete(key(&read.client_id)).condition_expression("attribute_exists(pk)");
        for delete in [Some(item), pointer(read).map(delete)].into_iter().flatten() {
            along
                .push(TransactWriteItem::builder().delete(delete.build().map_err(TableError::unbuilt(DOING))?).build());
        }
        Ok(self.0.transact(along, DOING).await? == Transacted::Yes)
    }

    /// Notes that a credential was used on this day (UTC, `2026-11-20`), unless that is noted already. It is no change: the
    /// version stays. An application that is gone has nothing to be noted.
    pub async fn note_use(&self, client_id: &str, credential: &str, day: &str) -> Result<(), TableError> {
        const DOING: &str = "noting the use of a credential";
        let (pk, sk) = key(client_id);
        let request = self
            .0
            .client
            .update_item()
            .table_name(&self.0.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .update_expression("SET lastUsed.#credential = :day")
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(lastUsed.#credential) OR lastUsed.#credential <> :day)",
            )
            .expression_attribute_names("#credential", credential)
            .expression_attribute_values(":day", text(day));
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(TableError::sdk(DOING)(error)),
            },
        }
    }
}

/// What a request says that changes an application's credentials.
struct CredentialChange {
    key: Item,
    expression: String,
    names: HashMap<String, String>,
    values: Item,
}

impl CredentialChange {
    /// The application is as it was read, or as the very same change has left it.
    const CONDITION: &str =
        "#version = :read OR (#version = :next AND secrets = :secrets AND #keys = :keys AND lastUpdate = :now)";

    fn of(
        read: &Application,
        secrets: &[ClientSecret],
        keys: &[ClientKey],
        now: Time,
        doing: &'static str,
    ) -> Result<Self, TableError> {
        let (pk, sk) = key(&read.client_id);
        let (mut names, forgotten) = forgotten(&read.last_used, secrets, keys);
        names.extend([("#keys", "keys"), ("#version", "version")].map(|(name, of)| (name.to_owned(), of.to_owned())));
        let values = [
            (":secrets", write_value(&secrets, doing)?),
            (":keys", write_value(&keys, doing)?),
            (":next", number(read.version + 1)),
            (":read", number(read.version)),
            (":now", text(now)),
        ];
        Ok(Self {
            key: [("pk", pk), ("sk", sk)].map(|(name, part)| (name.to_owned(), text(part))).into(),
            expression: format!(
                "SET secrets = :secrets, #keys = :keys, #version = :next, lastUpdate = :now{forgotten}"
            ),
            names,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        })
    }
}

/// What removes the days of credentials that are no longer there: names for an expression, and its end.
fn forgotten(
    last_used: &BTreeMap<String, String>,
    secrets: &[ClientSecret],
    keys: &[ClientKey],
) -> (HashMap<String, String>, String) {
    let kept = |credential: &str| {
        secrets.iter().any(|secret| secret.id.as_str() == credential) || keys.iter().any(|key| key.kid == credential)
    };
    let gone = last_used.keys().filter(|credential| !kept(credential));
    let names: Vec<_> = gone.enumerate().map(|(number, name)| (format!("#gone{number}"), name.clone())).collect();
    let paths: Vec<_> = names.iter().map(|(name, _)| format!("lastUsed.{name}")).collect();
    let remove = if paths.is_empty() { String::new() } else { format!(" REMOVE {}", paths.join(", ")) };
    (names.into_iter().collect(), remove)
}

/// An application that nobody is, with a secret that nothing hashes to.
fn nobody() -> Application {
    let new = NewApplication::of_operator("Nobody".to_owned(), Scopes::ALL, Entities::new([]));
    new.with("appNobody".to_owned(), Some(ClientSecret::of_nothing()), Time::from_millis(0))
}

fn key(client_id: &str) -> (String, String) {
    (format!("APP#{client_id}"), "APP".to_owned())
}

fn pointers(owner: &EntityId) -> String {
    format!("APPS#{owner}")
}

/// Where an application's owner finds it.
fn pointer(application: &Application) -> Option<(String, String)> {
    let owner = application.owner.as_ref()?;
    Some((pointers(owner), application.client_id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_comes_back_as_it_was_written() {
        let written = Application { last_used: [("sec_1".into(), "2026-11-20".into())].into(), ..nobody() };
        let item = write_item(&ApplicationItem::from(written.clone()), "").expect("an item");
        let read = Application::try_from(read_item::<ApplicationItem>(item, "").expect("one")).expect("known scopes");
        assert_eq!((read.client_id, read.scopes, read.secrets), (written.client_id, written.scopes, written.secrets));
        assert_eq!((read.last_used, read.version), (written.last_used, 1));
    }

    #[test]
    fn the_map_of_uses_is_there_before_the_first() {
        let item = write_item(&ApplicationItem::from(nobody()), "").expect("an item");
        assert!(item.contains_key("lastUsed"));
    }

    #[test]
    fn only_what_is_known_of_credentials_that_are_gone_is_removed() {
        let secret = ClientSecret::of_nothing();
        let day = |credential: &str| (credential.to_owned(), "2026-11-20".to_owned());
        let kept = BTreeMap::from([day(secret.id.as_str())]);
        let (names, remove) = forgotten(&kept, std::slice::from_ref(&secret), &[]);
        assert!(names.is_empty() && remove.is_empty());
        let (names, remove) =
            forgotten(&BTreeMap::from([day("a.b"), day(secret.id.as_str()), day("c")]), &[secret], &[]);
        assert_eq!(remove, " REMOVE lastUsed.#gone0, lastUsed.#gone1");
        assert_eq!((names["#gone0"].as_str(), names["#gone1"].as_str()), ("a.b", "c"));
    }
}
