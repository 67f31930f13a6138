//! The scopes for which a token's application is registered. If a call's token lacks one of them, the response is 403,
//! and the client gets a wider token. No token can have any other scope, and a client that requested one would fail and
//! end its session. A call that needs such a scope returns an error that the model can read.

use auth::{Scope, Scopes, refusal};
use problem::{Problem, ProblemKind};

use crate::{caller::Caller, protocol::Refusal, use_cases::UseCases};

/// The scopes that a token of the caller's application can have; `None` if the application cannot be read.
pub async fn scopes(use_cases: &UseCases, caller: &Caller) -> Option<Scopes> {
    match use_cases.applications.find(&caller.claims.client_id).await {
        Ok(application) => application.map(|application| application.scopes),
        Err(error) => {
            tracing::warn!(
                cause = base::logging::chain(&error),
                "an agent's application could not be read; the call gets 403, so the client will request a wider token"
            );
            None
        }
    }
}

/// Checks that the caller's token has the scopes that a call needs.
///
/// # Errors
/// 403 if another token can have the missing scopes, or if that is unknown; otherwise a Problem as the call's result.
pub async fn check(use_cases: &UseCases, caller: &Caller, needed: &[Scope]) -> Result<(), Refusal> {
    if caller.has(needed) {
        return Ok(());
    }
    let registered = scopes(use_cases, caller).await;
    match registered.map(|registered| beyond(caller, needed, registered)) {
        Some(beyond) if !beyond.is_empty() => Err(Refusal::Problem(not_registered(beyond))),
        _ => Err(Refusal::Token(too_narrow(needed, caller.claims.scopes, registered))),
    }
}

/// The refusal of a token with the scopes `held`. Its challenge contains them in addition to the needed ones, since
/// some clients request exactly the challenge's scopes, and the new token replaces the old one. It contains no scope
/// that the issuer would refuse.
/// <https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#scope-challenge-handling>
fn too_narrow(needed: &[Scope], held: Scopes, registered: Option<Scopes>) -> Problem {
    let needed: Scopes = needed.iter().copied().chain([Scope::McpRead]).collect();
    let registered = registered.unwrap_or(Scopes::ALL);
    let requested = held.iter().chain(needed.iter()).filter(|scope| registered.contains(*scope)).collect();
    refusal::lacks_scope_requesting(needed, requested)
}

/// The needed scopes that no token of the caller's application can have.
pub fn beyond(caller: &Caller, needed: &[Scope], registered: Scopes) -> Scopes {
    let needed: Scopes = needed.iter().copied().collect();
    needed.without(caller.claims.scopes).without(registered)
}

fn not_registered(beyond: Scopes) -> Problem {
    let words = if beyond.iter().count() == 1 { "scope" } else { "scopes" };
    let detail = format!(
        "The application is not registered for the {words} `{beyond}`, so it cannot get a token for this call. Do not \
         retry it: use the listed tools, or explain that the person needs an application with the {words}."
    );
    Problem::new(ProblemKind::InsufficientScope, detail).with_property("requiredScope", beyond.to_string())
}

#[cfg(test)]
mod tests {
    use auth::Scope::{BookingRead, IntegrationsRead, IntegrationsWrite, McpRead, McpWrite};

    use super::*;

    fn set(scopes: &[Scope]) -> Scopes {
        scopes.iter().copied().collect()
    }

    #[test]
    fn a_challenge_names_the_held_and_the_needed_scopes_that_are_registered() {
        let needed = [McpWrite, IntegrationsWrite];
        let held = set(&[McpRead, IntegrationsRead]);
        let all = "integrations.read integrations.write mcp.read mcp.write";
        for (held, registered, scopes) in [
            (held, None, all),
            (held, Some(Scopes::ALL), all),
            (set(&[McpRead]), Some(Scopes::ALL), "integrations.write mcp.read mcp.write"),
            (set(&[McpRead, McpWrite]), Some(Scopes::ALL), "integrations.write mcp.read mcp.write"),
            (set(&[McpRead, IntegrationsRead, BookingRead]), Some(Scopes::ALL.without(BookingRead.into())), all),
        ] {
            let problem = too_narrow(&needed, held, registered);
            let (_, challenge) = &problem.headers[0];
            assert_eq!(challenge, &*format!(r#"Bearer error="insufficient_scope", scope="{scopes}""#));
            // The body contains only the call's scopes.
            assert_eq!(problem.properties["requiredScope"], "integrations.write mcp.read mcp.write");
        }
    }

    #[test]
    fn a_refusal_names_the_missing_scopes_and_the_remedy() {
        let problem = not_registered(set(&[IntegrationsWrite, McpWrite]));
        assert!(problem.detail.contains("scopes `integrations.write mcp.write`"), "{}", problem.detail);
        assert!(problem.headers.is_empty(), "no client requests another token");
        let one = not_registered(Scope::PaymentRead.into());
        assert!(one.detail.contains("the scope `payment.read`, so"), "{}", one.detail);
    }
}
