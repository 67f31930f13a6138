//! Showing applications.

use super::{Application, Applications, CLIENT_ID_PARAMETER};
use base::clock::SharedClock;
use gate::{EntityCall, Reply};
use problem::Problem;

/// Everything that showing applications needs.
#[derive(Clone)]
pub struct Showing {
    /// Where applications are kept.
    pub applications: Applications,
    /// The clock.
    pub clock: SharedClock,
}

impl Showing {
    /// Answers a request for an application.
    pub async fn show(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let application = self.applications.of_path(call).await?;
        Reply::ok(&application.view(self.clock.now(), None))
    }

    /// Answers a request for all applications of an entity, the newest first.
    pub async fn list(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let (found, now) = (self.applications.of(call.entity.id()).await?, self.clock.now());
        Reply::ok(&found.iter().map(|application| application.view(now, None)).collect::<Vec<_>>())
    }
}

impl Applications {
    /// The application in the path; another entity's looks like a missing one. From here on the audit trail knows it.
    pub(super) async fn of_path(&self, call: &EntityCall) -> Result<Application, Problem> {
        let found = self.find_of(&call.entity, call.path(CLIENT_ID_PARAMETER)).await?;
        let application = found.ok_or_else(Problem::application_not_found)?;
        call.notes.subject(&application.client_id);
        Ok(application)
    }

    /// What is answered when a change of an application was lost: to its removal or to another change.
    pub(super) async fn lost(&self, call: &EntityCall) -> Problem {
        match self.of_path(call).await {
            Ok(now) => Problem::application_changed(now.version),
            Err(problem) => problem,
        }
    }
}
