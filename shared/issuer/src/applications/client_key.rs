//! The public keys that verify an application's assertions (RFC 7523). They are JSON Web Keys (RFC 7517), accepted only
//! if they can verify an assertion and have no private member.

use std::iter;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::key_material::Material;
use auth::jws;
use base::Time;

/// Members that only a private or a shared key has (RFC 7518 §6.2.2, §6.3.2, §6.4.1).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/// The algorithms that the keys can be used with, by name (RFC 8414 §2). Ed25519 has two names.
pub const ALGORITHMS: [&str; 6] = ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"];
/// The longest name of a key.
const MAX_KID: usize = 128;
/// The prefix of secrets' identifiers. A key's name must not have it.
const SECRET_PREFIX: &str = "sec_";

/// How many keys an application may have.
pub const MAX_KEYS: usize = 5;

/// An application's public key. In the table it is `{kid, jwk, createdDate}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientKey {
    /// The key's name: the given one, or the thumbprint (RFC 7638).
    pub kid: String,
    jwk: Jwk,
    /// When the key was registered.
    pub created_date: Time,
}

/// The key as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Jwk {
    #[serde(flatten)]
    material: Material,
    /// The only algorithm with which the application wants to use the key. `Ed25519` is stored as `EdDSA`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<Algorithm>,
}

impl ClientKey {
    /// Parses a JSON Web Key that an application registers now. Unknown members are ignored and not stored (RFC 7517
    /// §4): certificates, `ext`, and the `exp`, `iat` or `name` that key generators add.
    ///
    /// # Errors
    /// The fault, as the second half of a sentence that begins with the key's path in the request.
    pub fn parse(jwk: &Value, now: Time) -> Result<Self, String> {
        let members = jwk.as_object().ok_or("must be a JSON Web Key: an object")?;
        if let Some(fault) = private_fault(members) {
            return Err(fault);
        }
        if members.contains_key("keys") {
            return Err("must be one JSON Web Key, not a set; send each of its `keys` separately".to_owned());
        }
        let material = Material::parse(members)?;
        let alg = purpose(members, &material)?;
        let kid = match members.get("kid") {
            None => material.thumbprint(),
            Some(kid) => kid.as_str().filter(|kid| is_kid(kid)).map(str::to_owned).ok_or_else(|| {
                format!(
                    "must omit `kid`, or have one of 1 to {MAX_KID} of the characters A–Z, a–z, 0–9, `.`, `_`, `~`, \
                     `:`, `@`, `-` that does not begin with `{SECRET_PREFIX}` and does not consist of dots only"
                )
            })?,
        };
        Ok(Self { kid, jwk: Jwk { material, alg }, created_date: now })
    }

    /// The key as a public JSON Web Key, with its name.
    pub fn to_jwk(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([("kid".to_owned(), Value::from(self.kid.as_str()))]);
        // A struct of strings always serializes to a JSON object.
        if let Ok(Value::Object(jwk)) = serde_json::to_value(&self.jwk) {
            members.extend(jwk);
        }
        members
    }

    /// The hash of the key material (RFC 7638), which does not depend on the key's name.
    pub fn thumbprint(&self) -> String {
        self.jwk.material.thumbprint()
    }

    /// The algorithms that may be used with the key. They depend on the key, never on the assertion's header (RFC 8725
    /// §3.1).
    pub fn algorithms(&self) -> &[Algorithm] {
        self.jwk.alg.as_ref().map_or_else(|| self.jwk.material.algorithms(), std::slice::from_ref)
    }

    /// The key, ready for verification.
    ///
    /// # Errors
    /// If the table contains a key that [`ClientKey::parse`] would refuse.
    pub fn public(&self) -> Result<DecodingKey, jsonwebtoken::errors::Error> {
        self.jwk.material.public()
    }
}

/// The fault in a key or key set that contains a private key's member; `None` if it contains none.
pub(super) fn private_fault(members: &Map<String, Value>) -> Option<String> {
    let in_set = members.get("keys").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let mut keys = iter::once(members).chain(in_set);
    let name = keys.find_map(|key| PRIVATE.into_iter().find(|name| key.contains_key(*name)))?;
    Some(format!(
        "has the private member `{name}`; this private key is now exposed, so send only the public key of a new pair"
    ))
}

/// Whether a string can be a key's name. Names are used in logs and in paths, from which clients remove `.` and `..`
/// (RFC 3986 §5.2.4).
fn is_kid(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
    let dots_alone = text.bytes().all(|byte| byte == b'.');
    (1..=MAX_KID).contains(&text.len()) && text.bytes().all(allowed) && !dots_alone && !text.starts_with(SECRET_PREFIX)
}

/// The algorithm that the key is restricted to, if any. Refuses keys for purposes other than verifying signatures.
fn purpose(members: &Map<String, Value>, material: &Material) -> Result<Option<Algorithm>, String> {
    if members.get("use").is_some_and(|usage| usage != "sig") {
        return Err("must omit `use`, or set it to `sig`".to_owned());
    }
    let verifies = |operations: &Value| operations.as_array().is_some_and(|all| all.contains(&"verify".into()));
    if members.get("key_ops").is_some_and(|operations| !verifies(operations)) {
        return Err("must omit `key_ops`, or list `verify` in it".to_owned());
    }
    let Some(given) = members.get("alg") else { return Ok(None) };
    let possible = material.algorithms();
    let algorithm = |name: &str| jws::algorithm(name).filter(|algorithm| possible.contains(algorithm));
    given.as_str().and_then(algorithm).map(Some).ok_or_else(|| {
        let names = ALGORITHMS.iter().filter(|name| algorithm(name).is_some());
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        format!("must omit `alg`, or set it to {}", names.join(" or "))
    })
}

#[cfg(test)]
#[path = "client_key_tests.rs"]
mod tests;
