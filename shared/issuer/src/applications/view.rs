//! Applications as their owners see them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{application::Application, client_key::ClientKey, client_secret::ClientSecret};
use auth::{Entities, OwnerView};
use base::{ClientSecretId, Time};
use problem::Metadata;
use storage::SecretText;

/// Serializes a secret as text, for the one response that shows it.
pub fn exposed<S: Serializer>(secret: &SecretText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// An application on the wire. Not `Debug`, since it may contain a secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationView<'a> {
    client_id: &'a str,
    /// The client identifier again, under the name that published clients read.
    id: &'a str,
    /// Shown once, in the response to the creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<&'a str>,
    /// The secret again, under the name that published clients read.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key: Option<&'a str>,
    created_date: Time,
    last_update: Time,
    managing_entities: &'a Entities,
    may_publish: bool,
    metadata: &'a Metadata,
    name: &'a str,
    #[serde(flatten)]
    owner: Option<OwnerView>,
    public_keys: Vec<KeyView<'a>>,
    scopes: Vec<&'static str>,
    secrets: Vec<SecretView<'a>>,
    version: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SecretView<'a> {
    id: &'a ClientSecretId,
    created_date: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_date: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_date: Option<&'a str>,
}

/// A key, as its application's owner sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyView<'a> {
    #[serde(flatten)]
    jwk: Map<String, Value>,
    created_date: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_date: Option<&'a str>,
}

impl Application {
    /// The application as its owner sees it. Lists secrets by their identifiers, including recently ended ones, which
    /// can be removed with their tokens. A secret's text is shown once.
    pub fn view<'a>(&'a self, now: Time, client_secret: Option<&'a SecretText>) -> ApplicationView<'a> {
        ApplicationView {
            client_id: &self.client_id,
            id: &self.client_id,
            client_secret: client_secret.map(SecretText::expose),
            secret_key: client_secret.map(SecretText::expose),
            created_date: self.created_date,
            last_update: self.last_update,
            managing_entities: &self.entities,
            may_publish: self.may_publish,
            metadata: &self.metadata,
            name: &self.name,
            owner: self.owner.as_ref().map(OwnerView::of),
            public_keys: self.keys.iter().map(|key| KeyView::of(key, &self.last_used)).collect(),
            scopes: self.scopes.iter().map(|scope| scope.as_str()).collect(),
            secrets: self.kept_secrets(now).map(|secret| SecretView::of(secret, &self.last_used)).collect(),
            version: self.version,
        }
    }
}

impl<'a> SecretView<'a> {
    fn of(secret: &'a ClientSecret, last_used: &'a BTreeMap<String, String>) -> Self {
        Self {
            id: &secret.id,
            created_date: secret.created_date,
            expires_date: secret.expires_date,
            last_used_date: last_used.get(secret.id.as_str()).map(String::as_str),
        }
    }
}

impl<'a> KeyView<'a> {
    /// A key of an application whose credentials were last used on these days.
    pub fn of(key: &ClientKey, last_used: &'a BTreeMap<String, String>) -> Self {
        Self {
            jwk: key.to_jwk(),
            created_date: key.created_date,
            last_used_date: last_used.get(&key.kid).map(String::as_str),
        }
    }
}
