//! An application's public keys, which verify its assertions (RFC 7523).

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    application::{Application, RemainingCredentials},
    caller::Caller,
    client_key::{ClientKey, MAX_KEYS},
    error::ApplicationError,
    store::Applications,
    view::KeyView,
};
use base::{Time, audit::Notes};
use problem::{JsonBody, Problem, Rule};
use storage::{Allowances, Answered, IdempotencyStore, IdempotentRequest, Written};

/// Adds keys to applications.
pub struct KeyAddition {
    /// The stored applications.
    pub applications: Applications,
    /// Limits the number of credentials per hour.
    pub allowances: Allowances,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
}

/// A new key.
#[derive(Debug)]
pub struct AddedKey(ClientKey);

/// Serializes the key as its application's owner sees it.
impl Serialize for AddedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        KeyView::of(&self.0, &BTreeMap::new()).serialize(serializer)
    }
}

impl KeyAddition {
    /// Adds a key to an application, once per idempotency key, and returns the key.
    pub async fn add(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        key: ClientKey,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<Answered<AddedKey>, ApplicationError> {
        let application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        notes.subject(&format!("{client_id}/{}", key.kid));
        self.answers.once(once, now, self.with_key(caller, application, key, once, notes, now)).await
    }

    async fn with_key(
        &self,
        caller: &Caller<'_>,
        read: Application,
        key: ClientKey,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<AddedKey, ApplicationError> {
        if read.keys.iter().any(|known| known.kid == key.kid) {
            return Err(ApplicationError::KeyExists(key.kid));
        }
        if read.keys.len() >= MAX_KEYS {
            return Err(ApplicationError::TooManyKeys);
        }
        caller.spend_credentials(&self.allowances, 1, now).await?;
        let keys = [read.keys.as_slice(), std::slice::from_ref(&key)].concat();
        let left = RemainingCredentials { secrets: read.secrets.clone(), keys, gone: Vec::new() };
        let added = AddedKey(key);
        let record = self.answers.record(once, &added, &added.0.kid, now).await?;
        match self.applications.leave(&read, &left, record, now).await? {
            Written::Lost(_) => Err(self.applications.lost(caller, &read.client_id, notes).await),
            Written::Done(()) => Ok(added),
        }
    }
}

/// The credentials that remain after removing the key with this name; `None` if the application has no such key.
pub fn without(application: &Application, kid: &str) -> Option<RemainingCredentials> {
    let (mut gone, left): (Vec<_>, Vec<_>) = application.keys.iter().cloned().partition(|key| key.kid == kid);
    let gone = vec![gone.pop()?.thumbprint()];
    Some(RemainingCredentials { secrets: application.secrets.clone(), keys: left, gone })
}

/// Reads the key to add from a request's body.
pub fn read(body: &[u8], now: Time) -> Result<ClientKey, Problem> {
    let mut body = JsonBody::read(body)?;
    let jwk = body.required::<Value>("publicKey", "a public key, a JSON Web Key");
    let key = jwk.and_then(|jwk| body.violations.note("publicKey", Rule::InvalidFormat, ClientKey::parse(&jwk, now)));
    body.finish()?;
    key.ok_or_else(|| Problem::internal("a key is missing without a violation"))
}

#[cfg(test)]
mod tests {
    use problem::Violation;

    use super::*;

    #[test]
    fn duplicate_members_of_a_key_are_refused_with_their_places() {
        let body = br#"{"publicKey":{"kty":"OKP","crv":"Ed25519","crv":"P-256","x":"","alg":null}}"#;
        let violations = read(body, Time::from_millis(0)).expect_err("refused").violations();
        let names: Vec<_> = violations.iter().map(Violation::name).collect();
        assert_eq!(names, ["publicKey.crv"]);
    }
}
