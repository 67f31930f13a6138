//! The issuer's metadata (RFC 8414).

use serde::Serialize;

use super::assertion::ALGORITHMS;
use auth::Scope;

/// The authorization server's metadata.
#[derive(Debug, Serialize)]
pub struct Metadata {
    issuer: String,
    token_endpoint: String,
    jwks_uri: String,
    scopes_supported: [&'static str; 30],
    /// None: there is no authorization endpoint. The RFC wants the member all the same.
    response_types_supported: [&'static str; 0],
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 3],
    token_endpoint_auth_signing_alg_values_supported: [&'static str; 5],
    introspection_endpoint: String,
    introspection_endpoint_auth_methods_supported: [&'static str; 3],
    introspection_endpoint_auth_signing_alg_values_supported: [&'static str; 5],
    revocation_endpoint: String,
    revocation_endpoint_auth_methods_supported: [&'static str; 3],
    revocation_endpoint_auth_signing_alg_values_supported: [&'static str; 5],
}

/// How clients authenticate, at every endpoint.
const METHODS: [&str; 3] = ["client_secret_basic", "client_secret_post", "private_key_jwt"];

impl Metadata {
    /// The metadata of the issuer at this address.
    pub fn of(auth_url: &str) -> Self {
        Self {
            issuer: auth_url.to_owned(),
            token_endpoint: format!("{auth_url}/oauth2/token"),
            jwks_uri: format!("{auth_url}/oauth2/jwks"),
            scopes_supported: Scope::ALL.map(Scope::as_str),
            response_types_supported: [],
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
