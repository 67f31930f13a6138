//! Who may look after which application: making, changing or removing one needs a token that can do all that the application can.
//! A token for little could otherwise make itself one for everything, or take away what others work with.

use auth::refusal;
use auth::{entity::Entities, scope::Scopes};
use gate::Call;
use problem::Problem;

use super::Application;

/// Fails unless the call's token has all these scopes for all these entities. For every entity, that is `*`, only one has
/// that may act for every entity itself.
pub fn check(call: &Call, scopes: Scopes, entities: &Entities) -> Result<(), Problem> {
    let token = call.claims.as_ref().ok_or_else(|| Problem::internal("rights are handed out without a token"))?;
    let lacking = scopes.without(token.scopes);
    if !lacking.is_empty() {
        return Err(refusal::grants_more_scopes(lacking));
    }
    let foreign: Vec<_> = entities.iter().filter(|entity| !token.entities.cover(entity)).collect();
    if foreign.is_empty() { Ok(()) } else { Err(refusal::grants_more_entities(&foreign)) }
}

/// Fails unless the call's token can do all that this application can.
pub fn check_of(call: &Call, application: &Application) -> Result<(), Problem> {
    check(call, application.scopes, &application.entities)
}

/// Whether `?confirm=true` says that a removal is meant even if it ends the caller's own access.
pub fn confirmed(call: &Call) -> Result<bool, Problem> {
    let mut query = call.read_query();
    let confirmed = query.optional("confirm", "`true` or `false`", |text| text.parse().ok());
    query.finish()?;
    Ok(confirmed.unwrap_or(false))
}

/// Fails when the call's token is this application's own, unless it is confirmed. A caller that removes another application can
/// look after the rest afterwards, since its token can do all that the removed one could, and is not asked.
pub fn check_confirmation(call: &Call, application: &Application, confirmed: bool) -> Result<(), Problem> {
    let own = call.claims.as_ref().is_some_and(|token| token.client_id == application.client_id);
    if own && !confirmed { Err(Problem::confirmation_required()) } else { Ok(()) }
}
