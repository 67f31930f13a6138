//! The material of an application's public key (RFC 7518 §6, RFC 8037 §2). Checks that only the holder of the private
//! half can sign for it.

use aws_lc_rs::{
    digest,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm, ParsedPublicKey,
        RSA_PKCS1_2048_8192_SHA256,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, errors};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The members that define a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kty")]
pub enum Material {
    #[serde(rename = "EC")]
    Elliptic { crv: Curve, x: String, y: String },
    #[serde(rename = "OKP")]
    Edwards { crv: EdwardsCurve, x: String },
    #[serde(rename = "RSA")]
    Rsa { e: String, n: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Curve {
    #[serde(rename = "P-256")]
    P256,
    #[serde(rename = "P-384")]
    P384,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EdwardsCurve {
    Ed25519,
}

impl Material {
    /// Parses and checks the members of a JSON Web Key. The error ends a sentence that begins with the key's path in
    /// the request.
    pub fn parse(members: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let crv = text("crv");
        let x = text("x").to_owned();
        let y = text("y").to_owned();
        let bytes = |name: &str| {
            let decoded = BASE64_URL_SAFE_NO_PAD.decode(text(name)).ok().filter(|bytes| !bytes.is_empty());
            decoded.ok_or_else(|| format!("must have the member `{name}`, in base64url without padding"))
        };
        match (text("kty"), crv) {
            ("EC", "P-256") => {
                check_lengths("P-256", 32, &bytes("x")?, &bytes("y")?)?;
                on_curve(&ECDSA_P256_SHA256_FIXED, bytes("x")?, bytes("y")?)?;
                Ok(Self::Elliptic { crv: Curve::P256, x, y })
            }
            ("EC", "P-384") => {
                check_lengths("P-384", 48, &bytes("x")?, &bytes("y")?)?;
                on_curve(&ECDSA_P384_SHA384_FIXED, bytes("x")?, bytes("y")?)?;
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
    pub fn algorithms(&self) -> &'static [Algorithm] {
        match self {
            Self::Elliptic { crv: Curve::P256, .. } => &[Algorithm::ES256],
            Self::Elliptic { crv: Curve::P384, .. } => &[Algorithm::ES384],
            Self::Edwards { .. } => &[Algorithm::EdDSA],
            Self::Rsa { .. } => &[Algorithm::RS256, Algorithm::PS256],
        }
    }

    /// The key, ready for verification.
    pub fn public(&self) -> Result<DecodingKey, errors::Error> {
        match self {
            Self::Elliptic { x, y, .. } => DecodingKey::from_ec_components(x, y),
            Self::Edwards { x, .. } => DecodingKey::from_ed_components(x),
            Self::Rsa { e, n } => DecodingKey::from_rsa_components(n, e),
        }
    }

    /// The hash of the members that define the key, in the order of their names (RFC 7638 §3).
    pub fn thumbprint(&self) -> String {
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

/// Checks the lengths of the coordinates. Some programs encode a coordinate as a number and lose its leading zeros.
fn check_lengths(curve: &str, length: usize, x: &[u8], y: &[u8]) -> Result<(), String> {
    check_length("x", x, length, "RFC 7518 section 6.2.1.2", curve)?;
    check_length("y", y, length, "RFC 7518 section 6.2.1.3", curve)
}

fn check_length(name: &str, octets: &[u8], wanted: usize, rule: &str, curve: &str) -> Result<(), String> {
    if octets.len() == wanted {
        return Ok(());
    }
    let found = octets.len();
    Err(format!(
        "must have coordinates of full length: `{name}` has {found} octets, but {rule} requires {wanted} for {curve}"
    ))
}

/// Checks that the coordinates are a point on the curve. Without this check, the owner would notice a bad key only when
/// it verified nothing.
fn on_curve(curve: &'static EcdsaVerificationAlgorithm, x: Vec<u8>, y: Vec<u8>) -> Result<(), String> {
    let point = [vec![4], x, y].concat(); // uncompressed (SEC 1 §2.3.3)
    ParsedPublicKey::new(curve, point).map(drop).map_err(|_| "is not a point on its curve".to_owned())
}

/// Checks that only the holder of the private half can sign for this Ed25519 key. The verifying library accepts any
/// point. With a point of small order, a signature of zeros is valid for at least one message in eight.
fn edwards(x: Vec<u8>) -> Result<(), String> {
    check_length("x", &x, 32, "RFC 8032 section 5.1.5", "Ed25519")?;
    let fault = || "is not a key on the curve Ed25519".to_owned();
    let mut coordinate = <[u8; 32]>::try_from(x.as_slice()).map_err(|_| fault())?;
    coordinate[31] &= 0x7f; // the highest bit distinguishes a point from its negative
    coordinate.reverse(); // most significant first, so that numbers compare like strings
    let small = SMALL_ORDER.contains(&coordinate);
    if small || coordinate >= FIELD || ParsedPublicKey::new(&ED25519, x).is_err() { Err(fault()) } else { Ok(()) }
}

/// Parses 32 bytes in hexadecimal, most significant digit first.
const fn number(digits: &[u8; 64]) -> [u8; 32] {
    const fn value(digit: u8) -> u8 {
        if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
    }
    let mut number = [0; 32];
    let mut place = 0;
    while place < 32 {
        number[place] = value(digits[2 * place]) << 4 | value(digits[2 * place + 1]);
        place += 1;
    }
    number
}

/// 2²⁵⁵ − 19: a coordinate of at least this value has more than one encoding (RFC 8032 §5.1.3), and libraries treat
/// such encodings differently.
const FIELD: [u8; 32] = number(b"7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");

/// The y of every point whose order divides eight: orders 4, 1, 8, 8 and 2. Each y represents a point and its negative.
/// These are the entries of libsodium's `ge25519_has_small_order` that are smaller than the field.
const SMALL_ORDER: [[u8; 32]; 5] = [
    number(b"0000000000000000000000000000000000000000000000000000000000000000"),
    number(b"0000000000000000000000000000000000000000000000000000000000000001"),
    number(b"05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826"),
    number(b"7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7"),
    number(b"7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffec"),
];

/// Whether a number, most significant digit first, has a factor below 752. An RSA modulus must not have one (NIST SP
/// 800-89 §5.3.3): with a known factor, the private half can be computed.
fn has_small_factor(number: &[u8]) -> bool {
    let rest = |divisor: u32| number.iter().fold(0, |rest, byte| (rest << 8 | u32::from(*byte)) % divisor);
    (2..752).any(|divisor| rest(divisor) == 0)
}

/// Checks an RSA key's modulus and exponent.
fn rsa(n: &[u8], e: &[u8]) -> Result<(), String> {
    let bits = |number: &[u8]| number.len() * 8 - number.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if n.starts_with(&[0]) || e.starts_with(&[0]) {
        return Err("must have `n` and `e` without leading zeros".to_owned()); // RFC 7518 §2
    }
    if !(2048..=8192).contains(&bits(n)) {
        return Err("must have 2048 to 8192 bits".to_owned());
    }
    // 65537 and similar values; an exponent of 1 would make every string its own signature.
    let exponent = (2..=32).contains(&bits(e)) && e.last().is_some_and(|byte| byte % 2 == 1);
    let parsed = PublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256);
    if exponent && parsed.is_ok() && !has_small_factor(n) { Ok(()) } else { Err("is not a valid RSA key".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(jwk: &Value) -> Result<Material, String> {
        Material::parse(jwk.as_object().expect("an object"))
    }

    /// Every encoding of a point of small order, including those that a strict parser refuses: 2²⁵⁵ − 19 and the number
    /// after it are 0 and 1 again. Each encoding appears with and without the bit that distinguishes a point from its
    /// negative.
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
    fn an_ed25519_key_of_a_small_order_is_refused() {
        for y in small_order() {
            let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(y) });
            assert_eq!(parse(&jwk), Err("is not a key on the curve Ed25519".to_owned()), "{y:02x?}");
        }
    }

    /// Shows why such keys must be refused, and that the table is correct: with each of the eight points, the verifying
    /// library accepts a signature of zeros for at least one message in eight. The other values are further encodings
    /// of the same points.
    #[test]
    fn with_a_key_of_a_small_order_a_signature_of_zeros_is_good() {
        let identity = number(b"0100000000000000000000000000000000000000000000000000000000000000");
        let signature = [identity, [0; 32]].concat();
        let forgeable = |y: &[u8; 32]| {
            let key = ParsedPublicKey::new(&ED25519, y);
            key.is_ok_and(|key| (0..200u8).any(|message| key.verify_sig(&[message], &signature).is_ok()))
        };
        assert_eq!(small_order().filter(forgeable).count(), 8);
    }

    #[test]
    fn a_coordinate_with_more_than_one_encoding_is_refused() {
        for beyond in 0..19 {
            let mut y = FIELD;
            y[31] += beyond;
            y.reverse();
            for sign in [0, 0x80] {
                y[31] = 0x7f | sign;
                let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(y) });
                assert!(parse(&jwk).is_err(), "{beyond} {sign}");
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
}
