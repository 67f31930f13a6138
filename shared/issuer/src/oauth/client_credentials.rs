//! The client_credentials grant: authenticate the application, decide the scopes, issue the token.

use std::time::Duration;

use http::header::{CACHE_CONTROL, PRAGMA};
use serde::Serialize;

use super::{
    client_authentication::{Authenticated, ClientAuthentication},
    credentials::Credentials,
    form::Form,
    issuer::Issuer,
};
use auth::{
    scope::Scopes,
    token::{self, Audience, Claims},
};
use base::{clock::SharedClock, random::SharedRandom};
use gate::{Call, Reply};
use problem::{Problem, ProblemKind};

/// Everything that the grant needs.
pub struct ClientCredentials {
    /// Says who is asking.
    pub clients: ClientAuthentication,
    /// Signs.
    pub issuer: Issuer,
    /// What tokens say of the issuer and their audience.
    pub audience: Audience,
    /// Seconds that a token lives.
    pub lifetime: u32,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// RFC 6749 §5.1. Without `Debug`: nobody is to print a token.
#[derive(Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: u32,
    scope: String,
}

impl ClientCredentials {
    /// Answers a token request.
    pub async fn grant(&self, call: &Call) -> Result<Reply, Problem> {
        let mut form = Form::read(call.headers(), &call.body)?;
        let missing = "The parameter grant_type is missing; it must be client_credentials.";
        let (grant_type, scope) = (form.required("grant_type", missing)?, form.take("scope"));
        let credentials = Credentials::read(call.headers(), &mut form)?;
        let client = self.clients.authenticate(call, credentials).await?;
        if grant_type != "client_credentials" {
            let detail = "This grant is not supported; use grant_type=client_credentials.";
            return Err(Problem::new(ProblemKind::UnsupportedGrantType, detail));
        }
        let scopes = granted(scope.as_deref(), client.application.scopes)?;
        let response = self.issue(call, client, scopes).await?;
        Ok(Reply::ok(&response)?.with_header(CACHE_CONTROL, "no-store").with_header(PRAGMA, "no-cache"))
    }

    async fn issue(&self, call: &Call, client: Authenticated, scopes: Scopes) -> Result<TokenResponse, Problem> {
        let Authenticated { application, credential } = client;
        let issued = self.clock.now();
        let expires = issued + Duration::from_secs(self.lifetime.into());
        let keys = self.issuer.keys_until(expires).await?;
        let claims = Claims {
            client_id: application.client_id,
            credential_id: Some(credential.id),
            token_id: token::new_token_id(&*self.random),
            key_id: keys.current.kid().to_owned(),
            scopes,
            entities: application.entities,
            issued,
            expires,
        };
        let access_token = token::issue(&claims, &self.audience, &keys.current).map_err(Problem::internal)?;
        if access_token.len() > token::MAX_LENGTH {
            return Err(Problem::internal("the application has more managing entities than a token can carry"));
        }
        call.notes.subject(&claims.token_id);
        let scope = claims.scopes.to_string();
        Ok(TokenResponse { access_token, token_type: "Bearer", expires_in: self.lifetime, scope })
    }
}

/// The scopes of a token: those that were asked for, or all that the application has. One that cannot be granted fails
/// the whole request.
fn granted(requested: Option<&str>, registered: Scopes) -> Result<Scopes, Problem> {
    let refused = |detail: String| Problem::new(ProblemKind::InvalidScope, detail);
    let Some(requested) = requested else {
        return Ok(registered);
    };
    let requested = Scopes::parse(requested)
        .map_err(|unknown| refused(format!("There is no scope named {}.", shown(&unknown.0))))?;
    if requested.is_empty() {
        return Err(refused(
            "The scope parameter names no scope; leave it out to get all of the application's.".to_owned(),
        ));
    }
    match requested.without(registered).iter().next() {
        Some(scope) => Err(refused(format!("The application is not registered for the scope {scope}."))),
        None => Ok(requested),
    }
}

/// A stranger's text, cut short.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_that_cannot_be_granted_fails_the_whole_request() {
        let registered = Scopes::parse("booking.read booking.write").expect("scopes");
        assert_eq!(granted(None, registered).expect("all"), registered);
        assert_eq!(granted(Some("booking.read booking.read"), registered).expect("one").to_string(), "booking.read");
        for bad in ["booking.read booking.remove", "booking.read nonsense", "booking.*", "BOOKING.READ"] {
            assert_eq!(granted(Some(bad), registered).expect_err(bad).kind, ProblemKind::InvalidScope, "{bad}");
        }
    }
}
