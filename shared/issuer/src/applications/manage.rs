//! Showing and removing an application, and giving it the right to publish events.

use super::{application::Application, caller::Caller, error::ApplicationError, store::Applications};
use base::{Time, audit::Notes};
use storage::{Record, Written};

impl Applications {
    /// The application with this client identifier, if the caller manages it. Notes it as the audit line's subject.
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

    /// Reads the application again to find out why a change to it was lost.
    pub(super) async fn lost(&self, caller: &Caller<'_>, client_id: &str, notes: &Notes) -> ApplicationError {
        match self.show(caller, client_id, notes).await {
            Ok(now) => ApplicationError::Changed(now.version),
            Err(error) => error,
        }
    }

    /// Grants or withdraws an application's right to publish events. Returns the current application. Writes nothing if
    /// nothing changes.
    ///
    /// Tokens carry the right, so withdrawing it also revokes the issued tokens, in the same transaction. The
    /// application continues with its next token.
    pub async fn let_publish(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        may_publish: bool,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let read = self.show(caller, client_id, notes).await?;
        caller.check(read.scopes, &read.entities, read.may_publish || may_publish)?;
        if read.may_publish == may_publish {
            return Ok(read);
        }
        match self.set_publishing(&read, may_publish, now).await? {
            Written::Done(()) => Ok(Application { may_publish, version: read.version + 1, last_update: now, ..read }),
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await),
        }
    }

    /// Removes an application and revokes its tokens. Returns the application before the removal.
    ///
    /// One transaction removes the application and its owner's pointer, revokes its tokens, and writes the request's
    /// idempotency record, if any. A crash leaves nothing half removed. Other requests cannot make the removal fail: it
    /// uses no allowance and requires no version.
    pub async fn remove(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        confirmed: bool,
        record: Option<Record>,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        caller.check_confirmation(&application, confirmed)?;
        match self.delete(&application, record, now).await? {
            Written::Done(()) => Ok(application),
            Written::Lost(_) => Err(ApplicationError::NotFound(client_id.to_owned())),
        }
    }
}
