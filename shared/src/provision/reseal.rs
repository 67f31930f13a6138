//! Sealing anew: once a key is current, everything in the table that an older one sealed is sealed with it.
//!
//! Each item is written on condition that the sealed text is still the one that was opened, so that a change made
//! meanwhile is never undone. States of authorizations are left as they are: they live for ten minutes only.

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};
use serde::Deserialize;

use crate::{
    auth::entity::EntityId,
    ids::WebhookId,
    logging,
    payments::{ProviderName, tokens},
    random::Random,
    sealing::{KeyRing, SealError},
    table::{Item, Table, TableError, read_item},
    webhooks::secret,
};

/// How often an item is tried again that changes at that very moment. The next pass finds what is left.
const TRIES: u32 = 5;

/// What a pass over the table found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Webhooks and connections that were looked at.
    pub seen: u64,
    /// Webhooks with a signing secret that was sealed anew.
    pub webhooks: u64,
    /// Connections whose tokens were sealed anew.
    pub connections: u64,
    /// Items that changed whenever they were to be written.
    pub busy: u64,
    /// Items with something that cannot be opened. The log names them.
    pub unreadable: u64,
}

impl Counts {
    /// Whether nothing was left to be sealed anew.
    pub fn changed_nothing(&self) -> bool {
        self.webhooks + self.connections + self.busy == 0
    }
}

/// Seals anew what is in the table.
pub struct Resealing<'a> {
    /// The table.
    pub table: &'a Table,
    /// The keys: all that something may be sealed with, the new one current.
    pub ring: &'a KeyRing,
    /// The dice.
    pub random: &'a dyn Random,
}

/// Kinds of items with something sealed in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Webhook,
    Connection,
}

/// Something sealed in an item.
struct SealedText {
    /// Where it stands, as an expression of DynamoDB's.
    path: String,
    context: String,
    text: String,
}

/// Why an item cannot be sealed anew.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("the item is not as it should be")]
    Item(#[from] TableError),
    #[error("what is sealed in it cannot be opened")]
    Text(#[from] SealError),
    #[error("its key is none of this program's")]
    Place,
}

/// What a conditional write met.
enum Written {
    Yes,
    /// The item is another now.
    Changed(Item),
    Gone,
}

/// What became of an item.
enum Outcome {
    Unchanged,
    Resealed(Kind),
    Busy,
}

impl Resealing<'_> {
    /// Goes through the whole table once; tells from time to time how far it is.
    pub async fn pass(&self, mut progress: impl FnMut(&Counts)) -> Result<Counts, TableError> {
        const DOING: &str = "reading what is sealed";
        let scan = self.table.client.scan().table_name(&self.table.name).consistent_read(true);
        let mut items = scan
            .filter_expression("begins_with(sk, :webhook) OR begins_with(sk, :connection)")
            .expression_attribute_values(":webhook", AttributeValue::S(Kind::Webhook.prefix().to_owned()))
            .expression_attribute_values(":connection", AttributeValue::S(Kind::Connection.prefix().to_owned()))
            .into_paginator()
            .items()
            .send();
        let mut counts = Counts::default();
        while let Some(item) = items.next().await {
            let item = item.map_err(TableError::sdk(DOING))?;
            counts.seen += 1;
            match self.item(item).await? {
                Some(Outcome::Unchanged) => {}
                Some(Outcome::Resealed(Kind::Webhook)) => counts.webhooks += 1,
                Some(Outcome::Resealed(Kind::Connection)) => counts.connections += 1,
                Some(Outcome::Busy) => counts.busy += 1,
                None => counts.unreadable += 1,
            }
            progress(&counts);
        }
        Ok(counts)
    }

    /// Seals what is in one item anew; nothing, if it cannot be read.
    async fn item(&self, mut item: Item) -> Result<Option<Outcome>, TableError> {
        let key = key(&item);
        let Some(kind) = Kind::of(&key.1) else { return Ok(Some(Outcome::Unchanged)) };
        for _ in 0..TRIES {
            let changes = match self.changes(kind, &key, item) {
                Ok(changes) => changes,
                Err(error) => {
                    let (pk, sk) = &key;
                    tracing::warn!(error = %logging::chain(&error), pk, sk, "not sealed anew");
                    return Ok(None);
                }
            };
            if changes.is_empty() {
                return Ok(Some(Outcome::Unchanged));
            }
            match self.write(&key, changes).await? {
                Written::Yes => return Ok(Some(Outcome::Resealed(kind))),
                Written::Changed(changed) => item = changed,
                Written::Gone => return Ok(Some(Outcome::Unchanged)),
            }
        }
        Ok(Some(Outcome::Busy))
    }

    /// What an older key sealed in an item, and the same sealed with the current one.
    fn changes(&self, kind: Kind, key: &(String, String), item: Item) -> Result<Vec<(SealedText, String)>, Unreadable> {
        let mut changes = Vec::new();
        for sealed in kind.texts(key, item)? {
            if let Some(anew) = self.ring.reseal(self.random, &sealed.context, &sealed.text)? {
                changes.push((sealed, anew));
            }
        }
        Ok(changes)
    }

    /// Writes the new texts if the old ones are still there.
    async fn write(
        &self,
        (pk, sk): &(String, String),
        changes: Vec<(SealedText, String)>,
    ) -> Result<Written, TableError> {
        let mut request = self
            .table
            .client
            .update_item()
            .table_name(&self.table.name)
            .key("pk", AttributeValue::S(pk.clone()))
            .key("sk", AttributeValue::S(sk.clone()));
        let (mut sets, mut conditions) = (Vec::new(), Vec::new());
        for (number, (SealedText { path, text, .. }, anew)) in changes.into_iter().enumerate() {
            sets.push(format!("{path} = :new{number}"));
            conditions.push(format!("{path} = :old{number}"));
            request = request
                .expression_attribute_values(format!(":old{number}"), AttributeValue::S(text))
                .expression_attribute_values(format!(":new{number}"), AttributeValue::S(anew));
        }
        let request = request
            .update_expression(format!("SET {}", sets.join(", ")))
            .condition_expression(conditions.join(" AND "))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(_) => Ok(Written::Yes),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(lost)) => {
                    Ok(lost.item.clone().map_or(Written::Gone, Written::Changed))
                }
                _ => Err(TableError::sdk("sealing an item anew")(error)),
            },
        }
    }
}

