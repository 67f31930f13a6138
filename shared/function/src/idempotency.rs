//! Idempotency keys of calls.

use gate::{Call, EntityCall, Reply};
use http::{HeaderValue, Method};
use problem::{Problem, Removed, Rule, Violation};
use storage::{IdempotencyError, IdempotencyKey, IdempotencyStore, IdempotentRequest, Once, Record, Sender};

/// A call's sender. Each sender has separate keys.
///
/// # Errors
/// 500 if the endpoint admits calls without a token.
pub fn sender(call: &EntityCall) -> Result<Sender<'_>, Problem> {
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("an idempotency key is read from a call without a token"))?;
    Ok(Sender { entity: call.entity.id().as_str(), client: &token.client_id, path: call.whole_path() })
}

/// A call's idempotency key, if it has one.
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
    let Some(key) = key else { return Ok(None) };
    let verb = call.method();
    // The gate admits no DELETE with input.
    let body: &[u8] = if *verb == Method::DELETE { b"" } else { &call.body };
    let request = IdempotentRequest::of_request(sender(call)?, key, body);
    Ok(Some(if *verb == Method::POST { request } else { request.with_verb(verb.as_str()) }))
}

/// Removes a resource once per idempotency key of a call, and replies. `remove` must write the record in the same
/// transaction as the removal.
///
/// # Errors
/// 400 for a malformed key, and the errors of the removal.
pub async fn remove_once<E, W>(
    answers: &IdempotencyStore,
    call: &EntityCall,
    removed: Removed,
    remove: impl FnOnce(Option<Record>) -> W,
) -> Result<Reply, Problem>
where
    E: From<IdempotencyError>,
    Problem: From<E>,
    W: Future<Output = Result<(), E>>,
{
    let request = idempotent_request(call)?;
    let once = Once::of(answers, request.as_ref());
    let work = async {
        let record = once.record(&removed, &removed.id, call.now).await?;
        remove(record).await.map(|()| &removed)
    };
    let answered = once.carry_out(call.now, work).await?;
    // A repeated call is audited as well, but skips the step that notes the subject.
    call.notes.subject(&removed.id);
    Ok(Reply::ok(&answered)?.replayed(answered.is_repeated()))
}
