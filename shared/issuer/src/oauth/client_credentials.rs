//! The client_credentials grant: authenticates the application, selects the scopes, issues the token.

use std::time::Duration;

use serde::Serialize;
use url::Url;

use super::{
    client_authentication::{Authenticated, AuthenticationError, ClientAuthentication, RequestContext},
    credentials::Credentials,
    form::Posted,
    signing_keys::{SigningKeyCache, SigningKeyError},
};
use auth::{Audience, Claims, Resource, Scope, Scopes, token, token::NotIssued};
use base::{SharedRandom, Time, audit::Notes};
use problem::{Problem, ProblemKind};

/// Issues tokens to applications.
pub struct ClientCredentials {
    /// Authenticates the application.
    pub clients: ClientAuthentication,
    /// The keys that sign.
    pub issuer: SigningKeyCache,
    /// The issuer and the audience of tokens.
    pub audience: Audience,
    /// The lifetime of tokens, in seconds.
    pub lifetime: u32,
    /// Generates the identifiers of tokens.
    pub random: SharedRandom,
}

/// A request for a token (RFC 6749 §4.4.2).
#[derive(Debug)]
pub struct TokenRequest {
    grant_type: String,
    /// The scopes, separated by spaces.
    scope: Option<String>,
    /// The addresses of the resources at which the token will be used.
    resources: Vec<String>,
    credentials: Credentials,
}

/// The response with a token (RFC 6749 §5.1). Not `Debug`, since it contains a token.
#[derive(Serialize)]
pub struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: u32,
    scope: String,
}

