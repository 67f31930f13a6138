//! The challenge of a refusal, with the scope and the metadata that a client needs to get a sufficient token (RFC 6750
//! §3, RFC 9728 §5.1).

use http::{HeaderValue, header::WWW_AUTHENTICATE};

use crate::endpoint::Declaration;
use problem::Problem;

/// The path of the API's metadata, before the path of a resource (RFC 9728 §3.1).
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Adds the resource's metadata to the challenge of a Problem, and the endpoint's scope if the challenge names none.
/// Challenges of other schemes do not change.
pub(crate) fn completed(mut problem: Problem, endpoint: &Declaration, base_url: &str) -> Problem {
    let challenges = problem.headers.iter_mut().filter(|(name, _)| *name == WWW_AUTHENTICATE);
    for (_, challenge) in challenges {
        let completed = challenge.to_str().ok().and_then(|text| with_parameters(text, endpoint, base_url));
        if let Some(Ok(value)) = completed.map(|text| HeaderValue::from_str(&text)) {
            *challenge = value;
        }
    }
    problem
}

fn with_parameters(challenge: &str, endpoint: &Declaration, base_url: &str) -> Option<String> {
    let given = challenge.strip_prefix("Bearer")?.trim_start();
    let scope = endpoint.access.scope().filter(|_| !given.contains("scope=\""));
    let scope = scope.map(|scope| format!("scope=\"{scope}\""));
    let metadata = endpoint.resource.address(&format!("{base_url}{METADATA}"));
    let metadata = format!("resource_metadata=\"{metadata}\"");
    let given = (!given.is_empty()).then(|| given.to_owned());
    let parameters: Vec<_> = given.into_iter().chain(scope).chain([metadata]).collect();
    Some(format!("Bearer {}", parameters.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints;
    use auth::{Scope, TokenFault, refusal};

    const BASE: &str = "https://api.example.com";

    fn challenge(problem: Problem, endpoint: &Declaration) -> String {
        let problem = completed(problem, endpoint, BASE);
        let (_, value) = problem.headers.into_iter().find(|(name, _)| *name == WWW_AUTHENTICATE).expect("a challenge");
        value.to_str().expect("a text").to_owned()
    }

    #[test]
    fn a_challenge_names_the_scope_and_the_metadata_of_the_resource() {
        let mcp = endpoints::MCP.declaration();
        let at_mcp = r#"resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp""#;
        assert_eq!(challenge(refusal::no_token(), &mcp), format!(r#"Bearer scope="mcp.read", {at_mcp}"#));
        let expired = challenge(refusal::bad_token(TokenFault::Expired), &mcp);
        assert!(expired.starts_with(r#"Bearer error="invalid_token", error_description="#), "{expired}");
        assert!(expired.ends_with(&format!(r#", scope="mcp.read", {at_mcp}"#)), "{expired}");
        let api = endpoints::LIST_EVENT_TYPES.declaration();
        let at_api = r#"resource_metadata="https://api.example.com/.well-known/oauth-protected-resource""#;
        assert_eq!(challenge(refusal::no_token(), &api), format!(r#"Bearer scope="integrations.read", {at_api}"#));
        let any = endpoints::GEO_IP_UPDATE.declaration();
        assert_eq!(challenge(refusal::no_token(), &any), format!("Bearer {at_api}"));
    }

    #[test]
    fn a_challenge_that_names_its_scopes_keeps_them() {
        let needed = [Scope::McpRead, Scope::McpWrite].into_iter().collect();
        let lacking = challenge(refusal::lacks_scope(needed), &endpoints::MCP.declaration());
        let scopes = r#"Bearer error="insufficient_scope", scope="mcp.read mcp.write", resource_metadata="#;
        assert!(lacking.starts_with(scopes), "{lacking}");
    }

    #[test]
    fn a_challenge_for_clients_of_the_issuer_is_not_changed() {
        let basic = Problem::internal("a test").with_header(WWW_AUTHENTICATE, r#"Basic realm="token""#);
        assert_eq!(challenge(basic, &endpoints::TOKEN.declaration()), r#"Basic realm="token""#);
    }
}
