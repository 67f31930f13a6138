//! Callers and the applications that they may manage. Creating, changing or removing an application requires a token
//! with all its rights. Otherwise, a token with few rights could create an application with all rights, or remove other
//! owners' applications.

use super::{application::Application, error::ApplicationError};
use auth::{AuthorizedEntity, Claims, Entities, Scopes};
use base::Time;
use problem::{Problem, Query};
use storage::{Allowance, Allowances};

/// The caller of an application use case: a managing entity with a token that covers it, or the deployment's operator.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a>(Option<(&'a AuthorizedEntity, &'a Claims)>);

impl<'a> Caller<'a> {
    /// A managing entity whose token has these claims. It manages the applications that it owns.
    pub fn by_token(entity: &'a AuthorizedEntity, claims: &'a Claims) -> Self {
        Self(Some((entity, claims)))
    }

    /// The deployment's operator, without a token. The operator manages every application and has no allowance.
    pub const fn of_operator() -> Self {
        Self(None)
    }

    /// The managing entity; `None` for the operator.
    pub(super) fn entity(&self) -> Option<&'a AuthorizedEntity> {
        self.0.map(|(entity, _)| entity)
    }

    /// Whether the caller may see this application at all.
    pub(super) fn manages(&self, application: &Application) -> bool {
        self.entity().is_none_or(|entity| application.owner.as_ref() == Some(entity.id()))
    }

    /// The scopes that the caller can give an application.
    pub fn scopes(&self) -> Scopes {
        self.0.map_or(Scopes::ALL, |(_, token)| token.scopes)
    }

    /// Fails unless the token has all these scopes for all these entities, and the right to publish if `may_publish` is
    /// set. Only a token for every entity covers `*`.
    pub fn check(&self, scopes: Scopes, entities: &Entities, may_publish: bool) -> Result<(), ApplicationError> {
        let Some((_, token)) = self.0 else { return Ok(()) };
        let lacking = scopes.without(token.scopes);
        if !lacking.is_empty() {
            return Err(ApplicationError::ExceedsScopes(lacking));
        }
        let foreign: Vec<_> = entities.iter().filter(|entity| !token.entities.cover(entity)).collect();
        if !foreign.is_empty() {
            return Err(ApplicationError::ExceedsEntities(foreign.into_iter().map(str::to_owned).collect()));
        }
        if may_publish && !token.may_publish { Err(ApplicationError::ExceedsPublishing) } else { Ok(()) }
    }

    /// Fails unless the token has all of this application's rights.
    pub fn check_of(&self, application: &Application) -> Result<(), ApplicationError> {
        self.check(application.scopes, &application.entities, application.may_publish)
    }

    /// Charges the caller's entity for the applications, secrets and keys that are about to be created
    /// ([`Allowance::Credentials`]).
    pub(super) async fn spend_credentials(
        &self,
        allowances: &Allowances,
        many: u32,
        now: Time,
    ) -> Result<(), ApplicationError> {
        let Some(entity) = self.entity() else { return Ok(()) };
        match allowances.spend(Allowance::Credentials, many, entity.id().as_str(), now).await? {
            None => Ok(()),
            Some(end) => Err(ApplicationError::AllowanceSpent(end.since(now))),
        }
    }

    /// Fails if the token belongs to this application and the request is not confirmed. A caller that removes or
    /// narrows another application needs no confirmation: it keeps its own access and can repair a mistake.
    pub fn check_confirmation(&self, application: &Application, confirmed: bool) -> Result<(), ApplicationError> {
        let own = self.0.is_some_and(|(_, token)| token.client_id == application.client_id);
        if own && !confirmed { Err(ApplicationError::Unconfirmed) } else { Ok(()) }
    }
}

/// Whether the query says `confirm=true`, which allows a request to end or narrow the caller's own access.
pub fn confirmed(mut query: Query<'_>) -> Result<bool, Problem> {
    let confirmed = query.one_of("confirm", "`true` or `false`", |text| text.parse().ok());
    query.finish()?;
    Ok(confirmed.unwrap_or(false))
}
