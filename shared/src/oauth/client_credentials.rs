//! The client_credentials grant: authenticate the application, decide the scopes, issue the token.

use http::header::{CACHE_CONTROL, PRAGMA};
use serde::Serialize;

use super::{
    form::{TokenRequest, unauthenticated},
    issuer::Issuer,
};
use crate::{
    applications::Applications,
    auth::{
        scope::Scopes,
        token::{self, Audience, Claims},
    },
    clock::SharedClock,
    http::{Call, Problem, ProblemKind, Reply},
    random::SharedRandom,
};

/// Everything that the grant needs.
pub struct ClientCredentials {
    /// The applications, by client identifier.
    pub applications: Applications,
    /// The key and the pepper.
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

/// RFC 6749 §5.1.
#[derive(Debug, Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: u32,
    scope: String,
}

impl ClientCredentials {
    /// Answers a token request.
    pub async fn grant(&self, call: &Call) -> Result<Reply, Problem> {
        let request = TokenRequest::read(call.headers(), &call.body)?;
        let secrets = self.issuer.get().await?;
        let found = self.applications.find(&request.client_id).await?;
        // The hash is computed and compared also for a client that does not exist, so that time tells nothing.
        let application = match found {
            Some(application) if application.accepts(&request.client_secret, &secrets.pepper, self.clock.now()) => {
                application
            }
            Some(_) => return Err(unauthenticated(request.by_basic)),
            None => {
                Applications::compare_with_nothing(&request.client_secret, &secrets.pepper);
                return Err(unauthenticated(request.by_basic));
            }
        };
        if request.grant_type != "client_credentials" {
            let detail = "This grant is not supported; use grant_type=client_credentials.";
            return Err(Problem::new(ProblemKind::UnsupportedGrantType, detail));
        }
        let claims = Claims {
            client_id: request.client_id,
            token_id: token::new_token_id(&*self.random),
            scopes: granted(request.scope.as_deref(), application.scopes)?,
            entities: application.entities,
        };
        let access_token = token::issue(&claims, &self.audience, &secrets.key, self.clock.now(), self.lifetime)
            .map_err(Problem::internal)?;
        if access_token.len() > token::MAX_LENGTH {
            return Err(Problem::internal("the application has more managing entities than a token can carry"));
        }
        tracing::info!(clientId = claims.client_id, tokenId = claims.token_id, scope = %claims.scopes, "issued a token");
        let response = TokenResponse {
            access_token,
            token_type: "Bearer",
            expires_in: self.lifetime,
            scope: claims.scopes.to_string(),
        };
        Ok(Reply::ok(&response)?.with_header(CACHE_CONTROL, "no-store").with_header(PRAGMA, "no-cache"))
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
