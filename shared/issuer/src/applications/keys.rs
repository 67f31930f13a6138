//! The public keys of an application, which sign in its stead: it proves with an assertion that it has the private half
//! (RFC 7523).

use serde_json::Value;

use super::{
    Application, Applications, ClientKey, credential_removal::Left, grants, register::spend_on_credentials,
    store::Changed,
};
use base::clock::{SharedClock, Time};
use gate::{EntityCall, Reply};
use problem::{JsonBody, Problem};
use storage::allowance::Allowances;

/// How many keys an application may have.
pub const MAX_KEYS: usize = 5;

/// Everything that adding keys needs.
pub struct Keys {
    /// Where applications are kept.
    pub applications: Applications,
    /// How many may be made.
    pub allowances: Allowances,
    /// The clock.
    pub clock: SharedClock,
}

impl Keys {
    /// Answers a request for a further key.
    pub async fn add(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let now = self.clock.now();
        let key = public_key(&call.body, now)?;
        let mut application = self.applications.of_path(call).await?;
        grants::check_of(call, &application)?;
        call.notes.subject(&format!("{}/{}", application.client_id, key.kid));
        if application.keys.iter().any(|known| known.kid == key.kid) {
            return Err(Problem::key_exists(&key.kid));
        }
        if application.keys.len() >= MAX_KEYS {
            return Err(Problem::too_many_keys(MAX_KEYS));
        }
        spend_on_credentials(&self.allowances, &call.entity, 1, now).await?;
        let keys = [application.keys.as_slice(), &[key]].concat();
        match self.applications.change_credentials(&application, &application.secrets, &keys, now).await? {
            Changed::Lost => Err(self.applications.lost(call).await),
            Changed::Yes => {
                (application.keys, application.last_update) = (keys, now);
                application.version += 1;
                Reply::json(http::StatusCode::CREATED, &application.view(now, None))
            }
        }
    }
}

/// The credentials that remain without the key of this name; `None` when the application has no such key.
pub fn without(application: &Application, kid: &str) -> Option<Left> {
    let (mut gone, left): (Vec<_>, Vec<_>) = application.keys.iter().cloned().partition(|key| key.kid == kid);
    let gone = vec![gone.pop()?.thumbprint()];
    Some(Left { secrets: application.secrets.clone(), keys: left, gone })
}

fn public_key(body: &[u8], now: Time) -> Result<ClientKey, Problem> {
    let mut body = JsonBody::read(body)?;
    let jwk = body.required::<Value>("publicKey", "a public key, a JSON Web Key");
    let key = jwk.and_then(|jwk| body.violations.note("publicKey", ClientKey::parse(&jwk, now)));
    body.finish()?;
    key.ok_or_else(|| Problem::internal("a key is missing without a violation"))
}
