//! The token issuer: OAuth 2's client_credentials grant (RFC 6749 §4.4) and what the issuer says of itself (RFC 8414).

pub mod assertion;
pub mod client_authentication;
pub mod client_credentials;
pub mod credentials;
pub mod form;
pub mod guesses;
pub mod introspect;
pub mod issuer;
pub mod metadata;
pub mod pepper;
pub mod revoke;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use crate::applications::Application;
use auth::{entity::Entities, scope::Scope, token::Claims};

/// Whether an application may look at a token, or end it: its own, or any if it is platform-wide and has the scope for doing so
/// with accounts.
fn may_ask_about(client: &Application, claims: &Claims, scope: Scope) -> bool {
    client.client_id == claims.client_id || client.entities.cover(Entities::EVERY) && client.scopes.contains(scope)
}
