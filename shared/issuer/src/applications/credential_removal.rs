//! Removing an application's secret or key, and revoking the tokens obtained with it, in one transaction.

use super::{caller::Caller, error::ApplicationError, keys, secrets, store::Applications};
use base::{ClientSecretId, Time, audit::Notes};
use problem::Removed;
use storage::{Once, Written};

/// The credential to remove, as the caller identifies it.
#[derive(Debug, Clone, Copy)]
pub enum CredentialName<'a> {
    /// A secret's identifier.
    Secret(&'a str),
    /// A key's `kid`.
    Key(&'a str),
}

/// A request to remove a credential.
#[derive(Clone, Copy)]
pub struct CredentialRemoval<'a> {
    /// The credential.
    pub credential: CredentialName<'a>,
    /// Whether the caller confirms that it may lose its own access.
    pub confirmed: bool,
    /// The request's idempotency key.
    pub once: Once<'a>,
}

/// The result of removing a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialRemoved {
    /// The application has no live secret or key left, so it gets no more tokens.
    pub was_the_last: bool,
}

impl CredentialName<'_> {
    /// The name in the path.
    pub const fn as_str(&self) -> &str {
        let (Self::Secret(name) | Self::Key(name)) = self;
        name
    }
}

impl CredentialRemoved {
    /// A sentence about the consequences.
    pub const fn message(self) -> &'static str {
        if self.was_the_last {
            "The credential is removed, and tokens issued with it stop working within a minute. It was the \
             application's last credential: without a new secret or key, the application gets no tokens."
        } else {
            "The credential is removed, and tokens issued with it stop working within a minute."
        }
    }
}

impl Applications {
    /// Removes an application's secret or key and revokes the tokens obtained with it.
    pub async fn remove_credential(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        CredentialRemoval { credential, confirmed, once }: CredentialRemoval<'_>,
        notes: &Notes,
        now: Time,
    ) -> Result<CredentialRemoved, ApplicationError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        let (name, left) = match credential {
            CredentialName::Secret(id) => {
                (id, ClientSecretId::parse(id).and_then(|id| secrets::without(&application, &id, now)))
            }
            CredentialName::Key(kid) => (kid, keys::without(&application, kid)),
        };
        let left = left.ok_or_else(|| ApplicationError::CredentialNotFound(name.to_owned()))?;
        notes.subject(&format!("{}/{name}", application.client_id));
        if left.will_give_no_tokens() {
            caller.check_confirmation(&application, confirmed)?;
        }
        let removed = CredentialRemoved { was_the_last: left.gives_no_tokens(now) };
        let record = once.record(&Removed::new(name, removed.message()), &name, now).await?;
        match self.leave(&application, &left, record, now).await? {
            Written::Done(()) => Ok(removed),
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await),
        }
    }
}
