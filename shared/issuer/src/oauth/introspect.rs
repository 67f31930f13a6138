//! Introspection (RFC 7662): whether a token is active, and its claims.

use std::sync::Arc;

use serde::Serialize;

use super::{
    client_authentication::{ClientAuthentication, RequestContext},
    token_form::{TokenForm, TokenFormError},
};
use auth::{Audience, Claims, Entities, Resource, Scope, Unverified, Verifier};
use base::Time;

/// Responds to introspection requests.
pub struct Introspection {
    /// Authenticates the requesting client.
    pub clients: ClientAuthentication,
    /// Verifies the token.
    pub tokens: Arc<Verifier>,
}

/// The response (RFC 7662 §2.2). For an inactive token, it has no other member.
#[derive(Debug, Serialize)]
pub struct Introspected {
    active: bool,
    #[serde(flatten)]
    token: Option<Active>,
}

#[derive(Debug, Serialize)]
struct Active {
    token_type: &'static str,
    scope: String,
    client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_id: Option<String>,
    sub: String,
    aud: String,
    iss: String,
    iat: i64,
    exp: i64,
    jti: String,
    managing_entities: Entities,
    may_publish: bool,
}

impl Active {
    fn of(claims: Claims, audience: &Audience) -> Self {
        Self {
            token_type: "Bearer",
            scope: claims.scopes.to_string(),
            client_id: claims.client_id.clone(),
            credential_id: claims.credential_id,
            sub: claims.client_id,
            aud: claims.resource.address(&audience.base_url),
            iss: audience.issuer.clone(),
            iat: claims.issued.as_seconds(),
            exp: claims.expires.as_seconds(),
            jti: claims.token_id,
            managing_entities: claims.entities,
            may_publish: claims.may_publish,
        }
    }
}

impl Introspection {
    /// Responds to a request about a token. Revocations are read for each request, so that the response is never stale.
    /// Another application's token looks inactive, except to a platform-wide application with the `account.read` scope.
    pub async fn introspect(
        &self,
        form: &TokenForm,
        request: &RequestContext<'_>,
        now: Time,
    ) -> Result<Introspected, TokenFormError> {
        let client = self.clients.authenticate(&form.credentials, request, now).await?;
        // Every token is valid at this resource.
        let claims = match self.tokens.verify_with_fresh_revocations(&form.token, Resource::Mcp).await {
            Ok(claims) => Some(claims).filter(|claims| client.may_ask_about(claims, Scope::AccountRead)),
            Err(Unverified::Fault(_)) => None,
            Err(Unverified::Table(error)) => return Err(error.into()),
        };
        if let Some(claims) = &claims {
            request.notes.subject(&claims.token_id);
        }
        let token = claims.map(|claims| Active::of(claims, self.tokens.audience()));
        Ok(Introspected { active: token.is_some(), token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_about_an_inactive_token_has_no_other_member() {
        let answer = serde_json::to_string(&Introspected { active: false, token: None }).expect("JSON");
        assert_eq!(answer, r#"{"active":false}"#);
    }
}
