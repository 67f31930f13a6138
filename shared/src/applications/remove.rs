//! Removing an application.
//!
//! In one transaction the application goes, with its owner's pointer to it, and its tokens are revoked. A crash leaves all
//! of it or nothing.

use serde::Serialize;

use super::{Application, Applications, store::Changed};
use crate::{
    auth::revocations::RevocationList,
    clock::{SharedClock, Time},
    http::{Call, Problem, Reply},
    table::TableError,
};

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
    /// Answers a request to remove an application: 429 when too many were removed, with tokens revoked, for its owner.
    pub async fn remove(&self, call: &Call) -> Result<Reply, Problem> {
        let application = self.applications.of_path(call).await?;
        let now = self.clock.now();
        if let Some(end) = self.revocations.limited(application.accountable(), now).await? {
            return Err(Problem::too_many_revocations(end.since(now)));
        }
        match self.end(&application, now).await? {
            Changed::Yes => Reply::removed(
                &application.client_id,
                "The application is removed; it gets no more tokens, and those that it has end within a minute.",
            ),
            Changed::Lost => Err(self.applications.lost(call).await),
        }
    }

    /// Removes the application that was read, and revokes its tokens. How often is not limited here.
    pub async fn end(&self, application: &Application, now: Time) -> Result<Changed, TableError> {
        let revocation = self.revocations.client(&application.client_id, now)?;
        self.applications.remove(application, vec![revocation]).await
    }
}

/// The answer when a secret or a key was removed.
pub(super) fn credential_removed(id: &impl Serialize, none_is_left: bool) -> Result<Reply, Problem> {
    let message = if none_is_left {
        "It is no longer accepted. It was the last: the application gets no tokens until it is given a secret or a key."
    } else {
        "It is no longer accepted."
    };
    Reply::removed(id, message)
}
