//! Whether a token is good: its form, its signature and what it says, and that nobody has revoked it.

use super::{
    keys::KeyCache,
    revocations::Revocations,
    token::{Audience, Claims, Presented, TokenFault},
};
use crate::refusal;
use base::clock::SharedClock;
use problem::Problem;
use storage::table::TableError;

/// Verifies tokens.
pub struct Verifier {
    keys: KeyCache,
    revocations: Revocations,
    audience: Audience,
    clock: SharedClock,
}

/// Why a token is not known to be good.
#[derive(Debug, thiserror::Error)]
pub enum Unverified {
    /// It is not.
    #[error(transparent)]
    Fault(#[from] TokenFault),
    /// Nobody can say at the moment.
    #[error("a token could not be verified")]
    Table(#[from] TableError),
}

impl Verifier {
    /// Verifies with these keys and by this list what was issued for this audience.
    pub fn new(keys: KeyCache, revocations: Revocations, audience: Audience, clock: SharedClock) -> Self {
        Self { keys, revocations, audience, clock }
    }

    /// Reads keys and revocations before the first request, in the time that one of them takes. A failure is logged, and
    /// tried again by the first request.
    pub async fn warm_up(&self) {
        tokio::join!(self.keys.warm_up(), self.revocations.warm_up());
    }

    /// What a good token says. One that was revoked is known for it within a minute.
    pub async fn verify(&self, token: &str) -> Result<Claims, Unverified> {
        let claims = self.validate(token).await?;
        unless_revoked(self.revocations.revoked(&claims).await?, claims)
    }

    /// The same by what is revoked at this moment, at the price of a read.
    pub async fn verify_by_now(&self, token: &str) -> Result<Claims, Unverified> {
        let claims = self.validate(token).await?;
        unless_revoked(self.revocations.revoked_by_now(&claims).await?, claims)
    }

    /// Revokes a verified token, by an application that is counted on this account: here at once, and everywhere within a minute.
    pub async fn revoke(&self, claims: &Claims, account: &str) -> Result<(), TableError> {
        self.revocations.revoke(claims, account).await
    }

    /// The keys that vouch for tokens.
    pub fn keys(&self) -> &KeyCache {
        &self.keys
    }

    /// What is revoked.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Whom tokens are from and for.
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    async fn validate(&self, token: &str) -> Result<Claims, Unverified> {
        let token = Presented::parse(token)?;
        let keys = self.keys.for_key(token.kid()).await?;
        Ok(token.validate(&keys, &self.audience, self.clock.now())?)
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
