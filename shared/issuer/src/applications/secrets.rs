//! An application's secrets, and their rotation without a gap: the new secret is accepted at once, and the previous one
//! for the overlap that the owner chooses.
//!
//! An ended secret is kept while tokens obtained with it may be valid, so that its removal can revoke them. The number
//! of kept secrets is limited: beyond it, the secret that ended first is removed, together with its tokens.

use std::{cmp::Reverse, time::Duration};

use serde::Serialize;

use super::{
    application::{Application, RemainingCredentials},
    caller::Caller,
    client_secret::{self, ClientSecret, MAX_SECRETS},
    error::ApplicationError,
    register::Registration,
    view::exposed,
};
use base::{ClientSecretId, Time, audit::Notes};
use storage::{Answered, IdempotentRequest, SecretText, Written};

/// How many ended secrets are kept when a new one is added. The limit keeps the application's item small.
const MAX_ENDED: usize = 6;

/// A new secret, which is shown only in the response to this request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedSecret {
    /// The application.
    pub client_id: String,
    /// The client identifier again, under the name that published clients read.
    pub id: String,
    /// The secret's identifier.
    pub secret_id: ClientSecretId,
    /// The secret.
    #[serde(serialize_with = "exposed")]
    pub client_secret: SecretText,
    /// The secret again, under the name that published clients read.
    #[serde(serialize_with = "exposed")]
    pub secret_key: SecretText,
    /// When the previous secret ends, if there is one.
    #[serde(rename = "previousSecretExpiresDate", skip_serializing_if = "Option::is_none")]
    pub previous_ends: Option<Time>,
}

/// An application's credentials, with a new secret.
#[derive(Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The credentials, the new secret first.
    pub left: RemainingCredentials,
    /// When the previous secret ends, if there is one.
    pub previous_ends: Option<Time>,
}

impl Registration {
    /// Adds a secret to an application, once per idempotency key. The previous secret is accepted during the overlap.
    pub async fn add_secret_once(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        overlap: Duration,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<Answered<AddedSecret>, ApplicationError> {
        // A repeated request also needs the rights, since its response shows the secret.
        let application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        let work = self.with_secret(caller, application, overlap, once, notes, now);
        let added = self.answers.once(once, now, work).await?;
        notes.subject(&format!("{client_id}/{}", added.id(|added| added.secret_id.to_string())));
        Ok(added)
    }

    /// Adds a secret to an application.
    pub async fn add_secret(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        overlap: Duration,
        notes: &Notes,
        now: Time,
    ) -> Result<AddedSecret, ApplicationError> {
        let application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        self.with_secret(caller, application, overlap, None, notes, now).await
    }

    async fn with_secret(
        &self,
        caller: &Caller<'_>,
        application: Application,
        overlap: Duration,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<AddedSecret, ApplicationError> {
        let client_secret = client_secret::fresh(&*self.random);
        let new = ClientSecret::of(&client_secret, &*self.pepper.get().await?, now, &*self.random);
        let secret_id = new.id.clone();
        notes.subject(&format!("{}/{secret_id}", application.client_id));
        let Rotated { left, previous_ends } = with_new(&application, new, overlap, now)?;
        caller.spend_credentials(&self.allowances, 1, now).await?;
        let added = AddedSecret {
            client_id: application.client_id.clone(),
            id: application.client_id.clone(),
            secret_id,
            secret_key: client_secret.clone(),
            client_secret,
            previous_ends,
        };
        let record = self.answers.record(once, &added, &added.secret_id, now).await?;
        match self.applications.leave(&application, &left, record, now).await? {
            Written::Lost(_) => Err(self.applications.lost(caller, &application.client_id, notes).await),
            Written::Done(()) => Ok(added),
        }
    }
}

/// The credentials with a new secret at the front. The previous one ends after the overlap, or at its own end if that
/// is earlier. Ended secrets stay while their tokens may be valid. If there are too many, those that ended first are
/// removed, together with their tokens, since an unknown secret could not be removed later.
pub fn with_new(
    application: &Application,
    new: ClientSecret,
    overlap: Duration,
    now: Time,
) -> Result<Rotated, ApplicationError> {
    let (live, mut ended): (Vec<_>, Vec<_>) =
        application.kept_secrets(now).cloned().partition(|secret| secret.is_live(now));
    if live.len() >= MAX_SECRETS {
        let ends = live.iter().filter_map(|secret| secret.expires_date).min();
        return Err(ApplicationError::TooManySecrets(ends.unwrap_or(now))); // the older of two always has an end
    }
    let end = now + overlap;
    let previous = live.into_iter().map(|secret| {
        let end = secret.expires_date.map_or(end, |before| before.min(end));
        ClientSecret { expires_date: Some(end), ..secret }
    });
    let mut secrets: Vec<_> = [new].into_iter().chain(previous).collect();
    let previous_ends = secrets.get(1).and_then(|previous| previous.expires_date);
    ended.sort_by_key(|secret| Reverse(secret.expires_date));
    let gone = ended.split_off(ended.len().min(MAX_ENDED)).into_iter().map(|secret| secret.id.to_string()).collect();
    secrets.extend(ended);
    Ok(Rotated { left: RemainingCredentials { secrets, keys: application.keys.clone(), gone }, previous_ends })
}

/// The credentials that remain without this secret; `None` if the application has no such secret. An ended secret can
/// also be removed, since its tokens may still be valid.
pub fn without(application: &Application, id: &ClientSecretId, now: Time) -> Option<RemainingCredentials> {
    let (mut gone, left): (Vec<_>, Vec<_>) =
        application.kept_secrets(now).cloned().partition(|secret| secret.id == *id);
    let gone = vec![gone.pop()?.id.to_string()];
    Some(RemainingCredentials { secrets: left, keys: application.keys.clone(), gone })
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
