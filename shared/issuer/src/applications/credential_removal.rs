//! Removing a secret or a key of an application. One transaction removes the credential and revokes
//! the tokens that were got with it.

use super::{
    caller::{Caller, ConfirmationRequired, ExceedsCaller},
    keys, secrets,
    show::{Conflict, FindError},
    store::Applications,
};
use base::{ClientSecretId, Time, audit::Notes};
use problem::{Problem, ProblemKind};
use storage::{TableError, Written};

/// The credential that is to be removed, by the text that the caller names it with.
#[derive(Debug, Clone, Copy)]
pub enum CredentialName<'a> {
    /// A secret's identifier.
    Secret(&'a str),
    /// A key's `kid`.
    Key(&'a str),
}

/// A credential is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialRemoved {
    /// The application has neither a live secret nor a key any more, so that it gets no tokens.
    pub was_the_last: bool,
}

/// Why a credential was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveCredentialError {
    /// The entity has no such application, or it could not be read.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The application can do more than the caller.
    #[error(transparent)]
    Exceeds(#[from] ExceedsCaller),
    /// The application has no such secret or key.
    #[error("the application has no such secret or key")]
    NotFound,
    /// The application would end its own access.
    #[error(transparent)]
    Confirmation(#[from] ConfirmationRequired),
    /// Another change of the application came first.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Applications {
    /// Removes a secret or a key of an application, and revokes the tokens that were got with it.
    pub async fn remove_credential(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        credential: CredentialName<'_>,
        confirmed: bool,
        notes: &Notes,
        now: Time,
    ) -> Result<CredentialRemoved, RemoveCredentialError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        let (name, left) = match credential {
            CredentialName::Secret(id) => {
                (id, ClientSecretId::parse(id).and_then(|id| secrets::without(&application, &id, now)))
            }
            CredentialName::Key(kid) => (kid, keys::without(&application, kid)),
        };
        let left = left.ok_or(RemoveCredentialError::NotFound)?;
        notes.subject(&format!("{}/{name}", application.client_id));
        if left.will_be_nothing() {
            caller.check_confirmation(&application, confirmed)?;
        }
        match self.leave(&application, &left, now).await? {
            Written::Done(()) => Ok(CredentialRemoved { was_the_last: left.is_nothing(now) }),
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await.into()),
        }
    }
}

impl From<RemoveCredentialError> for Problem {
    fn from(error: RemoveCredentialError) -> Self {
        match error {
            RemoveCredentialError::Find(error) => error.into(),
            RemoveCredentialError::Exceeds(error) => error.into(),
            RemoveCredentialError::NotFound => {
                let detail = "The application has no secret or key with the identifier in the path, or no longer.";
                Self::new(ProblemKind::CredentialNotFound, detail)
            }
            RemoveCredentialError::Confirmation(error) => error.into(),
            RemoveCredentialError::Conflict(error) => error.into(),
            RemoveCredentialError::Table(error) => error.into(),
        }
    }
}
