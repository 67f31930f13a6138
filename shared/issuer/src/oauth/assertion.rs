//! Client assertions: a JWT that an application signs to prove its identity (RFC 7523 §3), good for
//! one request.
//!
//! Everything but the signature and the single use is checked before the application is even looked
//! for, so that nothing of it tells whether there is one.

use std::{sync::LazyLock, time::Duration};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::applications::client_key::{ClientKey, MAX_KEYS};
use auth::jws::{Header, Jws, JwsFault, algorithm, present};
use auth::token::OneOrMore;
use base::Time;
use storage::SecretText;
use storage::table::{Put, Table, TableError, Written, is, is_new};

/// The one `client_assertion_type` (RFC 7523 §2.2).
pub const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The longest assertion, in bytes: more than all claims and a signature of the largest key take.
const LONGEST: usize = 8 * 1024;
/// The kinds of text that an assertion may call itself; or none. Never an access token.
const TYPES: [&str; 3] = ["JWT", "client-authentication+jwt", "application/client-authentication+jwt"];
/// How far ahead an assertion's end may be, in seconds: an hour, for a client whose clock is a
/// minute ahead.
const LONGEST_LIFE: f64 = 3660.0;
/// How far ahead a client's clock may be, in seconds, where it says when the assertion was made or
/// begins.
const CLOCK_SKEW: f64 = 60.0;
/// How long an identifier is remembered: longer than any assertion that bears it is good.
const MEMORY: Duration = Duration::from_secs(2 * 60 * 60);

/// An assertion of the right form. Nothing of it is to be trusted before the signature is verified.
#[derive(Debug)]
pub struct ClientAssertion {
    text: SecretText,
    claims: Claims,
}

/// Its claims. A struct and not a map, so that a member that comes twice is an error.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMore,
    // Seconds since the epoch, perhaps with a fraction (RFC 7519 §2).
    exp: f64,
    #[serde(default, deserialize_with = "present")]
    iat: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<f64>,
    jti: String,
}

/// Why an assertion is not accepted. For the log: the answer says only that the client was not
/// authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssertionFault {
    /// It is not signed text of the right form.
    #[error("the assertion is malformed")]
    Malformed(#[from] JwsFault),
    /// It is some other kind of JWT.
    #[error("the assertion has a type of something else")]
    Type,
    /// It was made by another than it is about, or about another than is asking.
    #[error("the assertion's issuer, its subject and the client are not one and the same")]
    Subject,
    /// It names another audience than this issuer, alone or beside it.
    #[error("the assertion has another audience")]
    Audience,
    /// It is over, begins later, or would be good for too long.
    #[error("the assertion is expired, not yet valid, or valid for too long")]
    Time,
    /// Its `jti` is none.
    #[error("the assertion's identifier is empty or too long")]
    Identifier,
    /// None of the application's keys made its signature.
    #[error("no key of the application verifies the assertion")]
    Signature,
    /// It was shown before.
    #[error("the assertion was used before")]
    Replayed,
}

impl ClientAssertion {
    /// Reads an assertion.
    pub fn read(text: String) -> Result<Self, AssertionFault> {
        let jws = Jws::parse(&text, LONGEST)?;
        if jws.header().typ.as_ref().is_some_and(|typ| !TYPES.iter().any(|known| typ.eq_ignore_ascii_case(known))) {
            return Err(AssertionFault::Type);
        }
        let claims: Claims = jws.claims()?;
        if claims.iss != claims.sub || claims.sub.is_empty() {
            return Err(AssertionFault::Subject);
        }
        if !(1..=256).contains(&claims.jti.chars().count()) {
            return Err(AssertionFault::Identifier);
        }
        Ok(Self { text: SecretText::new(text), claims })
    }

    /// The client that made it, by its own words.
    pub fn client_id(&self) -> &str {
        &self.claims.sub
    }

