//! The public keys with which an application's assertions are verified (RFC 7523): JSON Web Keys
//! (RFC 7517), taken only when an assertion could be verified with them and nothing of a private
//! key came along.

use aws_lc_rs::{
    digest,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm, ParsedPublicKey,
        RSA_PKCS1_2048_8192_SHA256,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use base::clock::Time;

/// Members that only a private or a shared key has (RFC 7518 §6.2.2, §6.3.2, §6.4.1).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/// Members that are read, of whatever type the key is.
const KNOWN: [&str; 10] = ["kty", "crv", "x", "y", "n", "e", "kid", "use", "alg", "key_ops"];
/// Members that nothing is verified with, and that are left out of what is kept: certificates of
/// the same key (RFC 7517 §4.6–4.9), and what browsers add.
const LEFT_OUT: [&str; 5] = ["x5u", "x5c", "x5t", "x5t#S256", "ext"];
/// The longest name of a key.
const MAX_KID: usize = 128;
/// What the identifiers of secrets begin with, so that none is taken for a key's name.
const SECRET_PREFIX: &str = "sec_";

/// How many keys an application may have.
pub const MAX_KEYS: usize = 5;

/// A public key of an application. In the table it is `{kid, jwk, createdDate}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientKey {
    /// Its name: what the application gave, or the thumbprint of RFC 7638.
    pub kid: String,
    jwk: Jwk,
    /// When it was registered.
    pub created_date: Time,
}

/// What decides what a key verifies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Jwk {
    #[serde(flatten)]
    material: Material,
    /// The one algorithm that the application wants it used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<Algorithm>,
}

