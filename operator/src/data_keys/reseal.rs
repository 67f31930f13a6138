//! Reseals, with the current key, every value in the table that an older key sealed.
//!
//! Writing an item fails if a sealed value has changed since it was opened, so that no concurrent change is undone.
//! Authorizations' PKCE verifiers and idempotent responses are not resealed, since they live for only ten minutes.

use serde::Deserialize;
use serde_json::Value as Json;

use auth::EntityId;
use base::{Random, WebhookId, logging};
use payments::{ProviderName, tokens};
use storage::table::{Change, Key, Path, Scan, Scanned, Table, TableError, Written, begins_with, is};
use storage::{KeyRing, SealError};
use webhooks::subscriptions::endpoint::{KeptEndpoint, SealContext, key_pair, masked, secret};

/// The maximum number of attempts to write an item that is changed concurrently. The next pass finds it again.
const TRIES: u32 = 5;

const DOING: &str = "resealing an item's values";

/// The counts of a pass over the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Examined webhooks and connections.
    pub seen: u64,
    /// Webhooks with a resealed value.
    pub webhooks: u64,
    /// Connections with resealed tokens.
    pub connections: u64,
    /// Items that were not written because of concurrent changes.
    pub busy: u64,
    /// Items with a value that cannot be opened. The log names them.
    pub unreadable: u64,
}

impl Counts {
    /// Whether no values were left to reseal.
    pub fn changed_nothing(&self) -> bool {
        self.webhooks + self.connections + self.busy == 0
    }
}

/// Reseals the values in the table.
pub struct Resealing<'a> {
    /// The table.
    pub table: &'a Table,
    /// All keys that may have sealed a value; the new one is current.
    pub ring: &'a KeyRing,
    /// The source of nonces.
    pub random: &'a dyn Random,
}

/// The kinds of items with sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Webhook,
    Connection,
}

/// An item's sealed value.
struct SealedText {
    /// The path of the attribute, or of a part of it.
    path: Path,
    context: String,
    text: String,
}

/// A new sealed value, and the one that it replaces.
struct Replacement {
    path: Path,
    old: String,
    new: String,
}

