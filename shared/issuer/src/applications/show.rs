//! Finding an application for its owner.

use super::{application::Application, caller::Caller, store::Applications};
use base::audit::Notes;
use problem::{Problem, ProblemKind};
use storage::TableError;

/// Why an application was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The caller has no such application; another entity's application looks the same.
    #[error("there is no such application")]
    NotFound,
    /// The table could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Why a change of an application was lost.
#[derive(Debug, thiserror::Error)]
pub enum Conflict {
    /// Another change came first; the application has this version now.
    #[error("another change came first; the version is {0} now")]
    Changed(u64),
    /// The application was removed, or could not be read again.
    #[error(transparent)]
    Find(#[from] FindError),
}

impl Applications {
    /// The application with this client identifier, if the caller manages it. Notes it as the
    /// subject of the audit line.
    pub async fn show(&self, caller: &Caller<'_>, client_id: &str, notes: &Notes) -> Result<Application, FindError> {
        let found = self.find(client_id).await?.filter(|application| caller.manages(application));
        let application = found.ok_or(FindError::NotFound)?;
        notes.subject(&application.client_id);
        Ok(application)
    }

    /// Reads the application again to say why a change of it was lost.
    pub(super) async fn lost(&self, caller: &Caller<'_>, client_id: &str, notes: &Notes) -> Conflict {
        match self.show(caller, client_id, notes).await {
            Ok(now) => Conflict::Changed(now.version),
            Err(error) => error.into(),
        }
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        match error {
            FindError::NotFound => {
                let detail = "This managing entity has no application with the identifier in the path, or no longer.";
                Self::new(ProblemKind::ApplicationNotFound, detail)
            }
            FindError::Table(error) => error.into(),
        }
    }
}

impl From<Conflict> for Problem {
    fn from(error: Conflict) -> Self {
        match error {
            Conflict::Changed(current) => {
                let detail = format!(
                    "The application was changed by somebody else at this very moment, and its version is {current} by now; \
                     nothing was done. Look at it again, and repeat the request if it is still wanted."
                );
                Self::new(ProblemKind::VersionConflict, detail).with_property("currentVersion", current)
            }
            Conflict::Find(error) => error.into(),
        }
    }
}