    /// Checks its times and its audience; each of these addresses is ours.
    pub fn check(&self, ours: &[&str], now: Time) -> Result<(), AssertionFault> {
        let for_us = match &self.claims.aud {
            OneOrMore::One(audience) => ours.contains(&audience.as_str()),
            OneOrMore::More(all) => !all.is_empty() && all.iter().all(|audience| ours.contains(&audience.as_str())),
        };
        if !for_us {
            return Err(AssertionFault::Audience);
        }
        let now = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0)).as_secs_f64();
        let begun = |time: Option<f64>| time.is_none_or(|time| time <= now + CLOCK_SKEW);
        let ends = self.claims.exp > now && self.claims.exp <= now + LONGEST_LIFE;
        if ends && begun(self.claims.iat) && begun(self.claims.nbf) { Ok(()) } else { Err(AssertionFault::Time) }
    }

    /// The key that made its signature. As many keys are tried as an application may have, or one
    /// if a key is named. Decoys stand in for missing keys, so that time tells neither whether
    /// there is an application nor how it proves itself.
    pub fn signer<'k>(&self, keys: &'k [ClientKey]) -> Result<&'k ClientKey, AssertionFault> {
        let jws = Jws::parse(self.text.expose(), LONGEST)?;
        let verifies =
            |key: &&ClientKey| key.public().is_ok_and(|public| jws.verify(&public, key.algorithms()).is_ok());
        let (theirs, decoys) = candidates(jws.header(), keys);
        theirs.into_iter().find(verifies).ok_or_else(|| {
            std::hint::black_box(decoys.into_iter().filter(verifies).count());
            AssertionFault::Signature
        })
    }
}

/// The keys that may have made a signature, and as many decoys as keys are missing.
fn candidates<'k>(header: &Header, keys: &'k [ClientKey]) -> (Vec<&'k ClientKey>, Vec<&'static ClientKey>) {
    let algorithm = algorithm(&header.alg);
    let fits = |key: &&ClientKey| algorithm.is_some_and(|algorithm| key.algorithms().contains(&algorithm));
    let named = |key: &&ClientKey| header.kid.as_ref().is_none_or(|kid| *kid == key.kid);
    let tried = if header.kid.is_some() { 1 } else { MAX_KEYS };
    let theirs: Vec<_> = keys.iter().filter(named).filter(fits).collect();
    let missing = tried.saturating_sub(theirs.len());
    (theirs, DECOYS.iter().filter(fits).cycle().take(missing).collect())
}

/// Reads the decoys, so that the first request with an assertion need not.
pub fn prepare() {
    LazyLock::force(&DECOYS);
}

/// Public keys without private halves, one of each type.
static DECOYS: LazyLock<Vec<ClientKey>> = LazyLock::new(|| {
    let keys: Vec<_> = serde_json::from_str(include_str!("decoys.json")).unwrap_or_default();
    keys.iter().filter_map(|key| ClientKey::parse(key, Time::from_millis(0)).ok()).collect()
});

/// The assertions that were shown, by application and identifier: `ASSERTION#{client}` / hash of
/// the identifier.
#[derive(Debug, Clone)]
pub struct UsedAssertions(Table);

impl UsedAssertions {
    /// The assertions in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Notes that a request shows an assertion, which must have been verified before: strangers
    /// must write nothing here. Lost when another request showed it.
    pub async fn note(
        &self,
        assertion: &ClientAssertion,
        request_id: &str,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        const DOING: &str = "noting an assertion";
        let identifier = digest::digest(&digest::SHA256, assertion.claims.jti.as_bytes());
        let used = UsedAssertion {
            pk: format!("ASSERTION#{}", assertion.client_id()),
            sk: BASE64_URL_SAFE_NO_PAD.encode(identifier),
            request: request_id,
            expires_at: (now + MEMORY).as_seconds(),
        };
        // The same request may write again when only the answer was lost.
        let put = Put::item(&used, DOING)?.only_if(is_new().or(is("request", request_id)));
        self.0.write(put, DOING).await
    }
}

/// The item in the table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsedAssertion<'a> {
    pk: String,
    sk: String,
    request: &'a str,
    expires_at: i64,
}

#[cfg(test)]
#[path = "assertion_tests.rs"]
mod tests;
