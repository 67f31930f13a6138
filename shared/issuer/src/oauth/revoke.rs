//! Revocation (RFC 7009): a client ends one of its tokens before its time.

use std::sync::Arc;

use super::{
    client_authentication::{ClientAuthentication, RequestContext},
    token_form::{TokenForm, TokenFormError},
};
use auth::{Resource, Scope, Unverified, Verifier};
use base::Time;

/// Revokes tokens for clients.
pub struct Revocation {
    /// Authenticates the client that asks.
    pub clients: ClientAuthentication,
    /// Verifies the token, and revokes it.
    pub tokens: Arc<Verifier>,
}

impl Revocation {
    /// Revokes a token: it is revoked when this returns, however many were revoked before. A token
    /// that is not good, or no longer, needs no revocation (RFC 7009 §2.2).
    pub async fn revoke(
        &self,
        form: &TokenForm,
        request: &RequestContext<'_>,
        now: Time,
    ) -> Result<(), TokenFormError> {
        let client = self.clients.authenticate(&form.credentials, request, now).await?;
        // Every token is good at this resource.
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
