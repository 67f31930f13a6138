//! Introspection (RFC 7662): what a token is good for at this moment.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, PRAGMA};
use serde::Serialize;

use super::{client_authentication::ClientAuthentication, credentials::Credentials, form::Form, may_ask_about};
use auth::{
    entity::Entities,
    scope::Scope,
    token::{Audience, Claims},
    verifier::{Unverified, Verifier},
};
use gate::{Call, Reply};
use problem::Problem;

/// Everything that an introspection needs.
pub struct Introspection {
    /// Who may ask.
    pub clients: ClientAuthentication,
    /// What tells good tokens.
    pub tokens: Arc<Verifier>,
}

/// RFC 7662 §2.2. Of a token that is not active nothing else is told.
#[derive(Debug, Serialize)]
struct Introspected<'a> {
    active: bool,
    #[serde(flatten)]
    token: Option<Active<'a>>,
}

#[derive(Debug, Serialize)]
struct Active<'a> {
    token_type: &'static str,
    scope: String,
    client_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_id: Option<&'a str>,
    sub: &'a str,
    aud: &'a str,
    iss: &'a str,
    iat: i64,
    exp: i64,
    jti: &'a str,
    managing_entities: &'a Entities,
}

impl<'a> Active<'a> {
    fn of(claims: &'a Claims, audience: &'a Audience) -> Self {
        Self {
            token_type: "Bearer",
            scope: claims.scopes.to_string(),
            client_id: &claims.client_id,
            credential_id: claims.credential_id.as_deref(),
            sub: &claims.client_id,
            aud: &audience.audience,
            iss: &audience.issuer,
            iat: claims.issued.as_seconds(),
            exp: claims.expires.as_seconds(),
            jti: &claims.token_id,
            managing_entities: &claims.entities,
        }
    }
}

impl Introspection {
    /// Answers a question about a token. What is said of its being revoked is never old. Another application's token looks
    /// like one that is not active, but to a platform-wide application that may read accounts.
    ///
    /// # Errors
    /// 400 when no token came; what authenticating the client can fail with; 503 when nobody can say.
    pub async fn introspect(&self, call: &Call) -> Result<Reply, Problem> {
        let mut form = Form::read(call.headers(), &call.body)?;
        let credentials = Credentials::read(call.headers(), &mut form)?;
        let token = form.required("token", "The parameter token is missing: the access token to look at.")?;
        let client = self.clients.authenticate(call, credentials).await?.application;
        let claims = match self.tokens.verify_by_now(&token).await {
            Ok(claims) => Some(claims).filter(|claims| may_ask_about(&client, claims, Scope::AccountRead)),
            Err(Unverified::Fault(_)) => None,
            Err(Unverified::Table(error)) => return Err(error.into()),
        };
        if let Some(claims) = &claims {
            call.notes.subject(&claims.token_id);
        }
        let token = claims.as_ref().map(|claims| Active::of(claims, self.tokens.audience()));
        let reply = Reply::ok(&Introspected { active: token.is_some(), token })?;
        Ok(reply.with_header(CACHE_CONTROL, "no-store").with_header(PRAGMA, "no-cache"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_token_that_is_not_active_nothing_else_is_told() {
        let told = serde_json::to_string(&Introspected { active: false, token: None }).expect("JSON");
        assert_eq!(told, r#"{"active":false}"#);
    }
}
