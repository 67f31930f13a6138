//! The public keys of an application: it proves with an assertion that it has the private half (RFC
//! 7523).

use serde_json::Value;

use super::{
    application::Application,
    caller::Caller,
    client_key::{ClientKey, MAX_KEYS},
    credential_allowance,
    error::ApplicationError,
    remaining_credentials::RemainingCredentials,
    store::Applications,
};
use base::{Time, audit::Notes};
use problem::{JsonBody, Problem};
use storage::{Allowances, Written};

/// Adds keys to applications.
pub struct KeyAddition {
    /// Where applications are kept.
    pub applications: Applications,
    /// Counts credentials by the hour.
    pub allowances: Allowances,
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
    ) -> Result<Application, ApplicationError> {
        let mut application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        notes.subject(&format!("{}/{}", application.client_id, key.kid));
        if application.keys.iter().any(|known| known.kid == key.kid) {
            return Err(ApplicationError::KeyExists(key.kid));
        }
        if application.keys.len() >= MAX_KEYS {
            return Err(ApplicationError::TooManyKeys);
        }
        credential_allowance::spend(&self.allowances, caller, 1, now).await?;
        let keys = [application.keys.as_slice(), &[key]].concat();
        let left = RemainingCredentials { secrets: application.secrets.clone(), keys, gone: Vec::new() };
        match self.applications.leave(&application, &left, now).await? {
            Written::Lost(_) => Err(self.applications.lost(caller, client_id, notes).await),
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
