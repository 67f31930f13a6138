//! Access tokens: JWTs as RFC 9068 defines them, with one function to issue them and one to check them.

use serde::{Deserialize, Serialize};

use super::{
    entity::{AuthorizedEntity, Entities, EntityId},
    jws::{self, Jws, JwsFault},
    keys::KeySet,
    resource::Resource,
    scope::Scopes,
    signing::SigningKey,
};
use base::{Random, Time, random};

/// The maximum length of a token, in bytes: longer than any that this service issues. A longer one is not decoded.
pub const MAX_LENGTH: usize = 8 * 1024;

/// The longest lifetime of a token, in seconds. A revocation must be known for as long as the tokens live, so short
/// lifetimes keep the list of revocations short.
pub const LONGEST_LIFETIME: u32 = 60 * 60;

/// The maximum length of a token identifier, in bytes: longer than any that this service issues, and short enough for a
/// table key when the token is revoked.
const MAX_TOKEN_ID: usize = 256;

/// How far the clocks of the service's machines may differ, in seconds: a token may appear to be issued that far in the
/// future. Expiry has no such leeway.
const CLOCK_SKEW: i64 = 2;

/// The issuer that a token must contain, and the API whose resources may be its audience.
#[derive(Debug, Clone)]
pub struct Audience {
    /// The trusted `iss`.
    pub issuer: String,
    /// The API's address, without a trailing slash.
    pub base_url: String,
}

/// A token's content.
#[derive(Debug, Clone)]
pub struct Claims {
    /// The application that the token was issued to.
    pub client_id: String,
    /// The secret or key that the application used to obtain the token: a secret's identifier, or a key's thumbprint
    /// (RFC 7638). A key is not identified by its name, since another key may take the name later. Tokens of panel
    /// sessions from the operator's links have no credential identifier. This is a private claim: RFC 9068 defines none
    /// for this purpose, and `cnf` means something else.
    pub credential_id: Option<String>,
    /// For a panel token, the link that opened its session.
    pub session_id: Option<String>,
    /// The token's identifier.
    pub token_id: String,
    /// The name of the key that signed the token.
    pub key_id: String,
    /// The resource that the token is issued for. A token for one resource may be refused at another.
    pub resource: Resource,
    /// The scopes that the token grants.
    pub scopes: Scopes,
    /// The managing entities that the token covers.
    pub entities: Entities,
    /// Whether the token may publish events. A scope cannot express this: publishing needs the same scope that
    /// subscribers use to create webhooks.
    pub may_publish: bool,
    /// When the token was issued; the token gives it in whole seconds.
    pub issued: Time,
    /// When the token expires; the token gives it in whole seconds.
    pub expires: Time,
}

impl Claims {
    /// The proof that the token's holder may act for this entity; `None` if the token does not cover it.
    pub fn authorize(&self, entity: EntityId) -> Option<AuthorizedEntity> {
        self.entities.cover(entity.as_str()).then(|| AuthorizedEntity::by_token(entity))
    }
}

/// The claims as encoded in the token. A struct rather than a map, so that a duplicate member is an error.
#[derive(Debug, Serialize, Deserialize)]
struct WireClaims {
    iss: String,
    aud: OneOrMore,
    sub: String,
    client_id: String,
    #[serde(default, deserialize_with = "jws::present", skip_serializing_if = "Option::is_none")]
    credential_id: Option<String>,
    #[serde(default, deserialize_with = "jws::present", skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    iat: i64,
    exp: i64,
    #[serde(default, deserialize_with = "jws::present", skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    jti: String,
    scope: String,
    managing_entities: Entities,
    may_publish: bool,
}

/// One string or several, as `aud` allows (RFC 7519 §4.1.3).
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One string.
    One(String),
    /// Several.
    More(Vec<String>),
}

impl OneOrMore {
    /// This API's resource in `aud`; the most powerful one if there are several.
    fn resource(&self, base_url: &str) -> Option<Resource> {
        let audiences = match self {
            Self::One(audience) => std::slice::from_ref(audience),
            Self::More(audiences) => audiences,
        };
        Resource::ALL.into_iter().find(|resource| audiences.contains(&resource.address(base_url)))
    }
}

#[derive(Debug, Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    kid: &'a str,
}

/// Why a token is not accepted. The message goes to the log; the response only says that the token is invalid or
/// expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// The token is too long, or is not three Base64 parts of which the first two are JSON.
    #[error("it is not a JWT in the expected form")]
    Malformed,
    /// The header is not one that this service issues.
    #[error("its header has an unexpected type, algorithm or extension")]
    Header,
    /// The key is unknown, or no longer valid.
    #[error("it is signed by an unknown key")]
    UnknownKey,
    /// The signature does not match.
    #[error("its signature is wrong")]
    Signature,
    /// The token has another issuer or another audience.
    #[error("it is from another issuer or for another audience")]
    Audience,
    /// The token has expired.
    #[error("it has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("it is not valid yet")]
    NotYet,
    /// The token, its application, its credential or its key was revoked.
    #[error("it was revoked")]
    Revoked,
}

