//! Revocation (RFC 7009): a client ends one of its tokens before its time.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, PRAGMA};

use super::{client_authentication::ClientAuthentication, credentials::Credentials, form::Form, may_ask_about};
use auth::{
    scope::Scope,
    verifier::{Unverified, Verifier},
};
use gate::{Call, Reply};
use problem::{Problem, ProblemKind};

/// Everything that a revocation needs.
pub struct Revocation {
    /// Who may ask.
    pub clients: ClientAuthentication,
    /// What tells good tokens, and ends them.
    pub tokens: Arc<Verifier>,
}

impl Revocation {
    /// Answers a request to revoke a token: it is revoked when this says so, however many were before. One that is not good, or no
    /// longer, needs no revocation (RFC 7009 §2.2).
    ///
    /// # Errors
    /// 400 when no token came, or another application's; what authenticating the client can fail with; 503 when it cannot be
    /// written.
    pub async fn revoke(&self, call: &Call) -> Result<Reply, Problem> {
        let mut form = Form::read(call.headers(), &call.body)?;
        let credentials = Credentials::read(call.headers(), &mut form)?;
        // There is one kind of token only, so that token_type_hint says nothing.
        let token = form.required("token", "The parameter token is missing: the access token to revoke.")?;
        let client = self.clients.authenticate(call, credentials).await?.application;
        let claims = match self.tokens.verify(&token).await {
            Ok(claims) => claims,
            Err(Unverified::Fault(_)) => return Ok(revoked()),
            Err(Unverified::Table(error)) => return Err(error.into()),
        };
        call.notes.subject(&claims.token_id);
        if !may_ask_about(&client, &claims, Scope::AccountRemove) {
            return Err(foreign_token());
        }
        self.tokens.revoke(&claims, client.accountable()).await?;
        Ok(revoked())
    }
}

fn revoked() -> Reply {
    Reply::empty().with_header(CACHE_CONTROL, "no-store").with_header(PRAGMA, "no-cache")
}

/// The token was issued to another application.
fn foreign_token() -> Problem {
    let detail = "The token was issued to another application; an application can revoke its own tokens only.";
    Problem::new(ProblemKind::ForeignToken, detail)
}
