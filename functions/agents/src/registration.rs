//! The scopes for which a token's application is registered. A call that lacks one of these is refused by HTTP, so that the
//! client gets a wider token. No token has any other scope: a client that was told to get one would fail and end its
//! session, so the call answers an error that the model can read instead.

use auth::{Scope, Scopes};
use problem::{Problem, ProblemKind};

use crate::{caller::Caller, desk::Desk, protocol::Refusal};

/// The scopes that a token of the caller's application can have; `None` where the application cannot be read.
pub async fn scopes(desk: &Desk, caller: &Caller) -> Option<Scopes> {
    match desk.applications.find(&caller.claims.client_id).await {
        Ok(application) => application.map(|application| application.scopes),
        Err(error) => {
            tracing::warn!(
                cause = base::logging::chain(&error),
                "an agent's application cannot be read; the call answers 403, so that the client asks for a wider token"
            );
            None
        }
    }
}

/// The caller's token has the scopes that a call needs.
///
/// # Errors
/// By HTTP where another token can have them, or where it is not known; else as the result of the call.
pub async fn check(desk: &Desk, caller: &Caller, needed: &[Scope]) -> Result<(), Refusal> {
    let Err(problem) = caller.needs(needed) else { return Ok(()) };
    let registered = scopes(desk, caller).await;
    match registered.map(|registered| beyond(caller, needed, registered)) {
        Some(beyond) if !beyond.is_empty() => Err(Refusal::Problem(not_registered(beyond))),
        _ => Err(Refusal::Token(problem)),
    }
}

/// The scopes of those that a call needs which no token of the caller's application can have.
pub fn beyond(caller: &Caller, needed: &[Scope], registered: Scopes) -> Scopes {
    let needed: Scopes = needed.iter().copied().collect();
    needed.without(caller.claims.scopes).without(registered)
}

fn not_registered(beyond: Scopes) -> Problem {
    let words = if beyond.iter().count() == 1 { "scope" } else { "scopes" };
    let detail = format!(
        "The application is not registered for the {words} `{beyond}`, so that no token of it is enough for this call. Do \
         not repeat it; go on with the tools that are listed, or tell the person that an application with the {words} is \
         needed."
    );
    Problem::new(ProblemKind::InsufficientScope, detail).with_property("requiredScope", beyond.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_scopes_that_the_application_lacks_and_what_to_do() {
        let problem = not_registered([Scope::IntegrationsWrite, Scope::McpWrite].into_iter().collect());
        assert!(problem.detail.contains("scopes `integrations.write mcp.write`"), "{}", problem.detail);
        assert!(problem.headers.is_empty(), "no client asks for another token");
        let one = not_registered(Scope::PaymentRead.into());
        assert!(one.detail.contains("the scope `payment.read`, so"), "{}", one.detail);
    }
}