impl From<JwsFault> for TokenFault {
    fn from(fault: JwsFault) -> Self {
        match fault {
            JwsFault::Malformed => Self::Malformed,
            JwsFault::Extension | JwsFault::Algorithm => Self::Header,
            JwsFault::Signature => Self::Signature,
        }
    }
}

/// Why a token could not be issued.
#[derive(Debug, thiserror::Error)]
#[error("a token could not be signed")]
pub struct NotIssued;

/// Issues a token with these claims. Its header names `key`, regardless of the claims' `key_id`.
pub fn issue(claims: &Claims, audience: &Audience, key: &SigningKey) -> Result<String, NotIssued> {
    let wire = WireClaims {
        iss: audience.issuer.clone(),
        aud: OneOrMore::One(claims.resource.address(&audience.base_url)),
        sub: claims.client_id.clone(),
        client_id: claims.client_id.clone(),
        credential_id: claims.credential_id.clone(),
        sid: claims.session_id.clone(),
        iat: claims.issued.as_seconds(),
        exp: claims.expires.as_seconds(),
        nbf: None,
        jti: claims.token_id.clone(),
        scope: claims.scopes.to_string(),
        managing_entities: claims.entities.clone(),
        may_publish: claims.may_publish,
    };
    let header = Header { alg: key.algorithm().as_str(), typ: "at+jwt", kid: key.kid() };
    let unsigned = jws::unsigned(&header, &wire).map_err(|_| NotIssued)?;
    let signature = key.sign(unsigned.as_bytes()).map_err(|_| NotIssued)?;
    Ok(jws::with_signature(unsigned, signature.as_ref()))
}

/// A new token identifier: 128 random bits.
pub fn new_token_id(random: &dyn Random) -> String {
    random::alphanumeric(random, 22)
}

/// A parsed token with an accepted header. Its content is untrusted.
#[derive(Debug)]
pub struct Presented<'a> {
    jws: Jws<'a>,
    kid: String,
}

impl<'a> Presented<'a> {
    /// Parses a token.
    pub fn parse(token: &'a str) -> Result<Self, TokenFault> {
        let jws = Jws::parse(token, MAX_LENGTH)?;
        let typ = jws.header().typ.as_deref().ok_or(TokenFault::Malformed)?;
        if !["at+jwt", "application/at+jwt"].iter().any(|good| typ.eq_ignore_ascii_case(good)) {
            return Err(TokenFault::Header); // RFC 9068 §4
        }
        let kid = jws.header().kid.clone().ok_or(TokenFault::Malformed)?;
        Ok(Self { jws, kid })
    }

    /// The name of the key that the token claims to be signed with.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Checks the token: key, signature, issuer, audience and times. Only this function and [`Self::parse`] guard
    /// against forged and foreign tokens. The verifier checks whether the token is valid at the resource that received
    /// it.
    pub fn validate(&self, keys: &KeySet, expected: &Audience, now: Time) -> Result<Claims, TokenFault> {
        let key = keys.get(&self.kid, now).ok_or(TokenFault::UnknownKey)?;
        self.jws.verify(key.public(), &[key.algorithm().verified_as()])?;
        let claims: WireClaims = self.jws.claims()?;
        if claims.iss != expected.issuer {
            return Err(TokenFault::Audience);
        }
        let resource = claims.aud.resource(&expected.base_url).ok_or(TokenFault::Audience)?;
        let now = now.as_seconds();
        if claims.exp <= now {
            return Err(TokenFault::Expired);
        }
        if claims.iat > now + CLOCK_SKEW || claims.nbf.is_some_and(|nbf| nbf > now + CLOCK_SKEW) {
            return Err(TokenFault::NotYet);
        }
        if claims.jti.is_empty() || claims.jti.len() > MAX_TOKEN_ID {
            return Err(TokenFault::Malformed);
        }
        if claims.credential_id.is_none() && claims.sid.is_none() {
            return Err(TokenFault::Malformed); // only revoking its application or key could end it early
        }
        let scopes = Scopes::parse(&claims.scope).map_err(|_| TokenFault::Malformed)?;
        Ok(Claims {
            client_id: claims.client_id,
            credential_id: claims.credential_id,
            session_id: claims.sid,
            token_id: claims.jti,
            key_id: self.kid.clone(),
            resource,
            scopes,
            entities: claims.managing_entities,
            may_publish: claims.may_publish,
            issued: of_seconds(claims.iat),
            expires: of_seconds(claims.exp),
        })
    }
}

fn of_seconds(seconds: i64) -> Time {
    Time::from_millis(seconds.saturating_mul(1000))
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
