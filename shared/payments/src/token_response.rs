//! Reads the answers of a token endpoint (RFC 6749 §5) strictly: an answer that is not exactly a grant is none, and of
//! a refusal only a known code is kept.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    granted_tokens::{GrantError, GrantedTokens, RefusalCode},
    provider::{Expiry, ExpiryForm, Reading},
};
use base::Time;
use outbound::HttpResponse;
use problem::Members;
use storage::SecretText;

/// The longest life of an access token that is believed: ten years.
const MAX_LIFE: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// The longest name of an account.
const MAX_ACCOUNT: usize = 255;
/// The most scopes, and the longest, that are kept.
const MAX_SCOPES: usize = 200;
const MAX_SCOPE: usize = 255;

/// Reads a grant, or the refusal of one.
pub fn read(
    answer: &HttpResponse,
    reading: &Reading,
    asked: &[String],
    now: Time,
) -> Result<GrantedTokens, GrantError> {
    let body = Body::of_success(answer, reading, now)?;
    if body.doubled {
        return Err(GrantError::Malformed("a member that comes twice"));
    }
    let bearer = |value: &Value| value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !body.get("token_type").is_none_or(bearer) {
        return Err(GrantError::Malformed("token_type"));
    }
    let granted_scopes = match body.get("scope") {
        Some(value) => scopes(value, &reading.scope_separator).ok_or(GrantError::Malformed("scope"))?,
        None => Vec::new(),
    };
    let named = reading.account_fields.iter().find_map(|field| body.get(field));
    Ok(GrantedTokens {
        access_token: body.access_token()?,
        refresh_token: body.token("refresh_token")?,
        expires: body.expires(reading.expiry.as_ref(), now)?,
        scopes: if granted_scopes.is_empty() { asked.to_vec() } else { granted_scopes },
        account: named.map(|value| account(value).ok_or(GrantError::Malformed("account"))).transpose()?,
    })
}

/// Reads new tokens. A malformed member beside them is passed over: the old refresh token may be worth nothing any
/// more, so tokens that are thrown away cost the connection.
pub fn read_renewed(answer: &HttpResponse, reading: &Reading, now: Time) -> Result<GrantedTokens, GrantError> {
    let body = Body::of_success(answer, reading, now)?;
    let expires = body.expires(reading.expiry.as_ref(), now).unwrap_or_else(|error| {
        tracing::warn!(%error, "a refresh gave tokens with an end that cannot be read");
        None
    });
    let (access_token, refresh_token) = (body.access_token()?, body.token("refresh_token")?);
    Ok(GrantedTokens { access_token, refresh_token, expires, scopes: Vec::new(), account: None })
}

/// The members of an answer, and whether a name comes twice.
struct Body {
    members: Map<String, Value>,
    doubled: bool,
}

impl Body {
    /// The body of an answer that is no refusal.
    fn of_success(answer: &HttpResponse, reading: &Reading, now: Time) -> Result<Self, GrantError> {
        if !answer.status.is_success() {
            Err(refusal(answer, reading, now))
        } else if answer.truncated {
            Err(GrantError::TooLarge)
        } else {
            Self::read(&answer.body).ok_or(GrantError::NotJson)
        }
    }

    fn read(body: &[u8]) -> Option<Self> {
        let Members { members, doubled } = serde_json::from_slice(body).ok()?;
        let value = |(name, value): (String, &RawValue)| Some((name, serde_json::from_str(value.get()).ok()?));
        Some(Self { members: members.into_iter().map(value).collect::<Option<_>>()?, doubled: !doubled.is_empty() })
    }

    /// A member that is there and not null.
    fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn access_token(&self) -> Result<SecretText, GrantError> {
        self.token("access_token")?.ok_or(GrantError::Malformed("access_token"))
    }

    fn token(&self, name: &'static str) -> Result<Option<SecretText>, GrantError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let visible =
            value.as_str().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()));
        visible.map(SecretText::new).map(Some).ok_or(GrantError::Malformed(name))
    }

    /// When the access token expires, by the member that the description names, or else by RFC 6749's.
    fn expires(&self, expiry: Option<&Expiry>, now: Time) -> Result<Option<Time>, GrantError> {
        let described = expiry.and_then(|expiry| Some((self.get(&expiry.field)?, expiry.form)));
        let Some((value, form)) = described.or_else(|| Some((self.get("expires_in")?, ExpiryForm::Seconds))) else {
            return Ok(None);
        };
        let seconds = match form {
            ExpiryForm::Seconds => value.as_u64(),
            ExpiryForm::SecondsOrText => value.as_u64().or_else(|| digits(value.as_str()?)),
            ExpiryForm::Date => None,
        };
        let time = match form {
            ExpiryForm::Date => value.as_str().and_then(|text| text.parse::<Time>().ok()),
            _ => {
                let seconds = seconds.filter(|seconds| *seconds <= MAX_LIFE.as_secs());
                seconds.map(|seconds| now + Duration::from_secs(seconds))
            }
        };
        let life = time.map(|time| time.since(now)).filter(|life| !life.is_zero() && *life <= MAX_LIFE);
        life.map(|life| Some(now + life)).ok_or(GrantError::Malformed("expiry"))
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn scopes(value: &Value, separator: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = match value {
        Value::String(text) if separator.is_empty() => text.split(' ').collect(),
        Value::String(text) => text.split(separator).flat_map(|part| part.split(' ')).collect(),
        Value::Array(list) => list.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let plain = |word: &String| word.len() <= MAX_SCOPE && word.bytes().all(|byte| byte.is_ascii_graphic());
    (words.len() <= MAX_SCOPES && words.iter().all(plain)).then_some(words)
}

/// A text or a number; or several of them, where a person chose several accounts.
fn account(value: &Value) -> Option<String> {
    let name = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        Value::Array(list) if list.iter().all(|one| !one.is_array()) => {
            list.iter().map(account).collect::<Option<Vec<_>>>()?.join(", ")
        }
        _ => return None,
    };
    let good = !name.is_empty() && name.len() <= MAX_ACCOUNT && !name.chars().any(char::is_control);
    good.then_some(name)
}

/// The error of an answer without success. Only a client error that names its reason is a refusal: an overloaded or
/// broken server proves nothing about a grant.
fn refusal(answer: &HttpResponse, reading: &Reading, now: Time) -> GrantError {
    let status = answer.status;
    let passing = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    match error_code(answer, &reading.error_fields) {
        Some(code) if status.is_client_error() && !passing => {
            let dead = reading.dead_grant_codes.contains(&code);
            GrantError::Refused(if dead { RefusalCode::InvalidGrant } else { RefusalCode::of(&code) }, status)
        }
        _ => GrantError::Status { status, retry_after: answer.pause_asked_for(now) },
    }
}

/// The code of an error, from RFC 6749's member or from those of the description. It is compared, and never kept.
pub fn error_code(answer: &HttpResponse, fields: &[String]) -> Option<String> {
    let body = error_body(answer)?;
    let known = std::iter::once("/error").chain(fields.iter().map(String::as_str));
    known.filter_map(|field| body.pointer(field)?.as_str()).map(str::to_owned).next()
}

/// The body of an error, where it is a JSON object.
pub fn error_body(answer: &HttpResponse) -> Option<Value> {
    let body = Body::read(&answer.body)?;
    (!body.doubled && !answer.truncated).then_some(Value::Object(body.members))
}

#[cfg(test)]
#[path = "token_response_tests.rs"]
mod tests;
