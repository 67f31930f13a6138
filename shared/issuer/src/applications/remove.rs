//! Removing an application.
//!
//! In one transaction the application goes, with its owner's pointer to it, and its tokens are revoked. A crash leaves all
//! of it or nothing. It is never refused because of what others do: neither for how much was removed before, nor for changes
//! of the application at the same moment.

use super::{Application, Applications, grants};
use auth::revocations::RevocationList;
use base::clock::{SharedClock, Time};
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::table::TableError;

/// Everything that removing an application needs.
pub struct Removal {
    /// Where applications are kept.
    pub applications: Applications,
    /// Where their tokens are revoked.
    pub revocations: RevocationList,
    /// The clock.
    pub clock: SharedClock,
}

impl Removal {
    /// Answers a request to remove an application.
    pub async fn remove(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let confirmed = grants::confirmed(call)?;
        let application = self.applications.of_path(call).await?;
        grants::check_of(call, &application)?;
        grants::check_confirmation(call, &application, confirmed)?;
        if !self.end(&application, self.clock.now()).await? {
            return Err(Problem::application_not_found());
        }
        Reply::removed(
            &application.client_id,
            "The application is removed; it gets no more tokens, and those that it has end within a minute.",
        )
    }

    /// Removes the application that was read, and revokes its tokens; false when it was gone already.
    pub async fn end(&self, application: &Application, now: Time) -> Result<bool, TableError> {
        let revocation = self.revocations.client(&application.client_id, now)?;
        self.applications.remove(application, vec![revocation]).await
    }
}
