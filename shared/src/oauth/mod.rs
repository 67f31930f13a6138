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

use crate::{
    applications::Application,
    auth::{entity::Entities, scope::Scope, token::Claims},
    http::ProblemKind,
};

/// Whether an application may look at a token, or end it: its own, or any if it is platform-wide and has the scope for doing so
/// with accounts.
fn may_ask_about(client: &Application, claims: &Claims, scope: Scope) -> bool {
    client.client_id == claims.client_id || client.entities.cover(Entities::EVERY) && client.scopes.contains(scope)
}

/// The `error` of RFC 6749 §5.2 for a kind of Problem. What the RFC has no word for has the nearest of RFC 6749
/// §4.1.2.1, which clients know as well.
pub const fn error_code(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::InvalidClient => "invalid_client",
        ProblemKind::InvalidScope => "invalid_scope",
        ProblemKind::UnsupportedGrantType => "unsupported_grant_type",
        ProblemKind::ForeignToken => "unauthorized_client",
        ProblemKind::ServiceUnavailable | ProblemKind::TooManyAttempts => "temporarily_unavailable",
        ProblemKind::InternalError => "server_error",
        _ => "invalid_request",
    }
}

/// A detail in the characters that RFC 6749 §5.2 allows: printable ASCII without `"` and `\`.
pub fn error_description(detail: &str) -> String {
    detail
        .chars()
        .map(|letter| if matches!(letter, ' '..='~') && letter != '"' && letter != '\\' { letter } else { '\'' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_only_the_characters_that_the_rfc_allows() {
        assert_eq!(error_description("no \"x\" \\ or é\n!"), "no 'x' ' or ''!");
    }
}
