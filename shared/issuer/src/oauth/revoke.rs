//! Revocation (RFC 7009): a client ends one of its tokens before its time.

use std::sync::Arc;

use super::{
    client_authentication::{AuthenticationError, ClientAuthentication, RequestContext},
    token_form::TokenForm,
};
use auth::{Scope, Unverified, Verifier};
use base::Time;
use problem::{Problem, ProblemKind};
use storage::TableError;

/// Revokes tokens for clients.
pub struct Revocation {
    /// Authenticates the client that asks.
    pub clients: ClientAuthentication,
    /// Verifies the token, and revokes it.
    pub tokens: Arc<Verifier>,
}

/// Why a token was not revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// The client was not authenticated.
    #[error(transparent)]
    Client(#[from] AuthenticationError),
    /// The token was issued to another application.
    #[error("the token was issued to another application")]
    Foreign,
    /// The table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Revocation {
    /// Revokes a token: it is revoked when this returns, however many were revoked before. A token
    /// that is not good, or no longer, needs no revocation (RFC 7009 §2.2).
    pub async fn revoke(&self, wanted: &TokenForm, request: &RequestContext<'_>, now: Time) -> Result<(), RevokeError> {
        let client = self.clients.authenticate(&wanted.credentials, request, now).await?;
        let claims = match self.tokens.verify(&wanted.token).await {
            Ok(claims) => claims,
            Err(Unverified::Fault(_)) => return Ok(()),
            Err(Unverified::Table(error)) => return Err(error.into()),
        };
        request.notes.subject(&claims.token_id);
        if !client.may_ask_about(&claims, Scope::AccountRemove) {
            return Err(RevokeError::Foreign);
        }
        Ok(self.tokens.revoke(&claims, client.application.accountable()).await?)
    }
}

impl From<RevokeError> for Problem {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Client(error) => error.into(),
            RevokeError::Foreign => {
                let detail =
                    "The token was issued to another application; an application can revoke its own tokens only.";
                Self::new(ProblemKind::ForeignToken, detail)
            }
            RevokeError::Table(error) => error.into(),
        }
    }
}
