//! The responses to a caller without a token, or with an insufficient one (RFC 6750 §3).

use http::header::WWW_AUTHENTICATE;
use problem::{Problem, ProblemKind};

use crate::{scope::Scopes, token::TokenFault};

/// The request has no token.
pub fn no_token() -> Problem {
    let detail = "Send an access token in the header `Authorization: Bearer …`.";
    // RFC 6750 §3.1: no error code if the request lacks any authentication information.
    Problem::new(ProblemKind::Unauthorized, detail).with_header(WWW_AUTHENTICATE, "Bearer")
}

/// The token is not accepted.
pub fn bad_token(fault: TokenFault) -> Problem {
    let description = match fault {
        TokenFault::Expired => "The access token has expired",
        _ => "The access token is not valid here",
    };
    Problem::new(ProblemKind::Unauthorized, format!("{description}; get a new one from the token endpoint."))
        .with_header(WWW_AUTHENTICATE, format!(r#"Bearer error="invalid_token", error_description="{description}""#))
        .caused_by(fault)
}

/// The token lacks a scope that the operation needs. The challenge names all needed scopes, so that a client that
/// requests them gets one sufficient token.
pub fn lacks_scope(needed: Scopes) -> Problem {
    lacks_scope_requesting(needed, needed)
}

/// The token lacks a scope that the operation needs. The challenge names the scopes that a client should request.
pub fn lacks_scope_requesting(needed: Scopes, requested: Scopes) -> Problem {
    let words = if needed.iter().count() == 1 { "scope" } else { "scopes" };
    let detail = format!(
        "This operation needs a token with the {words} `{needed}`. Request one from the token endpoint. If it refuses, \
         your application is not registered for the {words}: use one that is."
    );
    Problem::new(ProblemKind::InsufficientScope, detail)
        .with_header(WWW_AUTHENTICATE, format!(r#"Bearer error="insufficient_scope", scope="{requested}""#))
        .with_property("requiredScope", needed.to_string())
}

/// The token's application may not publish events.
pub fn may_not_publish() -> Problem {
    let detail = "The token's application may not publish events. Use an application with `mayPublish`, whose tokens \
                  have the claim `may_publish`. An application that may publish can create another with \
                  `\"mayPublish\": true`, and the service's operator can grant the right.";
    Problem::new(ProblemKind::MayNotPublish, detail)
}

/// The token does not cover the path's managing entity.
pub fn entity_not_covered() -> Problem {
    let detail = "The token's application may not act for this managing entity; use an application that is registered \
        for it.";
    Problem::new(ProblemKind::EntityNotCovered, detail)
}
