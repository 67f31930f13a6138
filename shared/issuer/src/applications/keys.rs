//! The public keys of an application: it proves with an assertion that it has the private half (RFC
//! 7523).

use serde_json::Value;

use super::{
    application::Application,
    caller::{Caller, ExceedsCaller},
    client_key::{ClientKey, MAX_KEYS},
    credential_allowance::{self, AllowanceError},
    remaining_credentials::RemainingCredentials,
    show::{Conflict, FindError},
    store::Applications,
};
use base::{Time, audit::Notes};
use problem::{JsonBody, Problem, ProblemKind};
use storage::{Allowances, TableError, Written};

/// Adds keys to applications.
pub struct KeyAddition {
    /// Where applications are kept.
    pub applications: Applications,
    /// Counts credentials by the hour.
    pub allowances: Allowances,
}

/// Why a key was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddKeyError {
    /// The entity has no such application, or it could not be read.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The application can do more than the caller.
    #[error(transparent)]
    Exceeds(#[from] ExceedsCaller),
    /// The application has a key of this name.
    #[error("the application has a key of the name `{0}`")]
    Exists(String),
    /// The application has as many keys as it may have.
    #[error("the application has {MAX_KEYS} keys")]
    TooMany,
    /// Too many were made in this hour.
    #[error(transparent)]
    Allowance(#[from] AllowanceError),
    /// Another change of the application came first.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl KeyAddition {
    /// Adds a key to an application, and returns the application with it.
    pub async fn add(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        key: ClientKey,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, AddKeyError> {
        let mut application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        notes.subject(&format!("{}/{}", application.client_id, key.kid));
        if application.keys.iter().any(|known| known.kid == key.kid) {
            return Err(AddKeyError::Exists(key.kid));
        }
        if application.keys.len() >= MAX_KEYS {
            return Err(AddKeyError::TooMany);
        }
        credential_allowance::spend(&self.allowances, caller, 1, now).await?;
        let keys = [application.keys.as_slice(), &[key]].concat();
        let left = RemainingCredentials { secrets: application.secrets.clone(), keys, gone: Vec::new() };
        match self.applications.leave(&application, &left, now).await? {
            Written::Lost(_) => Err(self.applications.lost(caller, client_id, notes).await.into()),
            Written::Done(()) => {
                (application.keys, application.last_update) = (left.keys, now);
                application.version += 1;
                Ok(application)
            }
        }
    }
}

/// The credentials that remain without the key of this name; `None` when the application has no
/// such key.
pub fn without(application: &Application, kid: &str) -> Option<RemainingCredentials> {
    let (mut gone, left): (Vec<_>, Vec<_>) = application.keys.iter().cloned().partition(|key| key.kid == kid);
    let gone = vec![gone.pop()?.thumbprint()];
    Some(RemainingCredentials { secrets: application.secrets.clone(), keys: left, gone })
}

/// Reads the key that is to be added.
pub fn read(body: &[u8], now: Time) -> Result<ClientKey, Problem> {
    let mut body = JsonBody::read(body)?;
    let jwk = body.required::<Value>("publicKey", "a public key, a JSON Web Key");
    let key = jwk.and_then(|jwk| body.violations.note("publicKey", ClientKey::parse(&jwk, now)));
    body.finish()?;
    key.ok_or_else(|| Problem::internal("a key is missing without a violation"))
}

impl From<AddKeyError> for Problem {
    fn from(error: AddKeyError) -> Self {
        match error {
            AddKeyError::Find(error) => error.into(),
            AddKeyError::Exceeds(error) => error.into(),
            AddKeyError::Exists(kid) => {
                let detail = format!(
                    "The application has a key with the `kid` `{kid}`; remove it first, or give the new one another."
                );
                Self::new(ProblemKind::KeyExists, detail).with_property("kid", kid)
            }
            AddKeyError::TooMany => {
                let detail = format!("An application may have {MAX_KEYS} public keys; remove one first.");
                Self::new(ProblemKind::KeyLimit, detail).with_property("limit", MAX_KEYS)
            }
            AddKeyError::Allowance(error) => error.into(),
            AddKeyError::Conflict(error) => error.into(),
            AddKeyError::Table(error) => error.into(),
        }
    }
}
