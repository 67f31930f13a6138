//! Client assertions: a JWT that an application signs to prove its identity (RFC 7523 §3), good for
//! one request.
//!
//! Everything but the signature and the single use is checked before the application is even looked
//! for, so that nothing of it tells whether there is one.

use std::{sync::LazyLock, time::Duration};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use serde::{Deserialize, Serialize};

use crate::applications::client_key::{ClientKey, MAX_KEYS};
use auth::{
    jws::{Header, Jws, JwsFault, present},
    token::OneOrMore,
};
use base::clock::Time;
use storage::{
    secrets::SecretText,
    table::{Put, Table, TableError, Written, is, is_new},
};

/// The one `client_assertion_type` (RFC 7523 §2.2).
pub const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The algorithms that assertions may be signed with, by their names (RFC 8414 §2).
pub const ALGORITHMS: [&str; 5] = ["ES256", "ES384", "EdDSA", "RS256", "PS256"];

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

/// An assertion whose form is right. Nothing of it is proven before its signature is.
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
    let algorithm: Option<Algorithm> = header.alg.parse().ok();
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

/// Public keys whose private halves do not exist any more, one of each type.
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
        // The same request may write again what it has written, when only the answer was lost.
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
mod tests {
    use super::*;
    use crate::oauth::testing::AssertionKey;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const OURS: [&str; 2] = ["https://auth.example.com", "https://auth.example.com/oauth2/token"];

    fn good() -> Value {
        json!({ "iss": "appX", "sub": "appX", "aud": OURS[0], "exp": NOW.as_seconds() + 300, "jti": "1" })
    }

    fn with(member: &str, value: Value) -> Value {
        let mut claims = good();
        claims[member] = value;
        claims
    }

    fn without(member: &str) -> Value {
        let mut claims = good();
        claims.as_object_mut().expect("an object").remove(member);
        claims
    }

    fn registered(key: &AssertionKey) -> ClientKey {
        ClientKey::parse(&key.jwk(), NOW).expect("a key")
    }

    fn judge(text: String, keys: &[ClientKey]) -> Result<String, AssertionFault> {
        let assertion = ClientAssertion::read(text)?;
        assertion.check(&OURS, NOW)?;
        assertion.signer(keys).map(|key| key.kid.clone())
    }

    #[test]
    fn an_assertion_of_every_type_of_key_is_good() {
        for algorithm in ALGORITHMS {
            let (key, other) = (AssertionKey::generate(algorithm), AssertionKey::generate(algorithm));
            let keys = [registered(&other), registered(&key)];
            let text = key.assertion(&good());
            assert_eq!(judge(text.clone(), &keys), Ok(keys[1].kid.clone()), "{algorithm}");
            assert_eq!(judge(text.clone(), &keys[..1]), Err(AssertionFault::Signature), "{algorithm}");
            assert_eq!(judge(text, &[]), Err(AssertionFault::Signature), "{algorithm}");
        }
    }

    #[test]
    fn the_key_decides_the_algorithm() {
        let key = AssertionKey::generate("ES256");
        for alg in ["none", "HS256", "ES384", "RS256", "EdDSA", "es256"] {
            let text = key.sign(&json!({ "alg": alg }).to_string(), &good().to_string());
            assert_eq!(judge(text, &[registered(&key)]), Err(AssertionFault::Signature), "{alg}");
        }
        let rsa = AssertionKey::generate("PS256");
        let mut only_rs256 = rsa.jwk();
        only_rs256["alg"] = "RS256".into();
        let only_rs256 = ClientKey::parse(&only_rs256, NOW).expect("a key");
        assert_eq!(judge(rsa.assertion(&good()), &[only_rs256]), Err(AssertionFault::Signature));
        assert!(judge(rsa.assertion(&good()), &[registered(&rsa)]).is_ok());
    }

    #[test]
    fn a_named_key_is_the_only_one_that_is_tried() {
        let key = AssertionKey::generate("EdDSA");
        let keys = [registered(&key)];
        let named = |kid: &str| key.sign(&json!({ "alg": "EdDSA", "kid": kid }).to_string(), &good().to_string());
        assert_eq!(judge(named(&keys[0].kid), &keys), Ok(keys[0].kid.clone()));
        assert_eq!(judge(named("other"), &keys), Err(AssertionFault::Signature));
    }

    #[test]
    fn as_many_keys_are_tried_for_every_client() {
        for algorithm in ALGORITHMS {
            let text = |header: Value| AssertionKey::generate("EdDSA").sign(&header.to_string(), &good().to_string());
            let keys: Vec<_> = (0..MAX_KEYS).map(|_| registered(&AssertionKey::generate(algorithm))).collect();
            let tried = |text: &str, keys: &[ClientKey]| {
                let (theirs, decoys) = candidates(Jws::parse(text, LONGEST).expect("a JWS").header(), keys);
                (theirs.len(), decoys.len())
            };
            let any = text(json!({ "alg": algorithm }));
            let named = text(json!({ "alg": algorithm, "kid": keys[1].kid }));
            for known in 0..=MAX_KEYS {
                assert_eq!(tried(&any, &keys[..known]), (known, MAX_KEYS - known), "{algorithm}");
                let found = usize::from(known > 1);
                assert_eq!(tried(&named, &keys[..known]), (found, 1 - found), "{algorithm}");
            }
        }
    }

