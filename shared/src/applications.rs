//! Applications: the clients of the token issuer, and how their secrets are kept.
//!
//! A client secret is 256 random bits, so a fast keyed hash keeps it as well as a slow one would: HMAC-SHA256 under a
//! pepper from Secrets Manager. The table alone is not enough even to test a guess.

use std::sync::LazyLock;

use aws_lc_rs::{constant_time, hmac};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::{
    auth::{entity::Entities, scope::Scopes},
    clock::Time,
    secrets::SecretBytes,
    table::{Item, Table, TableError, read_item, write_item},
};

/// An application, as the issuer needs it.
#[derive(Debug, Clone)]
pub struct Application {
    /// What it may ask for.
    pub scopes: Scopes,
    /// For whom.
    pub entities: Entities,
    secrets: Vec<HashedSecret>,
}

/// What is kept of a client secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HashedSecret {
    /// HMAC-SHA256 in base 64.
    hash: String,
    /// When it stops being accepted; never, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_date: Option<Time>,
}

/// The item in the table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationItem {
    pk: String,
    sk: String,
    client_id: String,
    name: String,
    scopes: String,
    managing_entities: Entities,
    secrets: Vec<HashedSecret>,
    created_date: Time,
}

impl ApplicationItem {
    fn of(client_id: &str, name: &str, application: &Application, secret: HashedSecret, created_date: Time) -> Self {
        let (pk, sk) = key(client_id);
        Self {
            pk,
            sk,
            client_id: client_id.to_owned(),
            name: name.to_owned(),
            scopes: application.scopes.to_string(),
            managing_entities: application.entities.clone(),
            secrets: vec![secret],
            created_date,
        }
    }

    fn read(self) -> Result<Application, TableError> {
        let scopes = Scopes::parse(&self.scopes).map_err(|_| TableError::Missing("a known scope of an application"))?;
        Ok(Application { scopes, entities: self.managing_entities, secrets: self.secrets })
    }
}

/// An application to be written.
#[derive(Debug)]
pub struct NewApplication<'a> {
    /// The client identifier.
    pub client_id: &'a str,
    /// What people call it.
    pub name: &'a str,
    /// What it may ask for.
    pub scopes: Scopes,
    /// For whom.
    pub entities: Entities,
    /// Its one secret.
    pub secret: HashedSecret,
    /// When it was made.
    pub created: Time,
}

/// The applications in the table.
#[derive(Debug, Clone)]
pub struct Applications(Table);

impl HashedSecret {
    /// What is kept of this secret.
    pub fn of(secret: &str, pepper: &SecretBytes) -> Self {
        Self { hash: BASE64_STANDARD.encode(hash(secret, pepper)), expires_date: None }
    }
}

fn hash(secret: &str, pepper: &SecretBytes) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, pepper.expose()), secret.as_bytes())
}

impl Application {
    /// Whether this is one of the application's secrets that are still good. Compares in constant time.
    pub fn accepts(&self, secret: &str, pepper: &SecretBytes, now: Time) -> bool {
        let presented = BASE64_STANDARD.encode(hash(secret, pepper));
        self.secrets
            .iter()
            .filter(|kept| kept.expires_date.is_none_or(|end| now < end))
            .any(|kept| constant_time::verify_slices_are_equal(kept.hash.as_bytes(), presented.as_bytes()).is_ok())
    }
}

impl Applications {
    /// The applications in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The application with this client identifier.
    pub async fn find(&self, client_id: &str) -> Result<Option<Application>, TableError> {
        if client_id.len() > 256 {
            return Ok(None); // longer than any that exists, and perhaps than a key may be
        }
        let item: Option<ApplicationItem> = self.0.get(key(client_id), true, "reading an application").await?;
        item.map(ApplicationItem::read).transpose()
    }

    /// The work that finding nothing would spare: reading an item, hashing and comparing.
    pub fn compare_with_nothing(secret: &str, pepper: &SecretBytes) {
        static NOTHING: LazyLock<Option<Item>> = LazyLock::new(|| {
            let nothing = Application { scopes: Scopes::ALL, entities: Entities::new([]), secrets: Vec::new() };
            let hash = HashedSecret { hash: BASE64_STANDARD.encode([0; 32]), expires_date: None };
            write_item(&ApplicationItem::of("appNobody", "Nobody", &nothing, hash, Time::from_millis(0)), "a decoy")
                .ok()
        });
        let item = NOTHING.clone().and_then(|item| read_item::<ApplicationItem>(item, "a decoy").ok());
        let nobody = item.and_then(|item| item.read().ok());
        std::hint::black_box(nobody.is_some_and(|nobody| nobody.accepts(secret, pepper, Time::from_millis(0))));
    }

    /// Writes an application, whatever was there before.
    pub async fn put(&self, application: NewApplication<'_>) -> Result<(), TableError> {
        let NewApplication { client_id, name, scopes, entities, secret, created } = application;
        let application = Application { scopes, entities, secrets: Vec::new() };
        let item = ApplicationItem::of(client_id, name, &application, secret, created);
        self.0.put(&item, "writing an application").await
    }
}

fn key(client_id: &str) -> (String, String) {
    (format!("APP#{client_id}"), "APP".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_secret_under_the_right_pepper_is_accepted() {
        let (pepper, other) = (SecretBytes::new(vec![1; 32]), SecretBytes::new(vec![2; 32]));
        let end = Time::from_millis(1000);
        let old = HashedSecret { expires_date: Some(end), ..HashedSecret::of("old", &pepper) };
        let application = Application {
            scopes: Scopes::ALL,
            entities: Entities::new([]),
            secrets: vec![old, HashedSecret::of("new", &pepper)],
        };
        let before = Time::from_millis(999);
        assert!(application.accepts("old", &pepper, before) && application.accepts("new", &pepper, before));
        assert!(!application.accepts("old", &pepper, end) && application.accepts("new", &pepper, end));
        assert!(!application.accepts("new", &other, before) && !application.accepts("", &pepper, before));
    }
}
