//! Authenticating the client that sent a request.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::Value;

use super::{
    request::Parameters,
    setup::{Authentication, Setup},
};
use crate::{Received, clock};

/// The only assertion type that is accepted (RFC 7523 §2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The maximum lifetime of an assertion, in seconds.
const MAX_ASSERTION_LIFE: i64 = 600;

/// The identifier of an assertion, which may be used only once.
pub(crate) type Once = Option<String>;

/// Authenticates the client that sent a request; `audience` is the audience that an assertion must have.
pub(crate) fn check(
    setup: &Setup,
    received: &Received,
    parameters: &Parameters,
    audience: &str,
) -> Result<Once, String> {
    let in_header = !received.header("authorization").is_empty();
    let in_body = parameters.get("client_secret").is_some();
    let asserted = parameters.get("client_assertion").is_some();
    if [in_header, in_body, asserted].into_iter().filter(|used| *used).count() != 1 {
        return Err("the client shows who it is in no way, or in several".to_owned());
    }
    match &setup.authentication {
        Authentication::AnySecret => basic(received, &setup.client_id).map(drop)?,
        Authentication::Basic(secret) => {
            if basic(received, &setup.client_id)? != *secret {
                return Err("another client secret".to_owned());
            }
        }
        Authentication::Body(secret) | Authentication::Json(secret) => {
            if parameters.need("client_id")? != setup.client_id || parameters.need("client_secret")? != secret {
                return Err("another client id or secret".to_owned());
            }
        }
        Authentication::Assertion(key) => return assertion(setup, parameters, key, audience).map(Some),
    }
    Ok(None)
}

/// The client's secret from HTTP Basic authentication.
fn basic(received: &Received, client_id: &str) -> Result<String, String> {
    let (id, secret) = basic_pair(received)?;
    let id = form_decoded(&id)?;
    let secret = form_decoded(&secret)?;
    if id == client_id { Ok(secret) } else { Err("another client id".to_owned()) }
}

/// The name and secret from HTTP Basic authentication, without further decoding.
pub(crate) fn basic_pair(received: &Received) -> Result<(String, String), String> {
    let encoded = received.header("authorization").strip_prefix("Basic ").ok_or("no HTTP Basic")?;
    let decoded = BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or("HTTP Basic that cannot be read")?;
    let (id, secret) = decoded.split_once(':').ok_or("HTTP Basic without a colon")?;
    Ok((id.to_owned(), secret.to_owned()))
}

/// The name or secret from HTTP Basic authentication, form-decoded (RFC 6749 §2.3.1).
fn form_decoded(text: &str) -> Result<String, String> {
    let whole = format!("part={text}");
    let mut parts = form_urlencoded::parse(whole.as_bytes());
    match (parts.next(), parts.next()) {
        (Some((_, value)), None) => Ok(value.into_owned()),
        _ => Err("a part of HTTP Basic is not form-encoded".to_owned()),
    }
}

fn assertion(setup: &Setup, parameters: &Parameters, key: &[u8], audience: &str) -> Result<String, String> {
    if parameters.need("client_assertion_type")? != ASSERTION_TYPE {
        return Err("another type of assertion".to_owned());
    }
    let assertion = parameters.need("client_assertion")?;
    let (message, signature) = assertion.rsplit_once('.').ok_or("the assertion is no JWT")?;
    let (header, claims) = message.split_once('.').ok_or("the assertion is no JWT")?;
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| "the signature is not base64url")?;
    if part(header)?["alg"] != "RS256" {
        return Err("another algorithm than RS256".to_owned());
    }
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key)
        .verify(message.as_bytes(), &signature)
        .map_err(|_| "the signature is wrong")?;
    let claims = part(claims)?;
    for (claim, expected) in [("iss", setup.client_id.as_str()), ("sub", &setup.client_id), ("aud", audience)] {
        if claims[claim] != expected {
            return Err(format!("`{claim}` is {}, not {expected}", claims[claim]));
        }
    }
    let now = clock::seconds();
    let expires = claims["exp"].as_i64().ok_or("`exp` is no number")?;
    if expires <= now || expires > now + MAX_ASSERTION_LIFE {
        return Err("`exp` is past, or too far away".to_owned());
    }
    if claims["iat"].as_i64().is_some_and(|issued| issued > now + 5) {
        return Err("`iat` is in the future".to_owned());
    }
    claims["jti"].as_str().filter(|id| id.len() >= 16).map(str::to_owned).ok_or("`jti` is missing or short".to_owned())
}

fn part(encoded: &str) -> Result<Value, String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(encoded).map_err(|_| "a part of the assertion is not base64url")?;
    serde_json::from_slice(&bytes).map_err(|_| "a part of the assertion is not JSON".to_owned())
}
