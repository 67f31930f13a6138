//! Token verification: form, signature, claims and revocation.

use std::pin::Pin;

use super::{
    keys::KeyCache,
    resource::Resource,
    revocations::Revocations,
    token::{Audience, Claims, Presented, TokenFault},
};
use crate::{
    refusal,
    remembered::{self, Remembered},
};
use base::SharedClock;
use problem::Problem;
use storage::TableError;

/// Verifies tokens.
pub struct Verifier {
    keys: KeyCache,
    revocations: Revocations,
    audience: Audience,
    clock: SharedClock,
    remembered: Remembered,
}

/// Why a token was not verified.
#[derive(Debug, thiserror::Error)]
pub enum Unverified {
    /// The token is not accepted.
    #[error(transparent)]
    Fault(#[from] TokenFault),
    /// The keys or the revocations could not be read.
    #[error("a token could not be verified")]
    Table(#[from] TableError),
}

impl Verifier {
    /// Creates a verifier for this audience, with these keys and this list of revocations.
    pub fn new(keys: KeyCache, revocations: Revocations, audience: Audience, clock: SharedClock) -> Self {
        Self { keys, revocations, audience, clock, remembered: Remembered::default() }
    }

    /// Reads keys and revocations before the first request. A failure is logged, and the first request tries again.
    ///
    /// Boxed like [`base::refreshed::Reading`], so that its code is generated here rather than in each function.
    pub fn warm_up(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // Sequential, because opening a second connection takes longer than a round trip.
        Box::pin(async {
            self.keys.warm_up().await;
            self.revocations.warm_up().await;
        })
    }

    /// Verifies a token at this resource and returns its claims. A revocation takes effect within a minute while the
    /// table is reachable. Otherwise, the list in memory is used until it is five minutes old; after that, this fails.
    pub async fn verify(&self, token: &str, at: Resource) -> Result<Claims, Unverified> {
        let claims = self.validate(token, at).await?;
        unless_revoked(self.revocations.revoked(&claims).await?, claims)
    }

    /// Verifies a token at this resource against the table's current revocations, at the cost of a read.
    pub async fn verify_with_fresh_revocations(&self, token: &str, at: Resource) -> Result<Claims, Unverified> {
        let claims = self.validate(token, at).await?;
        unless_revoked(self.revocations.revoked_by_fresh_list(&claims).await?, claims)
    }

    /// Revokes a verified token for an application whose actions count towards this account: immediately in this
    /// process, and everywhere within a minute while the table is reachable.
    pub async fn revoke(&self, claims: &Claims, account: &str) -> Result<(), TableError> {
        self.revocations.revoke(claims, account).await
    }

    /// The keys that verify tokens.
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
        let claims = self.claims(token).await?;
        if claims.resource.opens(at) { Ok(claims) } else { Err(TokenFault::Audience.into()) }
    }

    async fn claims(&self, token: &str) -> Result<Claims, Unverified> {
        let hash = remembered::hash(token);
        if let Some(found) = self.remembered.get(&hash) {
            let keys = self.keys.for_key(found.kid()).await?;
            if let Some(claims) = found.still_good(&keys, self.clock.now()) {
                return Ok(claims);
            }
        }
        let token = Presented::parse(token)?;
        let keys = self.keys.for_key(token.kid()).await?;
        let claims = token.validate(&keys, &self.audience, self.clock.now())?;
        self.remembered.keep(hash, &keys, &claims);
        Ok(claims)
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
