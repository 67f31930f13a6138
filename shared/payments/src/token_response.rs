//! Parses a token endpoint's responses (RFC 6749 §5). A response with an access token is a grant. Every other member is
//! optional: the code or the refresh token is spent, so discarding a grant because of one malformed member would cost
//! the connection. From a refusal, only a known code is kept.

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

/// The longest accepted access token lifetime: ten years.
const MAX_LIFE: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// The longest account name, in bytes.
const MAX_ACCOUNT: usize = 255;
/// The maximum number of scopes that are kept, and their maximum length.
const MAX_SCOPES: usize = 200;
const MAX_SCOPE: usize = 255;
/// The media type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Parses a grant or a refusal.
pub fn read(answer: &HttpResponse, reading: &Reading, now: Time) -> Result<GrantedTokens, GrantError> {
    if let Some(refused) = refusal(answer, reading) {
        return Err(refused);
    }
    if !answer.status.is_success() {
        return Err(GrantError::Status { status: answer.status, retry_after: answer.pause_asked_for(now) });
    }
    if answer.truncated {
        return Err(GrantError::TooLarge);
    }
    let body = Body::read(answer).ok_or(GrantError::Unreadable)?;
    let access_token = body.get("access_token").and_then(token).filter(|_| !body.has_twice("access_token"));
    let access_token = access_token.ok_or(GrantError::Malformed("access_token"))?;
    body.warn_of_token_type();
    Ok(GrantedTokens {
        access_token,
        refresh_token: body.optional("refresh_token", token),
        expires: body.expires(reading.expiry.as_ref(), now),
        scopes: body.optional("scope", |value| scopes(value, &reading.scope_separator)).unwrap_or_default(),
        account: reading.account_fields.iter().find_map(|field| body.optional(field, account)),
    })
}

/// A response's members, and the names that are repeated. The first value of a repeated member counts.
struct Body {
    members: Map<String, Value>,
    doubled: Vec<String>,
}

impl Body {
    /// Parses a JSON object, regardless of the media type, or else a form, if that is the media type. Some providers
    /// respond with a form although RFC 6749 §5.1 requires JSON.
    fn read(answer: &HttpResponse) -> Option<Self> {
        let is_form = answer.media_type.as_deref() == Some(FORM);
        Self::of_json(&answer.body).or_else(|| is_form.then(|| Self::of_form(&answer.body)))
    }

    /// Parses the parameters of a form. Each is a string.
    fn of_form(body: &[u8]) -> Self {
        let mut form = Self { members: Map::new(), doubled: Vec::new() };
        for (name, value) in form_urlencoded::parse(body.trim_ascii()) {
            if form.members.contains_key(&*name) {
                form.doubled.push(name.into_owned());
            } else {
                form.members.insert(name.into_owned(), Value::from(value));
            }
        }
        form
    }

    /// Parses an object. A byte order mark is ignored (RFC 8259 §8.1). Invalid UTF-8, or a value that cannot be
    /// represented, spoils only the member that contains it.
    fn of_json(body: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
        let Members { members, doubled } = serde_json::from_str(&text).ok()?;
        let value = |(name, value): (String, &RawValue)| (name, serde_json::from_str(value.get()).unwrap_or_default());
        Some(Self { members: members.into_iter().map(value).collect(), doubled })
    }