impl Kind {
    /// How the sort key begins.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Webhook => "WHK#",
            Self::Connection => "PAY#",
        }
    }

    fn of(sk: &str) -> Option<Self> {
        [Self::Webhook, Self::Connection].into_iter().find(|kind| sk.starts_with(kind.prefix()))
    }

    /// What is sealed in an item, and for what: its place says so, and not the item, which may be a copy of another.
    fn texts(self, (pk, sk): &(String, String), item: Item) -> Result<Vec<SealedText>, Unreadable> {
        const DOING: &str = "reading what is sealed in an item";
        let owner = pk.strip_prefix("ENT#").and_then(|owner| EntityId::parse(owner).ok()).ok_or(Unreadable::Place)?;
        let name = sk.strip_prefix(self.prefix()).unwrap_or_default();
        match self {
            Self::Webhook => {
                let context = secret::context(&owner, &WebhookId::parse(name).ok_or(Unreadable::Place)?);
                let secrets = read_item::<WebhookItem>(item, DOING)?.signing_secrets.into_iter().enumerate();
                let text = |(position, secret): (usize, SigningSecretItem)| SealedText {
                    path: format!("signingSecrets[{position}].sealed"),
                    context: context.clone(),
                    text: secret.sealed,
                };
                Ok(secrets.map(text).collect())
            }
            Self::Connection => {
                let provider = ProviderName::parse(name).map_err(|_| Unreadable::Place)?;
                let text = read_item::<ConnectionItem>(item, DOING)?.sealed_tokens;
                let context = tokens::context(&owner, &provider);
                Ok(vec![SealedText { path: "sealedTokens".to_owned(), context, text }])
            }
        }
    }
}

/// As much of a webhook as matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookItem {
    signing_secrets: Vec<SigningSecretItem>,
}

#[derive(Deserialize)]
struct SigningSecretItem {
    sealed: String,
}

/// As much of a connection as matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionItem {
    sealed_tokens: String,
}

fn key(item: &Item) -> (String, String) {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    (text("pk"), text("sk"))
}
