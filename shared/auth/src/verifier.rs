//! The verification of a token: form, signature, claims, and that it is not revoked.

use super::{
    keys::KeyCache,
    resource::Resource,
    revocations::Revocations,
    token::{Audience, Claims, Presented, TokenFault},
};
use crate::refusal;
use base::SharedClock;
use problem::Problem;
use storage::TableError;

/// Verifies tokens.
pub struct Verifier {
    keys: KeyCache,
    revocations: Revocations,
    audience: Audience,
    clock: SharedClock,
}

/// Why a token was not verified.
#[derive(Debug, thiserror::Error)]
pub enum Unverified {
    /// The token is not good.
    #[error(transparent)]
    Fault(#[from] TokenFault),
    /// The keys or the revocations could not be read.
    #[error("a token could not be verified")]
    Table(#[from] TableError),
}

impl Verifier {
    /// Verifies tokens for this audience, with these keys and this list of revocations.
    pub fn new(keys: KeyCache, revocations: Revocations, audience: Audience, clock: SharedClock) -> Self {
        Self { keys, revocations, audience, clock }
    }

    /// Reads keys and revocations before the first request, in the time that one of them takes. A
    /// failure is logged, and tried again by the first request.
    pub async fn warm_up(&self) {
        tokio::join!(self.keys.warm_up(), self.revocations.warm_up());
    }

    /// The claims of a token that is good at this resource. A revocation counts within a minute.
    pub async fn verify(&self, token: &str, at: Resource) -> Result<Claims, Unverified> {
        let claims = self.validate(token, at).await?;
        unless_revoked(self.revocations.revoked(&claims).await?, claims)
    }

    /// The same by the revocations at this moment, at the price of a read.
    pub async fn verify_by_now(&self, token: &str, at: Resource) -> Result<Claims, Unverified> {
        let claims = self.validate(token, at).await?;
        unless_revoked(self.revocations.revoked_by_now(&claims).await?, claims)
    }

    /// Revokes a verified token, by an application that is counted on this account: here at once,
    /// and everywhere within a minute.
    pub async fn revoke(&self, claims: &Claims, account: &str) -> Result<(), TableError> {
        self.revocations.revoke(claims, account).await
    }

    /// The keys that vouch for tokens.
    pub fn keys(&self) -> &KeyCache {
        &self.keys
    }

    /// The list of revocations.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// The issuer and the audience of tokens.
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    async fn validate(&self, token: &str, at: Resource) -> Result<Claims, Unverified> {
        let token = Presented::parse(token)?;
        let keys = self.keys.for_key(token.kid()).await?;
        let claims = token.validate(&keys, &self.audience, self.clock.now())?;
        if claims.resource.opens(at) { Ok(claims) } else { Err(TokenFault::Audience.into()) }
    }
}

fn unless_revoked(revoked: bool, claims: Claims) -> Result<Claims, Unverified> {
    if revoked { Err(TokenFault::Revoked.into()) } else { Ok(claims) }
}

impl From<Unverified> for Problem {
    fn from(error: Unverified) -> Self {
        match error {
            Unverified::Fault(fault) => refusal::bad_token(fault),
            Unverified::Table(error) => error.into(),
        }
    }
}