    /// A member with content: null and an empty string count as absent.
    fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))
    }

    fn has_twice(&self, name: &str) -> bool {
        self.doubled.iter().any(|doubled| doubled == name)
    }

    /// An optional member of a grant. If it cannot be read, logs that and returns `None`.
    fn optional<T>(&self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = self.get(name)?;
        let read = read(value);
        if read.is_none() {
            tracing::warn!(member = name, "a provider's token response has an unreadable member, which is ignored");
        }
        read
    }

    /// Logs a type that is not `Bearer`. The grant is kept: this service uses an access token only to revoke access.
    fn warn_of_token_type(&self) {
        let bearer = |value: &Value| value.as_str()?.trim().eq_ignore_ascii_case("bearer").then_some(());
        self.optional("token_type", bearer);
    }

    /// When the access token expires, according to the description's member, or else `expires_in`.
    fn expires(&self, expiry: Option<&Expiry>, now: Time) -> Option<Time> {
        let life = |value: &Value, form: ExpiryForm| match form {
            // A date in the past is meaningless for a new token.
            ExpiryForm::Date => {
                value.as_str()?.parse().ok().map(|end: Time| end.since(now)).filter(|life| !life.is_zero())
            }
            ExpiryForm::Seconds | ExpiryForm::SecondsOrText => seconds(value),
        };
        let described = expiry.and_then(|expiry| self.optional(&expiry.field, |value| life(value, expiry.form)));
        let life = described.or_else(|| self.optional("expires_in", |value| life(value, ExpiryForm::Seconds)))?;
        // Providers send zero for an access token that does not expire.
        (!life.is_zero()).then(|| now + life.min(MAX_LIFE))
    }
}

/// A token: a string of visible characters and spaces (RFC 6749 §A.12 and §A.17).
fn token(value: &Value) -> Option<SecretText> {
    let text = value.as_str().filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')))?;
    (!text.trim().is_empty()).then(|| SecretText::new(text))
}

/// A number of seconds, as a number or a string, possibly with a fraction, clamped to 0 and [`MAX_LIFE`].
fn seconds(value: &Value) -> Option<Duration> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number| !number.is_nan())?;
    Some(Duration::from_secs(number.clamp(0.0, MAX_LIFE.as_secs_f64()).floor() as u64))
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

/// An account's name: a string or a number, or several if the person chose several accounts.
fn account(value: &Value) -> Option<String> {
    let name = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        Value::Array(list) if list.iter().all(|one| !one.is_array()) => {
            list.iter().map(account).collect::<Option<Vec<_>>>()?.join(", ")
        }
        _ => return None,
    };
    let readable = |character: char| !character.is_control() && character != char::REPLACEMENT_CHARACTER;
    let good = !name.is_empty() && name.len() <= MAX_ACCOUNT && name.chars().all(readable);
    good.then_some(name)
}

/// The refusal in a response. A code for a dead grant counts regardless of the status, since providers also send it
/// with 200. Any other code is a refusal unless the status says that the server is overloaded or broken.
fn refusal(answer: &HttpResponse, reading: &Reading) -> Option<GrantError> {
    let status = answer.status;
    let body = error_body(answer)?;
    // The description's error fields may mean something else in a response with a token.
    let granted = status.is_success() && body.get("access_token").is_some_and(Value::is_string);
    let code = code_of(&body, if granted { &[] } else { &reading.error_fields })?;
    let dead = code == "invalid_grant" || reading.dead_grant_codes.contains(&code);
    let passing = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    // A response with an access token is a grant, even with an error code for a temporary fault. Otherwise, the tokens
    // would be lost.
    let refused = status.is_success() && !granted || status.is_client_error() && !passing;
    (dead || refused)
        .then(|| GrantError::Refused(if dead { RefusalCode::InvalidGrant } else { RefusalCode::of(&code) }, status))
}

/// An error's code, from `/error` or the description's fields. It is only compared, never kept.
pub fn error_code(answer: &HttpResponse, fields: &[String]) -> Option<String> {
    code_of(&error_body(answer)?, fields)
}

fn code_of(body: &Value, fields: &[String]) -> Option<String> {
    let known = std::iter::once("/error").chain(fields.iter().map(String::as_str));
    known.filter_map(|field| body.pointer(field)?.as_str()).find(|code| !code.is_empty()).map(str::to_owned)
}

/// The members of an error's body, if it is a JSON object or a form.
pub fn error_body(answer: &HttpResponse) -> Option<Value> {
    let body = Body::read(answer)?;
    (!body.has_twice("error") && !answer.truncated).then_some(Value::Object(body.members))
}

#[cfg(test)]
#[path = "token_response_tests.rs"]
mod tests;
