//! Sealing anew: once a key is current, everything in the table that an older one sealed is sealed with it.
//!
//! Each item is written on condition that the sealed text is still the one that was opened, so that a change made
//! meanwhile is never undone. States of authorizations are left as they are: they live for ten minutes only.
//!
//! What former releases left in the open goes the same way: headers and URLs of webhooks are sealed, and the values in the
//! URLs of deliveries are masked.

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};
use serde::Deserialize;

use auth::entity::EntityId;
use base::{ids::WebhookId, logging, random::Random};
use payments::{ProviderName, tokens};
use storage::{
    sealing::{KeyRing, SealError},
    table::{Item, Table, TableError, read_item, write_value},
};
use webhooks::subscriptions::{
    endpoint::{Kept, KeptEndpoint, Part, Place},
    masked, secret,
};

/// How often an item is tried again that changes at that very moment. The next pass finds what is left.
const TRIES: u32 = 5;

const DOING: &str = "sealing anew what is in an item";

/// What a pass over the table found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Webhooks and connections that were looked at, and deliveries whose URL has a query.
    pub seen: u64,
    /// Webhooks of which something was sealed anew.
    pub webhooks: u64,
    /// Connections whose tokens were sealed anew.
    pub connections: u64,
    /// Deliveries in whose URL values were masked.
    pub deliveries: u64,
    /// Items that changed whenever they were to be written.
    pub busy: u64,
    /// Items with something that cannot be opened. The log names them.
    pub unreadable: u64,
}

impl Counts {
    /// Whether nothing was left to be sealed anew.
    pub fn changed_nothing(&self) -> bool {
        self.webhooks + self.connections + self.deliveries + self.busy == 0
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
    Delivery,
}

/// Something sealed in an item.
struct SealedText {
    /// Where it stands, as an expression of DynamoDB's.
    path: String,
    context: String,
    text: String,
}

/// A value that takes the place of another, or of none.
struct Replacement {
    path: String,
    old: Option<AttributeValue>,
    new: AttributeValue,
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
        let scan = self.table.client.scan().table_name(&self.table.name).consistent_read(true);
        let mut items = scan
            .filter_expression(
                "begins_with(sk, :webhook) OR begins_with(sk, :connection) OR (sk = :delivery AND contains(#url, :query))",
            )
            .expression_attribute_names("#url", "url")
            .expression_attribute_values(":delivery", AttributeValue::S(Kind::Delivery.prefix().to_owned()))
            .expression_attribute_values(":query", AttributeValue::S("?".to_owned()))
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
                Some(Outcome::Resealed(Kind::Delivery)) => counts.deliveries += 1,
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

    /// What takes the place of what an older key sealed in an item, or a former release did not seal.
    fn changes(&self, kind: Kind, key: &(String, String), item: Item) -> Result<Vec<Replacement>, Unreadable> {
        let mut changes = match kind {
            Kind::Webhook => self.bare_parts(key, &item)?,
            Kind::Connection => Vec::new(),
            Kind::Delivery => return Ok(masked_url(&item).into_iter().collect()),
        };
        for SealedText { path, context, text } in kind.texts(key, item)? {
            if let Some(anew) = self.ring.reseal(self.random, &context, &text)? {
                changes.push(Replacement { path, old: Some(AttributeValue::S(text)), new: AttributeValue::S(anew) });
            }
        }
        Ok(changes)
    }

    /// The parts of a webhook's endpoint that a former release did not seal, and the same sealed.
    fn bare_parts(&self, key: &(String, String), item: &Item) -> Result<Vec<Replacement>, Unreadable> {
        let (owner, webhook) = webhook_of(key)?;
        let place = Place { owner: &owner, webhook: &webhook };
        let kept: KeptEndpoint = read_item(item.clone(), DOING)?;
        let mut changes = self.bare_part(kept.url(), ["eventUrl", "sealedEventUrl"], place)?;
        changes.extend(self.bare_part(kept.headers(), ["headers", "sealedHeaders"], place)?);
        Ok(changes)
    }

    fn bare_part<T: Part>(
        &self,
        bare: Kept<T>,
        [shown, sealed]: [&str; 2],
        place: Place<'_>,
    ) -> Result<Vec<Replacement>, TableError> {
        if !bare.is_bare() {
            return Ok(Vec::new());
        }
        let anew = Kept::seal(&bare.shown, self.ring, self.random, place);
        let (old, new) = (write_value(&bare.shown, DOING)?, write_value(&anew.shown, DOING)?);
        let masked = Replacement { path: shown.to_owned(), old: Some(old), new };
        let text = anew.sealed.map(AttributeValue::S);
        let beside = text.map(|new| Replacement { path: sealed.to_owned(), old: None, new });
        Ok([masked].into_iter().chain(beside).collect())
    }

