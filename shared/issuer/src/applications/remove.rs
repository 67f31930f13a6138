//! Removing an application.
//!
//! One transaction removes the application and its owner's pointer to it, and revokes its tokens,
//! so that a crash leaves all of it or nothing. Other requests cannot make it fail: there is no
//! allowance for it, and it does not ask for a version.

use super::{application::Application, caller::Caller, error::ApplicationError, store::Applications};
use base::{Time, audit::Notes};
use storage::Written;

impl Applications {
    /// Removes an application and revokes its tokens. Returns the application as it was.
    pub async fn remove(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        confirmed: bool,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        caller.check_confirmation(&application, confirmed)?;
        match self.delete(&application, now).await? {
            Written::Done(()) => Ok(application),
            Written::Lost(_) => Err(ApplicationError::NotFound(client_id.to_owned())),
        }
    }
}
