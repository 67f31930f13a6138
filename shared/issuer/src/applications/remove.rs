//! Removing an application.
//!
//! One transaction removes the application and its owner's pointer to it, and revokes its tokens,
//! so that a crash leaves all of it or nothing. Other requests cannot make it fail: there is no
//! allowance for it, and it does not ask for a version.

use super::{
    application::Application,
    caller::{Caller, ConfirmationRequired, ExceedsCaller},
    show::FindError,
    store::Applications,
};
use base::{Time, audit::Notes};
use problem::Problem;
use storage::{TableError, Written};

/// Why an application was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The entity has no such application, or it could not be read.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The application can do more than the caller.
    #[error(transparent)]
    Exceeds(#[from] ExceedsCaller),
    /// The application would remove itself.
    #[error(transparent)]
    Confirmation(#[from] ConfirmationRequired),
    /// The table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Applications {
    /// Removes an application and revokes its tokens. Returns the application as it was.
    pub async fn remove(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        confirmed: bool,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, RemoveError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        caller.check_confirmation(&application, confirmed)?;
        match self.delete(&application, now).await? {
            Written::Done(()) => Ok(application),
            Written::Lost(_) => Err(FindError::NotFound.into()),
        }
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Find(error) => error.into(),
            RemoveError::Exceeds(error) => error.into(),
            RemoveError::Confirmation(error) => error.into(),
            RemoveError::Table(error) => error.into(),
        }
    }
}
