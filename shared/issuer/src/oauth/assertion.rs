//! Client assertions: JWTs that an application signs to prove its identity (RFC 7523 §3), each valid for one request.
//!
//! Everything except the signature and the single use is checked without looking at the application, so that no refusal
//! reveals whether it exists.

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

/// The only `client_assertion_type` (RFC 7523 §2.2).
pub const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The maximum length of an assertion, in bytes: more than all claims and the largest key's signature need.
const LONGEST: usize = 8 * 1024;
/// The accepted `typ` values; `typ` may also be absent. An access token's type is never accepted.
const TYPES: [&str; 3] = ["JWT", "client-authentication+jwt", "application/client-authentication+jwt"];
/// How far in the future an assertion may expire, in seconds: an hour, plus a minute for a client whose clock is ahead.
const LONGEST_LIFE: f64 = 3660.0;
/// How far a client's clock may be ahead, in seconds, for `iat` and `nbf`.
const CLOCK_SKEW: f64 = 60.0;
/// How long an identifier is remembered: longer than any assertion with it is valid.
const RETENTION: Duration = Duration::from_secs(2 * 60 * 60);

/// An assertion of the right form. Its content is untrusted until the signature is verified.
#[derive(Debug)]
pub struct ClientAssertion {
    text: SecretText,
    claims: Claims,
}

/// The claims. A struct rather than a map, so that a duplicate member is an error.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMore,
    // Seconds since the epoch, possibly with a fraction (RFC 7519 §2).
    exp: f64,
    #[serde(default, deserialize_with = "present")]
    iat: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<f64>,
    jti: String,
}

/// Why an assertion is not accepted. Only the log shows the reason: the response merely says that the client was not
/// authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssertionFault {
    /// The assertion is not a JWS of the right form.
    #[error("the assertion is malformed")]
    Malformed(#[from] JwsFault),
    /// The assertion is another kind of JWT.
    #[error("the assertion's `typ` belongs to another kind of token")]
    Type,
    /// The issuer, the subject and the requesting client differ.
    #[error("the assertion's issuer and subject are not both the client")]
    Subject,
    /// The assertion has another audience, either alone or in addition to this issuer.
    #[error("the assertion is for another audience")]
    Audience,
    /// The assertion has expired, is not valid yet, or is valid for too long.
    #[error("the assertion is expired, not valid yet, or valid for too long")]
    Time,
    /// The `jti` is empty or too long.
    #[error("the assertion's identifier is empty or too long")]
    Identifier,
    /// None of the application's keys verifies the signature.
    #[error("none of the application's keys verifies the assertion")]
    Signature,
    /// The assertion was used before.
    #[error("the assertion was used before")]
    Replayed,
}

impl ClientAssertion {
    /// Parses an assertion.
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

    /// The client named in the assertion.
    pub fn client_id(&self) -> &str {
        &self.claims.sub
    }

    /// Checks the assertion's times and audience; `ours` are the accepted audiences.
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

    /// The key that made the assertion's signature. A failed search always tries as many keys as an application may
    /// have, or one if the assertion names a key. Decoys replace missing keys, so that response times reveal neither
    /// whether the application exists nor how it authenticates.
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

/// The keys that may have made a signature, and a decoy for each missing key.
fn candidates<'k>(header: &Header, keys: &'k [ClientKey]) -> (Vec<&'k ClientKey>, Vec<&'static ClientKey>) {
    let algorithm = algorithm(&header.alg);
    let fits = |key: &&ClientKey| algorithm.is_some_and(|algorithm| key.algorithms().contains(&algorithm));
    let named = |key: &&ClientKey| header.kid.as_ref().is_none_or(|kid| *kid == key.kid);
    let tried = if header.kid.is_some() { 1 } else { MAX_KEYS };
    let theirs: Vec<_> = keys.iter().filter(named).filter(fits).collect();
    let missing = tried.saturating_sub(theirs.len());
    (theirs, DECOYS.iter().filter(fits).cycle().take(missing).collect())
}

/// Parses the decoys, so that the first request with an assertion does not have to.
pub fn prepare() {
    LazyLock::force(&DECOYS);
}

/// Public keys without private halves, one of each type.
static DECOYS: LazyLock<Vec<ClientKey>> = LazyLock::new(|| {
    let keys: Vec<_> = serde_json::from_str(include_str!("decoys.json")).unwrap_or_default();
    keys.iter().filter_map(|key| ClientKey::parse(key, Time::from_millis(0)).ok()).collect()
});

/// The used assertions, by application and identifier: `ASSERTION#{client}` / hash of the identifier.
#[derive(Debug, Clone)]
pub struct UsedAssertions(Table);

impl UsedAssertions {
    /// Creates the store in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Records that a request uses an assertion. The assertion must already be verified, since unauthenticated callers
    /// must not write here. Lost if another request used it.
    pub async fn note(
        &self,
        assertion: &ClientAssertion,
        request_id: &str,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        const DOING: &str = "recording an assertion";
        let identifier = digest::digest(&digest::SHA256, assertion.claims.jti.as_bytes());
        let used = UsedAssertion {
            pk: format!("ASSERTION#{}", assertion.client_id()),
            sk: BASE64_URL_SAFE_NO_PAD.encode(identifier),
            request: request_id,
            expires_at: (now + RETENTION).as_seconds(),
        };
        // The SDK may repeat a request's write if the response is lost.
        let put = Put::item(&used, DOING)?.only_if(is_new().or(is("request", request_id)));
        self.0.write(put, DOING).await
    }
}

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
