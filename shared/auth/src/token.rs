//! Access tokens: JWTs after RFC 9068, made in one function and checked in one other.

use serde::{Deserialize, Serialize};

use super::{
    entity::{AuthorizedEntity, Entities, EntityId},
    jws::{self, Jws, JwsFault},
    keys::KeySet,
    scope::Scopes,
    signing::SigningKey,
};
use base::{
    clock::Time,
    random::{self, Random},
};

/// The longest token, in bytes: longer than any that we issue. A longer text is not even decoded.
pub const MAX_LENGTH: usize = 8 * 1024;

/// Longer than any identifier that we issue; it has to fit into a key of the table when the token
/// is revoked.
const MAX_TOKEN_ID: usize = 256;

/// How far the clocks of two of our machines may be apart, in seconds: a token may seem to come
/// from that far ahead. No such leeway exists at its end.
const CLOCK_SKEW: i64 = 2;

/// What a token must agree with.
#[derive(Debug, Clone)]
pub struct Audience {
    /// The `iss` that we trust.
    pub issuer: String,
    /// The `aud` that we are.
    pub audience: String,
}

/// What a token says.
#[derive(Debug, Clone)]
pub struct Claims {
    /// The application that the token was issued to.
    pub client_id: String,
    /// The secret or key that the application got it with: a secret's identifier, or a key's
    /// thumbprint (RFC 7638). Tokens of releases that did not say so have none.
    pub credential_id: Option<String>,
    /// The token's own identifier.
    pub token_id: String,
    /// The name of the key that vouches for it.
    pub key_id: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The managing entities that it may act for.
    pub entities: Entities,
    /// When it was issued; in the token a whole second.
    pub issued: Time,
    /// From when it is over; in the token a whole second.
    pub expires: Time,
}

impl Claims {
    /// The proof that the token's holder may act for this entity; nothing, when the token does not
    /// cover it.
    pub fn authorize(&self, entity: EntityId) -> Option<AuthorizedEntity> {
        self.entities.cover(entity.as_str()).then(|| AuthorizedEntity::by_token(entity))
    }
}

/// The claims as they stand in the token. A struct and not a map, so that a member that comes twice
/// is an error.
#[derive(Debug, Serialize, Deserialize)]
struct WireClaims {
    iss: String,
    aud: OneOrMore,
    sub: String,
    client_id: String,
    #[serde(default, deserialize_with = "jws::present", skip_serializing_if = "Option::is_none")]
    credential_id: Option<String>,
    iat: i64,
    exp: i64,
    #[serde(default, deserialize_with = "jws::present", skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    jti: String,
    scope: String,
    managing_entities: Entities,
}

/// `aud` is one text or several (RFC 7519 §4.1.3).
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One text.
    One(String),
    /// Several.
    More(Vec<String>),
}

#[derive(Debug, Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    kid: &'a str,
}

/// Why a token is not accepted. The sentence goes to the log; the caller is told only that it is
/// invalid or expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is not three parts of base 64 with JSON in the first two, or it is too long.
    #[error("it is not a JWT of the form that is issued here")]
    Malformed,
    /// Its header asks for something else than what we issue.
    #[error("its header has another type, algorithm or extension than the tokens that are issued here")]
    Header,
    /// Its key is not ours, or no longer.
    #[error("it is signed by an unknown key")]
    UnknownKey,
    /// The signature does not fit.
    #[error("its signature does not verify")]
    Signature,
    /// It has another issuer or another audience.
    #[error("it is from another issuer or for another audience")]
    Audience,
    /// It is over.
    #[error("it has expired")]
    Expired,
    /// It is from the future.
    #[error("it is not valid yet")]
    NotYet,
    /// It, its application, its credential or its key was revoked.
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

/// Why a token could not be made.
#[derive(Debug, thiserror::Error)]
#[error("a token could not be signed")]
pub struct NotIssued;