/// The key itself, in the words of RFC 7518 §6 and RFC 8037 §2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kty")]
enum Material {
    #[serde(rename = "EC")]
    Elliptic { crv: Curve, x: String, y: String },
    #[serde(rename = "OKP")]
    Edwards { crv: EdwardsCurve, x: String },
    #[serde(rename = "RSA")]
    Rsa { e: String, n: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Curve {
    #[serde(rename = "P-256")]
    P256,
    #[serde(rename = "P-384")]
    P384,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum EdwardsCurve {
    Ed25519,
}

impl ClientKey {
    /// Reads a JSON Web Key that an application registers now.
    ///
    /// # Errors
    /// What is wrong with it, as the second half of a sentence that begins with the key's place in
    /// the request.
    pub fn parse(jwk: &Value, now: Time) -> Result<Self, String> {
        let members = jwk.as_object().ok_or("must be a JSON Web Key: an object")?;
        if let Some(name) = PRIVATE.iter().find(|name| members.contains_key(**name)) {
            return Err(format!(
                "has the member `{name}` of a private key; send a public key, and of another pair, since this one is no longer secret"
            ));
        }
        if members.keys().any(|name| !KNOWN.contains(&name.as_str()) && !LEFT_OUT.contains(&name.as_str())) {
            return Err("has a member that a public JSON Web Key has not".to_owned());
        }
        let material = Material::parse(members)?;
        let alg = purpose(members, &material)?;
        let kid = match members.get("kid") {
            None => material.thumbprint(),
            Some(kid) => kid.as_str().filter(|kid| is_kid(kid)).map(str::to_owned).ok_or_else(|| {
                format!(
                    "must have a `kid` of 1 to {MAX_KID} of the characters A–Z, a–z, 0–9, `.`, `_`, `~`, `:`, `@`, `-` that \
                     does not begin with `{SECRET_PREFIX}` and is not dots alone, or none"
                )
            })?,
        };
        Ok(Self { kid, jwk: Jwk { material, alg }, created_date: now })
    }

    /// The key as a public JSON Web Key, with its name.
    pub fn to_jwk(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([("kid".to_owned(), Value::from(self.kid.as_str()))]);
        // Texts only: writing them as JSON cannot fail, and what is not an object there cannot be.
        if let Ok(Value::Object(jwk)) = serde_json::to_value(&self.jwk) {
            members.extend(jwk);
        }
        members
    }

    /// The hash of the key itself (RFC 7638), whatever its name is.
    pub fn thumbprint(&self) -> String {
        self.jwk.material.thumbprint()
    }

    /// The algorithms that may be used with the key: it decides, and never what an assertion says
    /// of itself (RFC 8725 §3.1).
    pub fn algorithms(&self) -> &[Algorithm] {
        self.jwk.alg.as_ref().map_or_else(|| self.jwk.material.algorithms(), std::slice::from_ref)
    }

    /// The key, ready to verify with.
    ///
    /// # Errors
    /// When it is not what [`ClientKey::parse`] made.
    pub fn public(&self) -> Result<DecodingKey, jsonwebtoken::errors::Error> {
        match &self.jwk.material {
            Material::Elliptic { x, y, .. } => DecodingKey::from_ec_components(x, y),
            Material::Edwards { x, .. } => DecodingKey::from_ed_components(x),
            Material::Rsa { e, n } => DecodingKey::from_rsa_components(n, e),
        }
    }
}

/// Whether a text can be a key's name: it stands in paths, where clients leave out `.` and `..`
/// (RFC 3986 §5.2.4), and logs.
fn is_kid(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
    let dots_alone = text.bytes().all(|byte| byte == b'.');
    (1..=MAX_KID).contains(&text.len()) && text.bytes().all(allowed) && !dots_alone && !text.starts_with(SECRET_PREFIX)
}

/// The algorithm that the key is for, if it says so. A key that is for something else than
/// verifying signatures is refused.
fn purpose(members: &Map<String, Value>, material: &Material) -> Result<Option<Algorithm>, String> {
    if members.get("use").is_some_and(|usage| usage != "sig") {
        return Err("must have `sig` as its `use`, or none".to_owned());
    }
    let verifies = |operations: &Value| operations.as_array().is_some_and(|all| all.contains(&"verify".into()));
    if members.get("key_ops").is_some_and(|operations| !verifies(operations)) {
        return Err("must have `verify` among its `key_ops`, or none".to_owned());
    }
    let Some(given) = members.get("alg") else { return Ok(None) };
    let possible = material.algorithms();
    let algorithm = given.as_str().and_then(|name| name.parse().ok()).filter(|alg| possible.contains(alg));
    algorithm.map(Some).ok_or_else(|| {
        let names: Vec<_> = possible.iter().map(|algorithm| format!("`{algorithm:?}`")).collect();
        format!("must have {} as its `alg`, or none", names.join(" or "))
    })
}

impl Material {
    fn parse(members: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let (crv, x, y) = (text("crv"), text("x").to_owned(), text("y").to_owned());
        let bytes = |name: &str| {
            let decoded = BASE64_URL_SAFE_NO_PAD.decode(text(name)).ok().filter(|bytes| !bytes.is_empty());
            decoded.ok_or_else(|| format!("must have the member `{name}`, in URL-safe base 64 without padding"))
        };
        match (text("kty"), crv) {
            ("EC", "P-256") => {
                on_curve(&ECDSA_P256_SHA256_FIXED, 32, bytes("x")?, bytes("y")?)?;
                Ok(Self::Elliptic { crv: Curve::P256, x, y })
            }
            ("EC", "P-384") => {
                on_curve(&ECDSA_P384_SHA384_FIXED, 48, bytes("x")?, bytes("y")?)?;
                Ok(Self::Elliptic { crv: Curve::P384, x, y })
            }
            ("OKP", "Ed25519") => {
                edwards(bytes("x")?)?;
                Ok(Self::Edwards { crv: EdwardsCurve::Ed25519, x })
            }
            ("RSA", _) => {
                rsa(&bytes("n")?, &bytes("e")?)?;
                Ok(Self::Rsa { e: text("e").to_owned(), n: text("n").to_owned() })
            }
            _ => {
                Err("must be a key of `kty` `EC` with `crv` `P-256` or `P-384`, `OKP` with `Ed25519`, or `RSA`"
                    .to_owned())
            }
        }
    }

    /// The algorithms that the key can be used with.
    fn algorithms(&self) -> &'static [Algorithm] {
        match self {
            Self::Elliptic { crv: Curve::P256, .. } => &[Algorithm::ES256],
            Self::Elliptic { crv: Curve::P384, .. } => &[Algorithm::ES384],
            Self::Edwards { .. } => &[Algorithm::EdDSA],
            Self::Rsa { .. } => &[Algorithm::RS256, Algorithm::PS256],
        }
    }

    /// RFC 7638 §3: the hash of the members that make the key, in the order of their names.
    fn thumbprint(&self) -> String {
        let members = match self {
            Self::Elliptic { crv, x, y } => {
                let crv = match crv {
                    Curve::P256 => "P-256",
                    Curve::P384 => "P-384",
                };
                format!(r#"{{"crv":"{crv}","kty":"EC","x":"{x}","y":"{y}"}}"#)
            }
            Self::Edwards { crv: EdwardsCurve::Ed25519, x } => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#),
            Self::Rsa { e, n } => format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#),
        };
        BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, members.as_bytes()))
    }
}

/// Whether these are the coordinates of a point on the curve. A verification would find that out
/// only when it is too late to refuse the key.
fn on_curve(curve: &'static EcdsaVerificationAlgorithm, length: usize, x: Vec<u8>, y: Vec<u8>) -> Result<(), String> {
    let right = x.len() == length && y.len() == length;
    let point = [vec![4], x, y].concat(); // uncompressed (SEC 1 §2.3.3)
    if right && ParsedPublicKey::new(curve, point).is_ok() {
        Ok(())
    } else {
        Err("is no point on its curve".to_owned())
    }
}

/// Whether these bytes can be an Ed25519 key for which signing needs the private half. The library
/// that verifies takes any point, and with one of a small order a signature of zeros is good for
/// one message in eight, or for every one.
fn edwards(x: Vec<u8>) -> Result<(), String> {
    let fault = || "is no key on the curve Ed25519".to_owned();
    let mut coordinate = <[u8; 32]>::try_from(x.as_slice()).map_err(|_| fault())?;
    coordinate[31] &= 0x7f; // the highest bit tells a point from its negative
    coordinate.reverse(); // the largest digit first, so that numbers compare as texts do
    let small = SMALL_ORDER.contains(&coordinate);
    if small || coordinate >= FIELD || ParsedPublicKey::new(&ED25519, x).is_err() { Err(fault()) } else { Ok(()) }
}

/// A number of 32 bytes in hexadecimal digits, the largest first.
const fn number(digits: &[u8; 64]) -> [u8; 32] {
    const fn value(digit: u8) -> u8 {
        if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
    }
    let (mut number, mut place) = ([0; 32], 0);
    while place < 32 {
        number[place] = value(digits[2 * place]) << 4 | value(digits[2 * place + 1]);
        place += 1;
    }
    number
}

/// 2²⁵⁵ − 19: a coordinate that is as large is written in more than one way (RFC 8032 §5.1.3),
/// which some take and others do not.
const FIELD: [u8; 32] = number(b"7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");

/// The y of every point whose order divides eight, of which each stands for a point and its
/// negative: orders 4, 1, 8, 8 and 2. Those of libsodium's `ge25519_has_small_order` that are not
/// as large as the field.
const SMALL_ORDER: [[u8; 32]; 5] = [
    number(b"0000000000000000000000000000000000000000000000000000000000000000"),
    number(b"0000000000000000000000000000000000000000000000000000000000000001"),
    number(b"05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826"),
    number(b"7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7"),
    number(b"7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffec"),
];

/// Whether a number, the largest digit first, has a factor below 752, as no modulus of RSA has
/// (NIST SP 800-89 §5.3.3): a factor that is known leads to the others, and they to the private
/// half.
fn has_small_factor(number: &[u8]) -> bool {
    let rest = |divisor: u32| number.iter().fold(0, |rest, byte| (rest << 8 | u32::from(*byte)) % divisor);
    (2..752).any(|divisor| rest(divisor) == 0)
}

/// Whether these are modulus and exponent of an RSA key of a good size.
fn rsa(n: &[u8], e: &[u8]) -> Result<(), String> {
    let bits = |number: &[u8]| number.len() * 8 - number.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if n.starts_with(&[0]) || e.starts_with(&[0]) {
        return Err("must have `n` and `e` without zeros before the number".to_owned()); // RFC 7518 §2
    }
    if !(2048..=8192).contains(&bits(n)) {
        return Err("must have 2048 to 8192 bits".to_owned());
    }
    // Of 65537 and its like; an exponent of 1 would make every text its own signature.
    let exponent = (2..=32).contains(&bits(e)) && e.last().is_some_and(|byte| byte % 2 == 1);
    let parsed = PublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256);
    if exponent && parsed.is_ok() && !has_small_factor(n) { Ok(()) } else { Err("is no RSA key".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::testing::AssertionKey;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn with(mut jwk: Value, member: &str, value: Value) -> Value {
        jwk[member] = value;
        jwk
    }

    fn refusal(jwk: &Value) -> String {
        ClientKey::parse(jwk, NOW).err().unwrap_or_else(|| panic!("{jwk} was accepted"))
    }

    #[test]
    fn a_key_is_kept_and_shown_without_what_nothing_is_verified_with() {
        for (algorithm, possible) in [
            ("ES256", vec![Algorithm::ES256]),
            ("ES384", vec![Algorithm::ES384]),
            ("EdDSA", vec![Algorithm::EdDSA]),
            ("PS256", vec![Algorithm::RS256, Algorithm::PS256]),
        ] {
            let jwk = AssertionKey::generate(algorithm).jwk();
            let full =
                with(with(with(jwk.clone(), "use", json!("sig")), "x5t", json!("x")), "key_ops", json!(["verify"]));
            let key = ClientKey::parse(&full, NOW).expect("a key");
            assert_eq!((key.algorithms(), key.created_date), (&*possible, NOW));
            assert_eq!(Value::from(key.to_jwk()), with(jwk.clone(), "kid", json!(key.kid)));
            let stored = serde_json::to_value(&key).expect("JSON");
            assert_eq!(stored["jwk"], jwk);
            assert_eq!(serde_json::from_value::<ClientKey>(stored).expect("a key"), key);
            let item = storage::table::Put::item(&key, "").expect("an item");
            assert_eq!(item.read_back::<ClientKey>("").ok(), Some(key));
        }
    }

    #[test]
    fn the_name_is_the_given_one_or_the_thumbprint() {
        // RFC 7638 §3.1.
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst\
                 n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n9\
                 1CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let jwk = json!({ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RS256" });
        let key = ClientKey::parse(&jwk, NOW).expect("a key");
        assert_eq!(key.kid, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(key.algorithms(), [Algorithm::RS256]);
        // RFC 8037 §A.3.
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        assert_eq!(ClientKey::parse(&jwk, NOW).expect("a key").kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert_eq!(ClientKey::parse(&with(jwk.clone(), "kid", json!("2026:a")), NOW).expect("a key").kid, "2026:a");
        for kid in ["", ".", "..", "...", "a/b", "ä", "sec_1", &"x".repeat(129)].map(Value::from) {
            assert!(refusal(&with(jwk.clone(), "kid", kid)).contains("`kid`"));
        }
        for kid in [json!(1), Value::Null] {
            assert!(refusal(&with(jwk.clone(), "kid", kid)).contains("`kid`"));
        }
        assert!(ClientKey::parse(&with(jwk, "kid", json!("..a")), NOW).is_ok());
    }

    #[test]
    fn a_private_key_is_refused_whatever_else_it_is() {
        for (jwk, member) in [
            (AssertionKey::generate("ES256").jwk(), "d"),
            (AssertionKey::generate("PS256").jwk(), "qi"),
            (json!({ "kty": "oct" }), "k"),
        ] {
            let refusal = refusal(&with(jwk, member, json!("hunter2")));
            assert!(refusal.contains(&format!("`{member}`")) && !refusal.contains("hunter2"), "{refusal}");
        }
    }

    #[test]
    fn what_nothing_could_be_verified_with_is_refused() {
        let (ec, p384) = (AssertionKey::generate("ES256").jwk(), AssertionKey::generate("ES384").jwk());
        let (ed, rsa) = (AssertionKey::generate("EdDSA").jwk(), AssertionKey::generate("RS256").jwk());
        let other = AssertionKey::generate("ES256").jwk();
        let number = |bytes: &[u8]| json!(BASE64_URL_SAFE_NO_PAD.encode(bytes));
        for (bad, why) in [
            (json!("key"), "an object"),
            (json!([]), "an object"),
            (json!({}), "`kty`"),
            (with(ec.clone(), "kty", json!("ec")), "`kty`"),
            (with(ec.clone(), "crv", json!("secp256k1")), "`kty`"),
            (with(ec.clone(), "crv", json!("P-384")), "no point"),
            (with(p384.clone(), "crv", json!("P-256")), "no point"),
            (with(ec.clone(), "y", other["y"].clone()), "no point"),
            (with(ec.clone(), "y", Value::Null), "`y`"),
            (with(ec.clone(), "x", json!("a b")), "`x`"),
            (with(ec.clone(), "x", json!(format!("{}=", ec["x"].as_str().expect("text")))), "`x`"),
            (with(ed.clone(), "crv", json!("X25519")), "`kty`"),
            (with(ed.clone(), "x", number(&[1; 31])), "Ed25519"),
            (with(rsa.clone(), "n", number(&[255; 128])), "2048"),
            (with(rsa.clone(), "n", number(&[255; 1025])), "8192"),
            (with(rsa.clone(), "n", number(&[&[0], [255; 256].as_slice()].concat())), "zeros"),
            (with(rsa.clone(), "n", number(&[255; 256])), "no RSA key"), // three times something
            (with(rsa.clone(), "e", number(&[1])), "no RSA key"),
            (with(rsa.clone(), "e", number(&[1, 0, 0])), "no RSA key"),
            (with(rsa.clone(), "e", number(&[1; 9])), "no RSA key"),
            (with(rsa.clone(), "alg", json!("RS512")), "`RS256` or `PS256`"),
            (with(ec.clone(), "alg", json!("ES384")), "`ES256`"),
            (with(ec.clone(), "alg", json!(1)), "`ES256`"),
            (with(ec.clone(), "use", json!("enc")), "`use`"),
            (with(ec.clone(), "key_ops", json!(["encrypt"])), "`key_ops`"),
            (with(ec.clone(), "keyOps", json!([])), "a member"),
        ] {
            let refusal = refusal(&bad);
            assert!(refusal.contains(why), "{refusal}: {bad}");
        }
    }

    /// Every way to write a point of a small order, those included that a strict reader refuses:
    /// 2²⁵⁵ − 19 and the number after it are 0 and 1 again. Each with and without the bit that
    /// tells a point from its negative.
    fn small_order() -> impl Iterator<Item = [u8; 32]> {
        let mut beyond = FIELD;
        beyond[31] += 1;
        SMALL_ORDER.into_iter().chain([FIELD, beyond]).flat_map(|mut y| {
            y.reverse();
            let mut negative = y;
            negative[31] |= 0x80;
            [y, negative]
        })
    }

    #[test]
    fn an_ed25519_key_for_which_anybody_can_sign_is_refused() {
        for y in small_order() {
            let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(y) });
            assert_eq!(refusal(&jwk), "is no key on the curve Ed25519", "{y:02x?}");
        }
    }

    /// Why they must be, and that the table is right: with each of the eight points, the library
    /// that verifies is content with a signature of zeros for one message in eight at least. What
    /// is left over are further ways to write one of them.
    #[test]
    fn with_a_key_of_a_small_order_a_signature_that_nobody_made_is_good() {
        let identity = number(b"0100000000000000000000000000000000000000000000000000000000000000");
        let signature = [identity, [0; 32]].concat();
        let forgeable = |y: &[u8; 32]| {
            let key = ParsedPublicKey::new(&ED25519, y);
            key.is_ok_and(|key| (0..200u8).any(|message| key.verify_sig(&[message], &signature).is_ok()))
        };
        assert_eq!(small_order().filter(forgeable).count(), 8);
    }

    #[test]
    fn a_coordinate_that_is_written_in_more_than_one_way_is_refused() {
        for beyond in 0..19 {
            let mut y = FIELD;
            y[31] += beyond;
            y.reverse();
            for sign in [0, 0x80] {
                y[31] = 0x7f | sign;
                let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(y) });
                assert!(ClientKey::parse(&jwk, NOW).is_err(), "{beyond} {sign}");
            }
        }
    }

    #[test]
    fn a_modulus_with_a_small_factor_is_found() {
        for product in [[0, 6], [2, 239], [8, 1]] {
            assert!(has_small_factor(&product), "{product:?}"); // 2 · 3, 751, 2049 = 3 · 683
        }
        assert!(!has_small_factor(&[8, 202, 77]), "757 · 761");
    }

    proptest! {
        #[test]
        fn no_value_makes_the_reader_panic(kty in "EC|OKP|RSA|.", crv in "P-256|P-384|Ed25519|.", x in "[A-Za-z0-9_-]{0,90}", y in "\\PC{0,50}") {
            let _ = ClientKey::parse(&json!({ "kty": kty, "crv": crv, "x": x, "y": y, "n": x, "e": y }), NOW);
            let _ = ClientKey::parse(&json!({ "kty": "RSA", "n": x.repeat(8), "e": x }), NOW);
        }
    }
}
