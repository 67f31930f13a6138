//! The public keys that verify tokens: a JWK Set (RFC 7517) in the table, so that a function needs no secret to verify.
//! The set is cached in memory, and read again when it is old or a token's key is missing from it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{public_key::PublicKey, signing::SigningKeys};
use base::refreshed::{Reading, Refreshed, Source};
use base::{SharedClock, Time};
use storage::table::{Put, Table, TableError, Written, is, is_new};

/// Minimum time between two reads caused by unknown keys, so that forged tokens cannot put load on the table. A new key
/// is published long before it signs, so valid tokens are not affected.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(5);

/// How many times a change is attempted if concurrent changes keep winning. Keys change once a month.
const CHANGES: u32 = 10;

/// How long a revoked key is remembered: much longer than any function uses a set that it has read.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The response of `/oauth2/jwks`.
#[derive(Debug, Clone, Serialize)]
pub struct JsonWebKeys {
    /// The keys, in order of publication.
    pub keys: Vec<PublicKey>,
}

/// A key in the published set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublishedKey {
    /// The key.
    #[serde(flatten)]
    pub key: PublicKey,
    /// When the key was published.
    #[serde(rename = "publishedDate")]
    pub published: Time,
    /// When the key stops verifying tokens; `None` means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl PublishedKey {
    fn lives(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// A revoked key, never to be published again, and how long its record is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Tombstone {
    kid: String,
    until: Time,
}

/// A key cannot be published because it was revoked in an emergency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key {0} was revoked and cannot be published again")]
pub struct RevokedKey(String);

/// The published set as read from the table, to be changed and written back.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// The keys, in order of publication.
    pub keys: Vec<PublishedKey>,
    /// Recently revoked keys. They are stored in the same item, so that a concurrent write cannot restore one.
    revoked: Vec<Tombstone>,
    /// The number of changes; 0 before the first.
    version: u64,
}

impl Published {
    /// The keys that verify tokens at this time, in their published form.
    pub fn alive(&self, now: Time) -> JsonWebKeys {
        let alive = self.keys.iter().filter(|published| published.lives(now));
        JsonWebKeys { keys: alive.map(|published| published.key.clone()).collect() }
    }

    /// The key with this name, if it still verifies tokens.
    pub fn get(&self, kid: &str, now: Time) -> Option<&PublishedKey> {
        self.keys.iter().find(|published| published.key.kid() == kid && published.lives(now))
    }

    /// Makes the set match a deployment's keys: adds both, makes every other key end when its last token expires, and
    /// removes keys that have ended. `lifetime` is the lifetime of tokens, in seconds. Changes nothing if one of the
    /// two keys was revoked.
    pub fn settle(&mut self, keys: &SigningKeys, lifetime: u32, now: Time) -> Result<(), RevokedKey> {
        let mine = [keys.current.kid(), keys.next.kid()];
        mine.iter().try_for_each(|kid| self.check(kid))?;
        self.prune(now);
        self.add(keys.current.public_key(), now)?;
        self.add(keys.next.public_key(), now)?;
        self.end_others(&mine, last_token_of_a_retired_key(lifetime, now));
        Ok(())
    }

    /// Publishes a key without an end, unless it was revoked. If the key is already published, its date does not
    /// change.
    pub fn add(&mut self, key: PublicKey, now: Time) -> Result<(), RevokedKey> {
        self.check(key.kid())?;
        match self.keys.iter_mut().find(|published| published.key.kid() == key.kid()) {
            Some(published) => published.until = None,
            None => self.keys.push(PublishedKey { key, published: now, until: None }),
        }
        Ok(())
    }

    fn check(&self, kid: &str) -> Result<(), RevokedKey> {
        if self.revoked.iter().any(|revoked| revoked.kid == kid) { Err(RevokedKey(kid.to_owned())) } else { Ok(()) }
    }

    /// Sets an end for every key that has none, except `staying`.
    fn end_others(&mut self, staying: &[&str], until: Time) {
        for published in &mut self.keys {
            if !staying.contains(&published.key.kid()) {
                published.until.get_or_insert(until);
            }
        }
    }

    /// Removes keys that have ended, and records of keys that were revoked long ago.
    fn prune(&mut self, now: Time) {
        self.keys.retain(|published| published.lives(now));
        self.revoked.retain(|revoked| now < revoked.until);
    }

    /// Revokes `others` and every published key except the two in `staying`. No revoked key is published again. The two
    /// are published without an end, even if a rotation unaware of the emergency gave them one.
    pub fn revoke_others(&mut self, staying: &SigningKeys, others: &[String], now: Time) -> Result<(), RevokedKey> {
        let kids = [staying.current.kid(), staying.next.kid()];
        kids.iter().try_for_each(|kid| self.check(kid))?;
        self.prune(now);
        let removed = self.keys.extract_if(.., |published| !kids.contains(&published.key.kid()));
        let mut revoked: Vec<_> = removed.map(|published| published.key.kid().to_owned()).collect();
        revoked.extend(others.iter().filter(|kid| !kids.contains(&kid.as_str())).cloned());
        for kid in revoked {
            if self.check(&kid).is_ok() {
                self.revoked.push(Tombstone { kid, until: now + REMEMBERED });
            }
        }
        self.add(staying.current.public_key(), now)?;
        self.add(staying.next.public_key(), now)
    }
}