/// Why no token was issued.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The client was not authenticated.
    #[error(transparent)]
    Client(#[from] AuthenticationError),
    /// The request names another grant.
    #[error("the grant is not client_credentials")]
    UnsupportedGrant,
    /// The requested scopes cannot be granted.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A requested resource does not belong to this API.
    #[error("The resource {} does not belong to this service; its resources are {known}.", shown(.resource))]
    Resource {
        /// The address that was sent.
        resource: String,
        /// The known addresses, as text.
        known: String,
    },
    /// No key can sign.
    #[error(transparent)]
    Issuer(#[from] SigningKeyError),
    /// The token could not be signed.
    #[error(transparent)]
    NotIssued(#[from] NotIssued),
    /// The token would exceed the maximum length.
    #[error("the application covers more managing entities than a token can hold")]
    TooLong,
}

/// Why requested scopes cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// There is no such scope.
    #[error("Each word in the scope parameter {}.", Scope::none_is(.0))]
    Unknown(String),
    /// The parameter contains no scope.
    #[error("The scope parameter is empty; omit it to get all the application's scopes.")]
    Empty,
    /// The application is not registered for the scope.
    #[error("The application is not registered for the scope {0}.")]
    Unregistered(Scope),
}

impl TokenRequest {
    /// Parses a request for a token.
    pub fn read(posted: &Posted<'_>) -> Result<Self, Problem> {
        let mut form = posted.form()?;
        let missing = "The parameter grant_type is missing; it must be client_credentials.";
        let grant_type = form.required("grant_type", missing)?;
        let scope = form.take_scope()?;
        let resources = form.take_all("resource");
        let credentials = Credentials::read(&posted.authorization, &mut form)?;
        Ok(Self { grant_type, scope, resources, credentials })
    }
}

impl ClientCredentials {
    /// Authenticates the client and issues a token to it.
    pub async fn grant(
        &self,
        wanted: &TokenRequest,
        request: &RequestContext<'_>,
        now: Time,
    ) -> Result<TokenResponse, GrantError> {
        let client = self.clients.authenticate(&wanted.credentials, request, now).await?;
        if wanted.grant_type != "client_credentials" {
            return Err(GrantError::UnsupportedGrant);
        }
        let resource = resource(&wanted.resources, &self.audience.base_url)?;
        let scopes = granted(wanted.scope.as_deref(), client.application.scopes)?;
        self.issue(client, resource, scopes, request.notes, now).await
    }

    async fn issue(
        &self,
        client: Authenticated,
        resource: Resource,
        scopes: Scopes,
        notes: &Notes,
        now: Time,
    ) -> Result<TokenResponse, GrantError> {
        let Authenticated { application, credential } = client;
        let expires = now + Duration::from_secs(self.lifetime.into());
        let keys = self.issuer.keys_until(expires).await?;
        let claims = Claims {
            client_id: application.client_id,
            credential_id: Some(credential.id),
            session_id: None,
            token_id: token::new_token_id(&*self.random),
            key_id: keys.current.kid().to_owned(),
            resource,
            scopes,
            entities: application.entities,
            may_publish: application.may_publish,
            issued: now,
            expires,
        };
        let access_token = token::issue(&claims, &self.audience, &keys.current)?;
        if access_token.len() > token::MAX_LENGTH {
            return Err(GrantError::TooLong);
        }
        notes.subject(&claims.token_id);
        let scope = claims.scopes.to_string();
        Ok(TokenResponse { access_token, token_type: "Bearer", expires_in: self.lifetime, scope })
    }
}

/// A token's scopes: the requested ones, or all that the application has. A scope that cannot be granted makes the
/// whole request fail.
fn granted(requested: Option<&str>, registered: Scopes) -> Result<Scopes, ScopeError> {
    let Some(requested) = requested else {
        return Ok(registered);
    };
    let requested = Scopes::parse(requested).map_err(|unknown| ScopeError::Unknown(unknown.0))?;
    if requested.is_empty() {
        return Err(ScopeError::Empty);
    }
    match requested.without(registered).iter().next() {
        Some(scope) => Err(ScopeError::Unregistered(scope)),
        None => Ok(requested),
    }
}

/// The token's resource: the most powerful of the requested resources, or the whole API if none is requested (RFC 8707
/// §2.2). An address that does not belong to this API makes the whole request fail.
fn resource(named: &[String], base_url: &str) -> Result<Resource, GrantError> {
    let mut wanted = Vec::new();
    for text in named {
        let known = Resource::ALL.into_iter().find(|resource| same_address(text, &resource.address(base_url)));
        wanted.push(known.ok_or_else(|| GrantError::Resource {
            resource: text.clone(),
            known: Resource::ALL.map(|resource| resource.address(base_url)).join(" and "),
        })?);
    }
    let most = Resource::ALL.into_iter().find(|resource| wanted.contains(resource));
    Ok(most.unwrap_or(Resource::Api))
}

/// A string from a client, truncated.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Whether a client means this address. The case of the scheme and host does not matter, and the path `/` equals an
/// empty path (RFC 3986 §6.2.3), since libraries differ in how they write them.
fn same_address(text: &str, address: &str) -> bool {
    text == address || matches!((Url::parse(text), Url::parse(address)), (Ok(text), Ok(address)) if text == address)
}

impl From<GrantError> for Problem {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Client(error) => error.into(),
            GrantError::UnsupportedGrant => {
                let detail = "This grant is not supported; use grant_type=client_credentials.";
                Self::new(ProblemKind::UnsupportedGrantType, detail)
            }
            GrantError::Resource { .. } => Self::new(ProblemKind::InvalidTarget, error.to_string()),
            GrantError::Scope(error) => Self::new(ProblemKind::InvalidScope, error.to_string()),
            GrantError::Issuer(error) => error.into(),
            GrantError::NotIssued(_) | GrantError::TooLong => Self::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://api.example.com";

    #[test]
    fn a_resource_is_recognised_in_every_spelling_that_libraries_use() {
        let of = |named: &[&str]| resource(&named.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), BASE);
        for whole in [&[][..], &[BASE], &["https://api.example.com/"], &["HTTPS://API.example.com:443"]] {
            assert_eq!(of(whole).expect("a resource"), Resource::Api, "{whole:?}");
        }
        for agents in [&["https://api.example.com/mcp"][..], &["https://API.example.com/mcp"; 2]] {
            assert_eq!(of(agents).expect("a resource"), Resource::Mcp, "{agents:?}");
        }
        assert_eq!(of(&["https://api.example.com/mcp", BASE]).expect("both"), Resource::Api);
        for bad in [
            "https://example.com",
            "http://api.example.com",
            "https://api.example.com/mcp/",
            "https://api.example.com/mcp#fragment",
            "https://api.example.com/mcp?a=b",
            "https://api.example.com/MCP",
            "https://api.example.com/api",
            "mcp",
            "/mcp",
            "https://",
        ] {
            let problem = Problem::from(of(&[BASE, bad]).expect_err(bad));
            assert_eq!(problem.kind, ProblemKind::InvalidTarget, "{bad}");
            let names_both =
                problem.detail.contains(bad) && problem.detail.contains("and https://api.example.com/mcp.");
            assert!(names_both, "{problem:?}");
        }
    }

    #[test]
    fn a_scope_that_cannot_be_granted_fails_the_whole_request() {
        let registered = Scopes::parse("booking.read booking.write").expect("scopes");
        assert_eq!(granted(None, registered).expect("all"), registered);
        assert_eq!(granted(Some("booking.read booking.read"), registered).expect("one").to_string(), "booking.read");
        for (bad, detail) in [
            ("booking.read booking.remove", "The application is not registered for the scope booking.remove."),
            (" ", "The scope parameter is empty; omit it to get all the application's scopes."),
        ] {
            let problem = Problem::from(GrantError::from(granted(Some(bad), registered).expect_err(bad)));
            assert_eq!((problem.kind, problem.detail.as_str()), (ProblemKind::InvalidScope, detail), "{bad}");
        }
        for (bad, said) in [
            ("booking.read nonsense", "`nonsense` is unknown; all scopes"),
            ("booking.*", "`booking.*` is unknown (did you mean booking."),
            ("BOOKING.READ", "`BOOKING.READ` is unknown (did you mean booking.read"),
        ] {
            let problem = Problem::from(GrantError::from(granted(Some(bad), registered).expect_err(bad)));
            assert_eq!(problem.kind, ProblemKind::InvalidScope);
            assert!(problem.detail.contains(said), "{}", problem.detail);
        }
    }
}