    #[test]
    fn it_calls_itself_what_an_assertion_may_and_never_an_access_token() {
        let key = AssertionKey::generate("EdDSA");
        let typed = |typ: &str| key.sign(&json!({ "alg": "EdDSA", "typ": typ }).to_string(), &good().to_string());
        for typ in ["JWT", "jwt", "client-authentication+jwt", "application/client-authentication+jwt"] {
            assert!(judge(typed(typ), &[registered(&key)]).is_ok(), "{typ}");
        }
        for typ in ["at+jwt", "application/at+jwt", "", "dpop+jwt"] {
            assert_eq!(judge(typed(typ), &[registered(&key)]), Err(AssertionFault::Type), "{typ}");
        }
    }

    #[test]
    fn every_claim_is_checked() {
        use AssertionFault::{Audience, Identifier, Malformed, Subject, Time as Timing};
        let now = NOW.as_seconds();
        let (key, malformed) = (AssertionKey::generate("EdDSA"), Malformed(JwsFault::Malformed));
        let cases = [
            (with("iss", json!("appY")), Subject),
            (with("sub", json!("appY")), Subject),
            (json!({ "iss": "", "sub": "", "aud": OURS[0], "exp": now + 1, "jti": "1" }), Subject),
            (without("iss"), malformed),
            (without("sub"), malformed),
            (with("aud", json!("https://other.example.com")), Audience),
            (with("aud", json!(OURS[0].to_uppercase())), Audience),
            (with("aud", json!([])), Audience),
            (with("aud", json!([OURS[0], "https://other.example.com"])), Audience),
            (without("aud"), malformed),
            (with("exp", json!(now)), Timing),
            (with("exp", json!(now - 1)), Timing),
            (with("exp", json!(now + 3661)), Timing),
            (with("exp", json!(1e300)), Timing),
            (with("exp", json!("soon")), malformed),
            (without("exp"), malformed),
            (with("iat", json!(now + 61)), Timing),
            (with("nbf", json!(now + 61)), Timing),
            (with("nbf", Value::Null), malformed),
            (with("jti", json!("")), Identifier),
            (with("jti", json!("x".repeat(257))), Identifier),
            (with("jti", json!(1)), malformed),
            (without("jti"), malformed),
        ];
        for (claims, fault) in cases {
            assert_eq!(judge(key.assertion(&claims), &[registered(&key)]), Err(fault), "{claims}");
        }
        for claims in [
            with("aud", json!(OURS[1])),
            with("aud", json!(OURS)),
            with("exp", json!(now + 3660)),
            with("exp", json!(NOW.as_seconds() as f64 + 0.5)),
            with("iat", json!(now + 60)),
            with("nbf", json!(now - 7)),
            with("jti", json!("ä".repeat(256))),
            with("anything", json!({ "else": [1] })),
        ] {
            assert!(judge(key.assertion(&claims), &[registered(&key)]).is_ok(), "{claims}");
        }
    }

    #[test]
    fn a_member_that_comes_twice_is_refused() {
        let key = AssertionKey::generate("EdDSA");
        for member in ["iss", "sub", "aud", "exp", "jti"] {
            let twice = format!(r#"{{"{member}":{},{}"#, good()[member], &good().to_string()[1..]);
            let text = key.sign(r#"{"alg":"EdDSA"}"#, &twice);
            let fault = AssertionFault::Malformed(JwsFault::Malformed);
            assert_eq!(judge(text, &[registered(&key)]), Err(fault), "{member}");
        }
    }

    #[test]
    fn there_is_a_decoy_for_every_algorithm() {
        for algorithm in ALGORITHMS {
            let algorithm = algorithm.parse().expect("an algorithm");
            assert!(DECOYS.iter().any(|key| key.algorithms().contains(&algorithm)), "{algorithm:?}");
        }
        assert!(DECOYS.iter().all(|key| key.public().is_ok()));
    }

    #[test]
    fn nothing_of_an_assertion_is_printed_that_could_be_used() {
        let text = AssertionKey::generate("EdDSA").assertion(&good());
        let assertion = ClientAssertion::read(text.clone()).expect("an assertion");
        assert!(!format!("{assertion:?}").contains(text.rsplit('.').next().expect("a signature")));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}", parts in "[A-Za-z0-9_.-]{0,80}", claims in "\\PC{0,60}") {
            let key = AssertionKey::generate("EdDSA");
            let keys = [registered(&key)];
            for text in [text, parts, key.sign(r#"{"alg":"EdDSA"}"#, &claims), key.sign(&claims, &good().to_string())] {
                let _ = judge(text, &keys);
            }
        }

        #[test]
        fn a_changed_letter_is_noticed(position in 0usize..1000, letter in "[A-Za-z0-9_-]") {
            let key = AssertionKey::generate("EdDSA");
            let text = key.assertion(&good());
            let position = position % text.len();
            let changed = format!("{}{letter}{}", &text[..position], &text[position + 1..]);
            prop_assert_eq!(judge(changed.clone(), &[registered(&key)]).is_ok(), changed == text);
        }
    }
}
