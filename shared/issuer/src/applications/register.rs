//! Making an application.

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};

use super::{Applications, grants, new_application::NewApplication};
use crate::oauth::pepper::Pepper;
use auth::entity::AuthorizedEntity;
use base::{
    clock::{SharedClock, Time},
    random::SharedRandom,
};
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::allowance::{Allowance, Allowances};

/// How many applications an entity may have: one answer lists them.
pub const MAX_APPLICATIONS: usize = 100;

/// Everything that making an application needs.
pub struct Registration {
    /// Where applications are kept.
    pub applications: Applications,
    /// How many may be made.
    pub allowances: Allowances,
    /// What their secrets are hashed with.
    pub pepper: Pepper,
    /// The API's address, for `Location`.
    pub base_url: String,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

impl Registration {
    /// Answers a request for a new application.
    pub async fn create(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let (entity, now) = (&call.entity, self.clock.now());
        let new = NewApplication::read(&call.body, entity.id(), now)?;
        grants::check(call, new.scopes, &new.entities)?;
        // Two at once may pass together: the limit keeps lists short, and one more does no harm.
        if self.applications.count_of(entity).await? >= MAX_APPLICATIONS {
            return Err(Problem::too_many_applications(MAX_APPLICATIONS));
        }
        spend_on_credentials(&self.allowances, entity, new.credentials().saturating_add(1), now).await?;
        let (application, secret) = new.make(&*self.pepper.get().await?, now, &*self.random);
        call.notes.subject(&application.client_id);
        self.applications.put(application.clone()).await?;
        let location =
            format!("{}/api/managing-entity/{}/application/{}", self.base_url, entity.id(), application.client_id);
        Reply::json(StatusCode::CREATED, &application.view(now, secret.as_ref()))?
            .with_header(CACHE_CONTROL, "no-store")
            .with_computed_header(LOCATION, &location)
    }
}

/// Counts how many applications, secrets and keys are about to be made for an entity: each is an entry in the list of
/// revocations when it is removed.
///
/// # Errors
/// 429 when as many were made as may be in an hour.
pub(super) async fn spend_on_credentials(
    allowances: &Allowances,
    owner: &AuthorizedEntity,
    many: u32,
    now: Time,
) -> Result<(), Problem> {
    match allowances.spend(Allowance::Credentials, many, owner.id().as_str(), now).await? {
        None => Ok(()),
        Some(end) => Err(Problem::too_many_credentials(end.since(now))),
    }
}
