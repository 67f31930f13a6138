//! Token revocation by clients (RFC 7009).

use std::sync::Arc;

use super::{
    client_authentication::{ClientAuthentication, RequestContext},
    token_form::{TokenForm, TokenFormError},
};
use auth::{Resource, Scope, Unverified, Verifier};
use base::Time;

/// Revokes tokens for clients.
pub struct Revocation {
    /// Authenticates the requesting client.
    pub clients: ClientAuthentication,
    /// Verifies the token and revokes it.
    pub tokens: Arc<Verifier>,
}

impl Revocation {
    /// Revokes a token. When this returns, the revocation is stored. No limit prevents it. An invalid token needs no
    /// revocation (RFC 7009 §2.2).
    pub async fn revoke(
        &self,
        form: &TokenForm,
        request: &RequestContext<'_>,
        now: Time,
    ) -> Result<(), TokenFormError> {
        let client = self.clients.authenticate(&form.credentials, request, now).await?;
        // Every token is valid at this resource.
        let claims = match self.tokens.verify(&form.token, Resource::Mcp).await {
            Ok(claims) => claims,
            Err(Unverified::Fault(_)) => return Ok(()),
            Err(Unverified::Table(error)) => return Err(error.into()),
        };
        request.notes.subject(&claims.token_id);
        if !client.may_ask_about(&claims, Scope::AccountRemove) {
            return Err(TokenFormError::Foreign);
        }
        Ok(self.tokens.revoke(&claims, client.application.accountable()).await?)
    }
}