    /// Writes the new values if the old ones are still there.
    async fn write(&self, (pk, sk): &(String, String), changes: Vec<Replacement>) -> Result<Written, TableError> {
        let mut request = self
            .table
            .client
            .update_item()
            .table_name(&self.table.name)
            .key("pk", AttributeValue::S(pk.clone()))
            .key("sk", AttributeValue::S(sk.clone()));
        let (mut sets, mut conditions) = (Vec::new(), Vec::new());
        for (number, Replacement { path, old, new }) in changes.into_iter().enumerate() {
            sets.push(format!("{path} = :new{number}"));
            request = request.expression_attribute_values(format!(":new{number}"), new);
            if let Some(name) = path.strip_prefix('#') {
                request = request.expression_attribute_names(&path, name);
            }
            let Some(old) = old else {
                conditions.push(format!("attribute_not_exists({path})"));
                continue;
            };
            conditions.push(format!("{path} = :old{number}"));
            request = request.expression_attribute_values(format!(":old{number}"), old);
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
            Self::Delivery => "HEAD",
        }
    }

    fn of(sk: &str) -> Option<Self> {
        [Self::Webhook, Self::Connection, Self::Delivery].into_iter().find(|kind| sk.starts_with(kind.prefix()))
    }

    /// What is sealed in an item, and for what: its place says so, and not the item, which may be a copy of another.
    fn texts(self, key: &(String, String), item: Item) -> Result<Vec<SealedText>, Unreadable> {
        match self {
            Self::Webhook => {
                let (owner, webhook) = webhook_of(key)?;
                let context = secret::context(&owner, &webhook);
                let place = Place { owner: &owner, webhook: &webhook };
                let kept: KeptEndpoint = read_item(item.clone(), DOING)?;
                let parts = [
                    ("sealedEventUrl", place.context::<String>(), kept.url().sealed),
                    ("sealedHeaders", place.context::<masked::Headers>(), kept.headers().sealed),
                ];
                let parts = parts.into_iter().filter_map(|(path, context, text)| {
                    Some(SealedText { path: path.to_owned(), context, text: text? })
                });
                let secrets = read_item::<WebhookItem>(item, DOING)?.signing_secrets.into_iter().enumerate();
                let text = |(position, secret): (usize, SigningSecretItem)| SealedText {
                    path: format!("signingSecrets[{position}].sealed"),
                    context: context.clone(),
                    text: secret.sealed,
                };
                Ok(secrets.map(text).chain(parts).collect())
            }
            Self::Connection => {
                let (owner, name) = place_of(self, key)?;
                let provider = ProviderName::parse(name).map_err(|_| Unreadable::Place)?;
                let text = read_item::<ConnectionItem>(item, DOING)?.sealed_tokens;
                let context = tokens::context(&owner, &provider);
                Ok(vec![SealedText { path: "sealedTokens".to_owned(), context, text }])
            }
            Self::Delivery => Ok(Vec::new()),
        }
    }
}

/// Whose an item is, and the rest of its sort key.
fn place_of(kind: Kind, (pk, sk): &(String, String)) -> Result<(EntityId, &str), Unreadable> {
    let owner = pk.strip_prefix("ENT#").and_then(|owner| EntityId::parse(owner).ok()).ok_or(Unreadable::Place)?;
    Ok((owner, sk.strip_prefix(kind.prefix()).unwrap_or_default()))
}

fn webhook_of(key: &(String, String)) -> Result<(EntityId, WebhookId), Unreadable> {
    let (owner, name) = place_of(Kind::Webhook, key)?;
    Ok((owner, WebhookId::parse(name).ok_or(Unreadable::Place)?))
}

/// The URL of a delivery with its values masked; nothing, if they are.
fn masked_url(item: &Item) -> Option<Replacement> {
    let old = item.get("url")?;
    let url = old.as_s().ok()?;
    let new = masked::url(url);
    // `url` is a word of DynamoDB's language.
    (new != *url).then(|| Replacement { path: "#url".to_owned(), old: Some(old.clone()), new: AttributeValue::S(new) })
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
