//! Settings of every function.

use base::{Environment, FromEnvironment};

/// Settings of every function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `BASE_URL`: the API's address, without a slash at its end; the audience of tokens and the base of Problem types.
    pub base_url: String,
    /// `AUTH_URL`: the token issuer's address, without a slash at its end; the `iss` of tokens.
    pub auth_url: String,
    /// `TABLE_NAME`: the DynamoDB table.
    pub table_name: String,
    /// `ENVIRONMENT`: the name of this deployment, such as `production`.
    pub environment: String,
}

impl FromEnvironment for Settings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let (base_url, auth_url) = (environment.address("BASE_URL"), environment.address("AUTH_URL"));
        let (table_name, name) = (environment.required("TABLE_NAME"), environment.required("ENVIRONMENT"));
        Some(Self { base_url: base_url?, auth_url: auth_url?, table_name: table_name?, environment: name? })
    }
}
