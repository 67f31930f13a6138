//! Giving an application the right to publish events, and taking it.
//!
//! Tokens carry the right, so that taking it also ends the tokens that say otherwise, in the same
//! transaction. The application goes on with its next token.

use super::{application::Application, caller::Caller, error::ApplicationError, store::Applications};
use base::{Time, audit::Notes};
use storage::Written;

impl Applications {
    /// Lets an application publish events, or no longer. Returns the application as it is now.
    /// Nothing is written when it is so already.
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
}
