//! Finding an application for its owner.

use super::{application::Application, caller::Caller, error::ApplicationError, store::Applications};
use base::audit::Notes;

impl Applications {
    /// The application with this client identifier, if the caller manages it. Notes it as the
    /// subject of the audit line.
    pub async fn show(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        notes: &Notes,
    ) -> Result<Application, ApplicationError> {
        let found = self.find(client_id).await?.filter(|application| caller.manages(application));
        let application = found.ok_or_else(|| ApplicationError::NotFound(client_id.to_owned()))?;
        notes.subject(&application.client_id);
        Ok(application)
    }

    /// Reads the application again to say why a change of it was lost.
    pub(super) async fn lost(&self, caller: &Caller<'_>, client_id: &str, notes: &Notes) -> ApplicationError {
        match self.show(caller, client_id, notes).await {
            Ok(now) => ApplicationError::Changed(now.version),
            Err(error) => error,
        }
    }
}