/// When the last token signed by a key that is replaced at `now` expires. Warm functions sign with the key for five
/// more minutes; one more minute covers clock differences and late responses.
pub fn last_token_of_a_retired_key(lifetime: u32, now: Time) -> Time {
    now + Duration::from_secs(6 * 60 + u64::from(lifetime))
}

/// Keys by name.
#[derive(Debug, Default)]
pub struct KeySet(HashMap<String, PublishedKey>);

impl KeySet {
    /// A set of these keys, none of which expires.
    pub fn of(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let published = Time::from_millis(0);
        Self::published(keys.into_iter().map(|key| PublishedKey { key, published, until: None }))
    }

    fn stored(item: Option<KeysItem>) -> Self {
        Self::published(item.into_iter().flat_map(|item| item.keys))
    }

    fn published(keys: impl IntoIterator<Item = PublishedKey>) -> Self {
        Self(keys.into_iter().map(|published| (published.key.kid().to_owned(), published)).collect())
    }

    /// The key with this name, unless it has ended.
    pub fn get(&self, kid: &str, now: Time) -> Option<&PublicKey> {
        self.0.get(kid).filter(|published| published.lives(now)).map(|published| &published.key)
    }

    /// Whether the set has a key with this name, ended or not.
    pub fn knows(&self, kid: &str) -> bool {
        self.0.contains_key(kid)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct KeysItem {
    pk: String,
    sk: String,
    keys: Vec<PublishedKey>,
    revoked: Vec<Tombstone>,
    version: u64,
}

impl From<KeysItem> for Published {
    fn from(KeysItem { keys, revoked, version, .. }: KeysItem) -> Self {
        Self { keys, revoked, version }
    }
}

const PK: &str = "KEYS";
const SK: &str = "JWKS";
const READING: &str = "reading the published keys";
const PUBLISHING: &str = "publishing the keys";

/// The published keys in the table.
#[derive(Debug, Clone)]
pub struct PublishedKeys(Table);

impl PublishedKeys {
    /// Creates a store of the keys in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Reads the set. It is empty if nothing was published.
    pub async fn read(&self) -> Result<Published, TableError> {
        // Strongly consistent, so that a change sees every earlier change.
        let item: Option<KeysItem> = self.0.get((PK.into(), SK.into()), true, READING).await?;
        Ok(item.map(Published::from).unwrap_or_default())
    }

    /// Reads the keys in a batch with other concurrent reads. The read is eventually consistent.
    async fn read_eventual(&self) -> Result<KeySet, TableError> {
        Ok(KeySet::stored(self.0.read_eventual((PK.into(), SK.into()), READING).await?))
    }

    /// Changes the set if it has not changed since it was read, so that no change undoes another. If a concurrent
    /// change won, reads again and calls `change` again. Returns the result of the last call.
    pub async fn change<C>(&self, change: impl Fn(&mut Published) -> C) -> Result<C, TableError> {
        for _ in 0..CHANGES {
            let mut published = self.read().await?;
            let result = change(&mut published);
            if self.replace(published).await?.is_done() {
                return Ok(result);
            }
        }
        Err(TableError::code(PUBLISHING, "TransactionConflict"))
    }

    /// Writes the set if it has not changed since it was read.
    async fn replace(&self, published: Published) -> Result<Written<()>, TableError> {
        let Published { keys, revoked, version: before } = published;
        let item = KeysItem { pk: PK.into(), sk: SK.into(), keys, revoked, version: before + 1 };
        let unchanged = if before == 0 { is_new() } else { is("version", before) };
        self.0.write(Put::item(&item, PUBLISHING)?.only_if(unchanged), PUBLISHING).await
    }
}

impl Source for PublishedKeys {
    type Value = KeySet;
    type Error = TableError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async { Ok(KeySet::stored(self.0.read((PK.into(), SK.into()), READING).await?)) })
    }
}

/// The keys in memory.
pub struct KeyCache(Refreshed<PublishedKeys>);

impl KeyCache {
    /// An empty cache, which the first token fills.
    pub fn new(published: PublishedKeys, clock: SharedClock) -> Self {
        Self(Refreshed::new(published, clock))
    }

    /// Reads the keys before the first request, in a batch with other concurrent reads. A key that was published a
    /// moment ago may be missing; the first token with that key makes the cache read again.
    pub async fn warm_up(&self) {
        self.0.warm_up_by(PublishedKeys::read_eventual).await;
    }

    /// The keys for a token whose key is `kid`. While the table is unreachable, a known key is served from memory and
    /// an unknown key is an error.
    pub async fn for_key(&self, kid: &str) -> Result<Arc<KeySet>, TableError> {
        self.0.suitable(UNKNOWN_KEY_PAUSE, |keys| keys.knows(kid)).await
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