/// Makes a token of these claims; the key's name goes into its header, whatever the claims say of
/// it.
pub fn issue(claims: &Claims, audience: &Audience, key: &SigningKey) -> Result<String, NotIssued> {
    let wire = WireClaims {
        iss: audience.issuer.clone(),
        aud: OneOrMore::One(audience.audience.clone()),
        sub: claims.client_id.clone(),
        client_id: claims.client_id.clone(),
        credential_id: claims.credential_id.clone(),
        iat: claims.issued.as_seconds(),
        exp: claims.expires.as_seconds(),
        nbf: None,
        jti: claims.token_id.clone(),
        scope: claims.scopes.to_string(),
        managing_entities: claims.entities.clone(),
    };
    let header = Header { alg: key.algorithm().as_str(), typ: "at+jwt", kid: key.kid() };
    let unsigned = jws::unsigned(&header, &wire).map_err(|_| NotIssued)?;
    let signature = key.sign(unsigned.as_bytes()).map_err(|_| NotIssued)?;
    Ok(jws::with_signature(unsigned, signature.as_ref()))
}

/// A new token's identifier: 128 random bits.
pub fn new_token_id(random: &dyn Random) -> String {
    random::alphanumeric(random, 22)
}

/// A token taken apart, whose header is as it should be; nothing of it is to be trusted yet.
#[derive(Debug)]
pub struct Presented<'a> {
    jws: Jws<'a>,
    kid: String,
}

impl<'a> Presented<'a> {
    /// Takes a token apart.
    pub fn parse(token: &'a str) -> Result<Self, TokenFault> {
        let jws = Jws::parse(token, MAX_LENGTH)?;
        let typ = jws.header().typ.as_deref().ok_or(TokenFault::Malformed)?;
        if !["at+jwt", "application/at+jwt"].iter().any(|good| typ.eq_ignore_ascii_case(good)) {
            return Err(TokenFault::Header); // RFC 9068 §4
        }
        let kid = jws.header().kid.clone().ok_or(TokenFault::Malformed)?;
        Ok(Self { jws, kid })
    }

    /// The name of the key that the token says it is signed with.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Checks the token: key, signature, issuer, audience and times. Everything that could let a
    /// forged or foreign token pass is closed here and where it is taken apart, and nowhere else.
    pub fn validate(&self, keys: &KeySet, expected: &Audience, now: Time) -> Result<Claims, TokenFault> {
        let key = keys.get(&self.kid, now).ok_or(TokenFault::UnknownKey)?;
        self.jws.verify(key.public(), &[key.algorithm().verified_as()])?;
        let claims: WireClaims = self.jws.claims()?;
        let meant_for_us = match &claims.aud {
            OneOrMore::One(audience) => *audience == expected.audience,
            OneOrMore::More(audiences) => audiences.contains(&expected.audience),
        };
        if claims.iss != expected.issuer || !meant_for_us {
            return Err(TokenFault::Audience);
        }
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
        let scopes = Scopes::parse(&claims.scope).map_err(|_| TokenFault::Malformed)?;
        Ok(Claims {
            client_id: claims.client_id,
            credential_id: claims.credential_id,
            token_id: claims.jti,
            key_id: self.kid.clone(),
            scopes,
            entities: claims.managing_entities,
            issued: of_seconds(claims.iat),
            expires: of_seconds(claims.exp),
        })
    }
}

