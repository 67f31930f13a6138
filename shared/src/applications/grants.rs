//! Who may hand out what: nobody gets at an application that can do more than the token with which it is asked for.

use crate::{
    auth::{entity::Entities, scope::Scopes},
    http::{Call, Problem},
};

/// Fails unless the call's token has all these scopes for all these entities. For every entity, that is `*`, only one has
/// that may act for every entity itself.
pub fn check(call: &Call, scopes: Scopes, entities: &Entities) -> Result<(), Problem> {
    let token = call.claims.as_ref().ok_or_else(|| Problem::internal("rights are handed out without a token"))?;
    let lacking = scopes.without(token.scopes);
    if !lacking.is_empty() {
        return Err(Problem::grants_more_scopes(lacking));
    }
    let foreign: Vec<_> = entities.iter().filter(|entity| !token.entities.cover(entity)).collect();
    if foreign.is_empty() { Ok(()) } else { Err(Problem::grants_more_entities(&foreign)) }
}
