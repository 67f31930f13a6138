//! Idempotency keys of calls.

use gate::{Call, EntityCall};
use http::HeaderValue;
use problem::{Problem, Rule, Violation};
use storage::{IdempotencyKey, IdempotentRequest, Sender};

/// The sender of a call. Each sender has its own keys.
///
/// # Errors
/// 500 if the endpoint admits calls without a token.
pub fn sender(call: &EntityCall) -> Result<Sender<'_>, Problem> {
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("an idempotency key is read from a call without a token"))?;
    Ok(Sender { entity: call.entity.id().as_str(), client: &token.client_id, path: call.whole_path() })
}

/// The idempotency key of a call, if it has one.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the header's name.
pub fn idempotency_key(call: &Call) -> Result<Option<IdempotencyKey<'_>>, String> {
    IdempotencyKey::read(call.headers().get_all("idempotency-key").iter().map(HeaderValue::as_bytes))
}

/// The call as an idempotent request, if it has an idempotency key.
///
/// # Errors
/// 400 for a malformed key.
pub fn idempotent_request(call: &EntityCall) -> Result<Option<IdempotentRequest>, Problem> {
    let key =
        idempotency_key(call).map_err(|fault| Violation::header("Idempotency-Key", Rule::InvalidFormat, fault))?;
    key.map(|key| Ok(IdempotentRequest::of_request(sender(call)?, key, &call.body))).transpose()
}