fn of_seconds(seconds: i64) -> Time {
    Time::from_millis(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scope::Scope, signing::SigningAlgorithm};
    use base::random::SystemRandom;
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::{Value, json};

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn expected() -> Audience {
        Audience { issuer: "https://auth.example.com".into(), audience: "https://api.example.com".into() }
    }

    fn claims() -> Claims {
        Claims {
            client_id: "appX".into(),
            credential_id: Some("sec_1".into()),
            token_id: "id".into(),
            key_id: String::new(),
            scopes: [Scope::BookingRead].into_iter().collect(),
            entities: Entities::new(["hotel".to_owned()]),
            issued: NOW,
            expires: NOW + std::time::Duration::from_secs(60),
        }
    }

    fn key() -> SigningKey {
        SigningKey::generate(SigningAlgorithm::Es256)
    }

    fn validate(token: &str, keys: &KeySet, expected: &Audience, now: Time) -> Result<Claims, TokenFault> {
        Presented::parse(token)?.validate(keys, expected, now)
    }

    fn good_header(key: &SigningKey) -> Value {
        json!({"alg": "ES256", "typ": "at+jwt", "kid": key.kid()})
    }

    fn good_claims() -> Value {
        let iat = NOW.as_seconds();
        json!({"iss": "https://auth.example.com", "aud": "https://api.example.com", "sub": "appX", "client_id": "appX",
               "iat": iat, "exp": iat + 60, "jti": "id", "scope": "booking.read", "managing_entities": ["hotel"]})
    }

    /// A token with any header and payload, properly signed.
    fn signed(key: &SigningKey, header: &str, payload: &str) -> String {
        let text = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(payload));
        let signature = key.sign(text.as_bytes()).expect("signs");
        jws::with_signature(text, signature.as_ref())
    }

    fn with(mut object: Value, member: &str, value: Value) -> String {
        match value {
            Value::Null => object.as_object_mut().expect("an object").remove(member),
            value => object.as_object_mut().expect("an object").insert(member.into(), value),
        };
        object.to_string()
    }

    #[test]
    fn an_issued_token_is_accepted_until_its_last_second() {
        for key in SigningAlgorithm::ALL.map(SigningKey::generate) {
            let token = issue(&claims(), &expected(), &key).expect("a token");
            let keys = KeySet::of([key.public_key()]);
            let last = NOW + std::time::Duration::from_millis(59_800);
            for now in [NOW, last] {
                let claims = validate(&token, &keys, &expected(), now).expect("valid");
                assert_eq!((claims.client_id.as_str(), claims.token_id.as_str()), ("appX", "id"));
                assert_eq!(claims.credential_id.as_deref(), Some("sec_1"));
                assert_eq!((claims.key_id.as_str(), claims.issued.as_seconds()), (key.kid(), NOW.as_seconds()));
                assert!(claims.scopes.contains(Scope::BookingRead) && claims.entities.cover("hotel"));
            }
            let over = NOW + std::time::Duration::from_secs(60);
            assert_eq!(validate(&token, &keys, &expected(), over).expect_err("over"), TokenFault::Expired);
        }
    }

    #[test]
    fn every_properly_signed_header_that_is_not_ours_is_refused() {
        let key = key();
        let keys = KeySet::of([key.public_key()]);
        let cases = [
            ("typ", json!("JWT"), TokenFault::Header),
            ("typ", json!("at+jwt "), TokenFault::Header),
            ("typ", Value::Null, TokenFault::Malformed),
            ("typ", json!(1), TokenFault::Malformed),
            ("alg", json!("none"), TokenFault::Header),
            ("alg", json!("HS256"), TokenFault::Header),
            ("alg", json!("es256"), TokenFault::Header),
            ("alg", json!("EdDSA"), TokenFault::Header),
            ("kid", json!("other"), TokenFault::UnknownKey),
            ("kid", Value::Null, TokenFault::Malformed),
            ("crit", json!(["x"]), TokenFault::Header),
            ("crit", json!([]), TokenFault::Header),
            ("b64", json!(false), TokenFault::Header),
            ("b64", json!(true), TokenFault::Header),
        ];
        for (member, value, fault) in cases {
            let token = signed(&key, &with(good_header(&key), member, value.clone()), &good_claims().to_string());
            assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), fault, "{member}: {value}");
        }
        let array = json!(["ES256", "at+jwt", key.kid()]).to_string();
        let token = signed(&key, &array, &good_claims().to_string());
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err("an array"), TokenFault::Malformed);
        let null_crit = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"{}","crit":null}}"#, key.kid());
        let token = signed(&key, &null_crit, &good_claims().to_string());
        assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err("crit: null"), TokenFault::Header);
    }

    #[test]
    fn every_properly_signed_claim_that_is_not_ours_is_refused() {
        let key = key();
        let keys = KeySet::of([key.public_key()]);
        let iat = NOW.as_seconds();
        let cases = [
            ("iss", json!("https://auth.example.com/"), TokenFault::Audience),
            ("iss", Value::Null, TokenFault::Malformed),
            ("aud", json!("https://other.example.com"), TokenFault::Audience),
            ("aud", json!([]), TokenFault::Audience),
            ("aud", json!(["https://other.example.com"]), TokenFault::Audience),
            ("aud", Value::Null, TokenFault::Malformed),
            ("exp", json!(iat), TokenFault::Expired),
            ("exp", json!(iat - 30), TokenFault::Expired),
            ("exp", Value::Null, TokenFault::Malformed),
            ("exp", json!("never"), TokenFault::Malformed),
            ("exp", json!(1e300), TokenFault::Malformed),
            ("iat", json!(iat + 60), TokenFault::NotYet),
            ("iat", Value::Null, TokenFault::Malformed),
            ("nbf", json!(iat + 60), TokenFault::NotYet),
            ("nbf", json!("soon"), TokenFault::Malformed),
            ("jti", Value::Null, TokenFault::Malformed),
            ("sub", Value::Null, TokenFault::Malformed),
            ("client_id", Value::Null, TokenFault::Malformed),
            ("credential_id", json!(1), TokenFault::Malformed),
            ("scope", json!("booking.read root"), TokenFault::Malformed),
            ("scope", json!(["booking.read"]), TokenFault::Malformed),
            ("managing_entities", json!("hotel"), TokenFault::Malformed),
            ("managing_entities", Value::Null, TokenFault::Malformed),
        ];
        for (member, value, fault) in cases {
            let token = signed(&key, &good_header(&key).to_string(), &with(good_claims(), member, value.clone()));
            assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), fault, "{member}: {value}");
        }
        let of_before = signed(&key, &good_header(&key).to_string(), &good_claims().to_string());
        let of_before = validate(&of_before, &keys, &expected(), NOW).expect("tokens did not always say it");
        assert_eq!(of_before.credential_id, None);
        let several = with(good_claims(), "aud", json!(["https://other.example.com", "https://api.example.com"]));
        assert!(validate(&signed(&key, &good_header(&key).to_string(), &several), &keys, &expected(), NOW).is_ok());
    }

    #[test]
    fn a_member_that_comes_twice_is_refused_wherever_it_stands() {
        let key = key();
        let keys = KeySet::of([key.public_key()]);
        let twice =
            |object: Value, member: &str, value: Value| format!(r#"{{"{member}":{value},{}"#, &object.to_string()[1..]);
        for (member, value) in [("typ", json!("at+jwt")), ("alg", json!("none")), ("kid", json!("x"))] {
            let token = signed(&key, &twice(good_header(&key), member, value), &good_claims().to_string());
            assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), TokenFault::Malformed, "{member}");
        }
        for member in ["iss", "aud", "exp", "iat", "scope", "managing_entities", "client_id"] {
            let payload = twice(good_claims(), member, good_claims()[member].clone());
            let token = signed(&key, &good_header(&key).to_string(), &payload);
            assert_eq!(validate(&token, &keys, &expected(), NOW).expect_err(member), TokenFault::Malformed, "{member}");
        }
    }

    #[test]
    fn a_token_of_a_wrong_form_or_signature_is_refused() {
        let (key, stranger) = (key(), key());
        let keys = KeySet::of([key.public_key()]);
        let token = issue(&claims(), &expected(), &key).expect("a token");
        let parts: Vec<&str> = token.split('.').collect();
        let forged = signed(&stranger, &good_header(&key).to_string(), &good_claims().to_string());
        assert_eq!(validate(&forged, &keys, &expected(), NOW).expect_err("forged"), TokenFault::Signature);
        let long = format!("{token}{}", "A".repeat(MAX_LENGTH));
        for bad in [
            "",
            ".",
            "..",
            "a.b.c",
            parts[0],
            &parts[..2].join("."),
            &format!("{}.{}.", parts[0], parts[1]),
            &format!("{token}.{}", parts[2]),
            &format!("{token}="),
            &format!(" {token}"),
            &long,
            &format!("{}.{}.{}", parts[0], parts[1], "AAAA"),
        ] {
            assert!(validate(bad, &keys, &expected(), NOW).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_of_a_token_but_its_header_is_shown() {
        let token = issue(&claims(), &expected(), &key()).expect("a token");
        let shown = format!("{:?}", Presented::parse(&token).expect("of our form"));
        assert!(token.split('.').all(|part| !shown.contains(part)) && shown.contains("at+jwt"), "{shown}");
    }

    #[test]
    fn no_single_changed_character_leaves_a_token_valid() {
        let key = key();
        let keys = KeySet::of([key.public_key()]);
        let mut claims = claims();
        claims.token_id = new_token_id(&SystemRandom);
        let token = issue(&claims, &expected(), &key).expect("a token");
        for (position, letter) in token.char_indices() {
            let other = if letter == 'A' { 'B' } else { 'A' };
            let changed = format!("{}{other}{}", &token[..position], &token[position + 1..]);
            assert!(validate(&changed, &keys, &expected(), NOW).is_err(), "character {position}");
        }
    }
}
