//! The public keys that vouch for tokens: a JWK Set (RFC 7517) in the table, so that no function needs a secret to
//! verify, kept in memory and read again when it is old or when a token names a key that is not in it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use crate::{
    clock::SharedClock,
    refreshed::{Refreshed, Source},
    table::{Table, TableError},
};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};

/// How soon it may be read again for the sake of an unknown key: forged tokens must not become load on the table.
/// A new key is published long before it signs, so no valid token meets this pause.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(5);

/// One public key, as it is published (RFC 7518 §6.2).
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Jwk", into = "Jwk")]
pub struct PublicKey {
    jwk: Jwk,
    public: DecodingKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    #[serde(rename = "use")]
    usage: String,
    alg: String,
    kid: String,
    x: String,
    y: String,
}

impl PublicKey {
    /// A key on the curve P-256; the coordinates are in URL-safe base 64.
    pub fn es256(kid: String, x: String, y: String) -> Result<Self, jsonwebtoken::errors::Error> {
        let [kty, crv, usage, alg] = ["EC", "P-256", "sig", "ES256"].map(str::to_owned);
        Jwk { kty, crv, usage, alg, kid, x, y }.try_into()
    }

    /// The key's name.
    pub fn kid(&self) -> &str {
        &self.jwk.kid
    }

    /// The only algorithm that may be used with the key.
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }

    /// The algorithm's name (RFC 7518 §3.1).
    pub fn algorithm_name(&self) -> &str {
        &self.jwk.alg
    }

    pub(super) fn public(&self) -> &DecodingKey {
        &self.public
    }
}

impl TryFrom<Jwk> for PublicKey {
    type Error = jsonwebtoken::errors::Error;

    fn try_from(jwk: Jwk) -> Result<Self, Self::Error> {
        let public = DecodingKey::from_ec_components(&jwk.x, &jwk.y)?;
        Ok(Self { jwk, public })
    }
}

impl From<PublicKey> for Jwk {
    fn from(key: PublicKey) -> Self {
        key.jwk
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.jwk.fmt(f)
    }
}

/// The published keys: what `/oauth2/jwks` answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct JsonWebKeys {
    /// In the order of their publication.
    pub keys: Vec<PublicKey>,
}

/// The keys, by name.
#[derive(Debug, Default)]
pub struct KeySet(HashMap<String, PublicKey>);

impl KeySet {
    /// These keys.
    pub fn of(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().map(|key| (key.kid().to_owned(), key)).collect())
    }

    /// The key of this name.
    pub fn get(&self, kid: &str) -> Option<&PublicKey> {
        self.0.get(kid)
    }
}

/// The item in the table.
#[derive(Debug, Serialize, Deserialize)]
struct KeysItem {
    pk: String,
    sk: String,
    keys: Vec<PublicKey>,
}

/// The published keys in the table.
#[derive(Debug, Clone)]
pub struct PublishedKeys(Table);

impl PublishedKeys {
    /// The keys in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Reads the set; an empty one when nothing was ever published.
    pub async fn read(&self) -> Result<JsonWebKeys, TableError> {
        let item: Option<KeysItem> =
            self.0.get(("KEYS".into(), "JWKS".into()), false, "reading the published keys").await?;
        Ok(JsonWebKeys { keys: item.map(|item| item.keys).unwrap_or_default() })
    }

    /// Replaces the set.
    pub async fn publish(&self, keys: JsonWebKeys) -> Result<(), TableError> {
        let item = KeysItem { pk: "KEYS".into(), sk: "JWKS".into(), keys: keys.keys };
        self.0.put(&item, "publishing the keys").await
    }
}

impl Source for PublishedKeys {
    type Value = KeySet;
    type Error = TableError;

    async fn load(&self) -> Result<KeySet, TableError> {
        self.read().await.map(|published| KeySet::of(published.keys))
    }
}

/// The keys in memory.
pub struct KeyCache(Refreshed<PublishedKeys>);

impl KeyCache {
    /// An empty cache, which the first token fills.
    pub fn new(published: PublishedKeys, clock: SharedClock) -> Self {
        Self(Refreshed::new(published, clock))
    }

    /// Reads the keys before the first request, which also opens the connection to the table.
    pub async fn warm_up(&self) {
        self.0.warm_up().await;
    }

    /// The keys to check a token with that names this one. A known key keeps working on old knowledge while the table is
    /// out of reach.
    pub async fn for_key(&self, kid: &str) -> Result<Arc<KeySet>, TableError> {
        let keys = self.0.get().await?;
        if keys.get(kid).is_some() { Ok(keys) } else { self.0.younger_than(UNKNOWN_KEY_PAUSE).await }
    }
}