/// Why an item cannot be resealed.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("the item is malformed")]
    Item(#[from] TableError),
    #[error("the item is malformed")]
    Member(#[from] serde_json::Error),
    #[error("the item's sealed value cannot be opened")]
    Text(#[from] SealError),
    #[error("the item's type is unknown")]
    Key,
}

/// The outcome for one item.
enum Resealed {
    Nothing,
    Done(Kind),
    Busy,
    Unreadable,
}

impl Resealing<'_> {
    /// Makes one pass over the whole table, and reports progress.
    pub async fn pass(&self, mut progress: impl FnMut(&Counts)) -> Result<Counts, TableError> {
        let sealed = begins_with("sk", Kind::Webhook.prefix()).or(begins_with("sk", Kind::Connection.prefix()));
        let scan = Scan::default().only(sealed);
        let mut counts = Counts::default();
        let mut next = None;
        loop {
            let page: Scanned<Json> = self.table.scan(scan.clone().after(next), DOING).await?;
            for (key, item) in page.items {
                counts.seen += 1;
                match self.item(&key, item).await? {
                    Resealed::Nothing => {}
                    Resealed::Done(Kind::Webhook) => counts.webhooks += 1,
                    Resealed::Done(Kind::Connection) => counts.connections += 1,
                    Resealed::Busy => counts.busy += 1,
                    Resealed::Unreadable => counts.unreadable += 1,
                }
                progress(&counts);
            }
            next = page.next;
            if next.is_none() {
                return Ok(counts);
            }
        }
    }

    /// Reseals one item's values.
    async fn item(&self, key: &Key, item: Result<Json, TableError>) -> Result<Resealed, TableError> {
        let Some(kind) = Kind::of(&key.sort) else { return Ok(Resealed::Nothing) };
        let mut item = item.map_err(Unreadable::Item);
        for _ in 0..TRIES {
            let changes = match item.and_then(|item| self.changes(kind, key, &item)) {
                Ok(changes) => changes,
                Err(error) => {
                    let pk = &key.partition;
                    let sk = &key.sort;
                    tracing::warn!(error = %logging::chain(&error), pk, sk, "skipped an item that cannot be resealed");
                    return Ok(Resealed::Unreadable);
                }
            };
            if changes.is_empty() {
                return Ok(Resealed::Nothing);
            }
            match self.write(key, changes).await? {
                Written::Done(_) => return Ok(Resealed::Done(kind)),
                Written::Lost(Some(changed)) => item = Ok(changed),
                Written::Lost(None) => return Ok(Resealed::Nothing),
            }
        }
        Ok(Resealed::Busy)
    }

    /// The replacements for an item's values sealed by an older key.
    fn changes(&self, kind: Kind, key: &Key, item: &Json) -> Result<Vec<Replacement>, Unreadable> {
        let mut changes = Vec::new();
        for SealedText { path, context, text } in kind.texts(key, item)? {
            if let Some(new) = self.ring.reseal(self.random, &context, &text)? {
                changes.push(Replacement { path, old: text, new });
            }
        }
        Ok(changes)
    }

    /// Writes the new values if the old ones have not changed.
    async fn write(&self, key: &Key, changes: Vec<Replacement>) -> Result<Written<Json>, TableError> {
        let mut change = Change::of(key.clone());
        for Replacement { path, old, new } in changes {
            change = change.only_if(is(path.clone(), old)).set(path, new);
        }
        self.table.write_and_read(change, "resealing an item").await
    }
}

impl Kind {
    /// The sort key's prefix.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Webhook => "WHK#",
            Self::Connection => "PAY#",
        }
    }

    fn of(sk: &str) -> Option<Self> {
        [Self::Webhook, Self::Connection].into_iter().find(|kind| sk.starts_with(kind.prefix()))
    }

    /// An item's sealed values, with their contexts. Owner and identifier come from the key, not from the item: copying
    /// an item must not change its owner.
    fn texts(self, key: &Key, item: &Json) -> Result<Vec<SealedText>, Unreadable> {
        match self {
            Self::Webhook => {
                let (owner, webhook) = webhook_of(key)?;
                let of_secret = secret::context(&owner, &webhook);
                let of_key = key_pair::context(&owner, &webhook);
                let endpoint = SealContext { owner: &owner, webhook: &webhook };
                let kept = KeptEndpoint::deserialize(item)?;
                let parts = [
                    ("sealedEventUrl", endpoint.context::<String>(), kept.url().sealed),
                    ("sealedHeaders", endpoint.context::<masked::Headers>(), kept.headers().sealed),
                ];
                let parts = parts
                    .into_iter()
                    .filter_map(|(path, context, text)| Some(SealedText { path: path.into(), context, text: text? }));
                let secrets = WebhookItem::deserialize(item)?.signing_secrets.into_iter().enumerate();
                let texts = |(position, secret): (usize, SigningSecretItem)| {
                    const LIST: &str = "signingSecrets";
                    let path = (LIST, position, "sealed").into();
                    let text = SealedText { path, context: of_secret.clone(), text: secret.sealed };
                    let key = secret.key_pair.map(|pair| SealedText {
                        path: (LIST, position, "keyPair", "sealed").into(),
                        context: of_key.clone(),
                        text: pair.sealed,
                    });
                    [text].into_iter().chain(key)
                };
                Ok(secrets.flat_map(texts).chain(parts).collect())
            }
            Self::Connection => {
                let (owner, name) = owner_and_name(self, key)?;
                let provider = ProviderName::parse(name).map_err(|_| Unreadable::Key)?;
                let text = ConnectionItem::deserialize(item)?.sealed_tokens;
                let context = tokens::context(&owner, &provider);
                Ok(vec![SealedText { path: "sealedTokens".into(), context, text }])
            }
        }
    }
}

/// An item's owner, and the rest of its sort key.
fn owner_and_name(kind: Kind, key: &Key) -> Result<(EntityId, &str), Unreadable> {
    let owner =
        key.partition.strip_prefix("ENT#").and_then(|owner| EntityId::parse(owner).ok()).ok_or(Unreadable::Key)?;
    Ok((owner, key.sort.strip_prefix(kind.prefix()).unwrap_or_default()))
}

fn webhook_of(key: &Key) -> Result<(EntityId, WebhookId), Unreadable> {
    let (owner, name) = owner_and_name(Kind::Webhook, key)?;
    Ok((owner, WebhookId::parse(name).ok_or(Unreadable::Key)?))
}

/// A webhook's sealed members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookItem {
    signing_secrets: Vec<SigningSecretItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigningSecretItem {
    sealed: String,
    key_pair: Option<KeyPairItem>,
}

#[derive(Deserialize)]
struct KeyPairItem {
    sealed: String,
}

/// A connection's sealed member.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionItem {
    sealed_tokens: String,
}
