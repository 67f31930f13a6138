//! The metadata of the issuer (RFC 8414), and of the resources of its tokens (RFC 9728).

use serde::Serialize;

use crate::applications::client_key::ALGORITHMS;
use auth::{Resource, Scope};

/// The authorization server's metadata.
#[derive(Debug, Serialize)]
pub struct Metadata {
    issuer: String,
    /// An endpoint that does not support sign-in yet, and says so. Client libraries for the Model Context Protocol
    /// refuse metadata without it, even for grants that do not use it.
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    scopes_supported: [&'static str; 30],
    /// Required by the same libraries.
    response_types_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 3],
    token_endpoint_auth_signing_alg_values_supported: [&'static str; ALGORITHMS.len()],
    introspection_endpoint: String,
    introspection_endpoint_auth_methods_supported: [&'static str; 3],
    introspection_endpoint_auth_signing_alg_values_supported: [&'static str; ALGORITHMS.len()],
    revocation_endpoint: String,
    revocation_endpoint_auth_methods_supported: [&'static str; 3],
    revocation_endpoint_auth_signing_alg_values_supported: [&'static str; ALGORITHMS.len()],
}

/// The methods of client authentication, at every endpoint.
const METHODS: [&str; 3] = ["client_secret_basic", "client_secret_post", "private_key_jwt"];

impl Metadata {
    /// The metadata of the issuer at this address.
    pub fn of(auth_url: &str) -> Self {
        Self {
            issuer: auth_url.to_owned(),
            authorization_endpoint: format!("{auth_url}/oauth2/authorize"),
            token_endpoint: format!("{auth_url}/oauth2/token"),
            jwks_uri: format!("{auth_url}/oauth2/jwks"),
            scopes_supported: Scope::ALL.map(Scope::as_str),
            response_types_supported: ["code"],
            code_challenge_methods_supported: ["S256"],
            grant_types_supported: ["client_credentials"],
            token_endpoint_auth_methods_supported: METHODS,
            token_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
            introspection_endpoint: format!("{auth_url}/oauth2/introspect"),
            introspection_endpoint_auth_methods_supported: METHODS,
            introspection_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
            revocation_endpoint: format!("{auth_url}/oauth2/revoke"),
            revocation_endpoint_auth_methods_supported: METHODS,
            revocation_endpoint_auth_signing_alg_values_supported: ALGORITHMS,
        }
    }
}

/// A resource's metadata.
#[derive(Debug, Serialize)]
pub struct ResourceMetadata {
    resource: String,
    resource_name: &'static str,
    resource_documentation: String,
    authorization_servers: [String; 1],
    bearer_methods_supported: [&'static str; 1],
    /// Only the scope that every agent needs: a library requests all scopes that it finds here, and gets no token if
    /// the application is not registered for one of them.
    scopes_supported: [&'static str; 1],
}

impl ResourceMetadata {
    /// The metadata of a resource of the API at `base_url`, for tokens of the issuer at `auth_url`.
    pub fn of(resource: Resource, base_url: &str, auth_url: &str) -> Self {
        Self {
            resource: resource.address(base_url),
            resource_name: "Waypost",
            resource_documentation: format!("{base_url}/"),
            authorization_servers: [auth_url.to_owned()],
            bearer_methods_supported: ["header"],
            scopes_supported: [Scope::McpRead.as_str()],
        }
    }
}
