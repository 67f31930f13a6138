//! The gate: the only place where requests are authenticated and where errors become Problems on the wire.
//!
//! Its body is the contract's order of checks from the third on (the first two, path and verb, are the gateway's
//! routes and the `fallback` function behind this same gate, but for what the check of the verb is about). Check 7 and later are
//! the handler's.

use std::{marker::PhantomData, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use http::{
    HeaderValue, Response,
    header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use lambda_http::{Body, Request, RequestExt};
use tokio::time::timeout;
use tracing::Instrument;

use crate::{
    ACCEPTED_VERSIONS, Call, EntityCall, Reply, SERVICE_VERSION, SERVICE_VERSION_HEADER, call, oauth_error, routes,
};
use auth::{
    entity::{AuthorizedEntity, EntityId},
    refusal,
    scope::Scope,
    token::{Claims, TokenFault},
    verifier::Verifier,
};
use base::{
    audit::{Action, AuditOutcome, Entry, Notes},
    clock::SharedClock,
    logging,
    random::{self, SharedRandom},
};
use problem::{Problem, ProblemKind};
use serde_json::json;

/// The longest that a request may take where an endpoint says nothing else: below the functions' own limit of 15 s, after
/// which Lambda would answer for us, and not with a Problem.
const DEADLINE: Duration = Duration::from_secs(12);

/// The name of the path parameter that holds the managing entity.
const ENTITY_PARAMETER: &str = "managingEntityIdentifier";

/// What the gate needs to admit a request and to answer it.
pub struct Gate {
    /// What verifies tokens.
    pub tokens: Arc<Verifier>,
    /// The clock of the audit trail.
    pub clock: SharedClock,
    /// The dice, for requests that come without an identifier.
    pub random: SharedRandom,
    /// The API's address, below which the types of Problems are.
    pub base_url: String,
    /// The name of the deployment.
    pub environment: String,
}

/// Who may call an endpoint, and in which form it takes and gives. What an endpoint does not say is refused. `C` is what its
/// handler gets: an [`EntityCall`] where the path names a managing entity, else a [`Call`].
#[derive(Debug)]
pub struct Endpoint<C = Call> {
    checks: Checks,
    handler_gets: PhantomData<fn(C)>,
}

impl<C> Clone for Endpoint<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Endpoint<C> {}

/// What an endpoint declares.
#[derive(Debug, Clone, Copy)]
pub struct Checks {
    access: Access,
    takes_json: bool,
    errors: ErrorStyle,
    deadline: Duration,
    audited: Option<Action>,
}

#[derive(Debug, Clone, Copy)]
enum Access {
    /// Anyone, without a token; the version check does not apply either.
    Public,
    /// Anyone; but who shows a token must show a good one with this scope.
    OptionalToken(Scope),
    /// Whoever has a good token, whatever its scopes.
    AnyScope,
    Scope(Scope),
}

/// How an endpoint words its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorStyle {
    /// `application/problem+json`.
    Problem,
    /// RFC 6749 §5.2 with the Problem's members beside it.
    OAuth,
    /// Problems, but for a 500, which is the empty object.
    EmptyInternalError,
}

impl Endpoint<EntityCall> {
    /// An endpoint that needs a token with this scope, for the path's managing entity.
    pub const fn needs(scope: Scope) -> Self {
        Self::open_to(Access::Scope(scope))
    }
}

impl Endpoint<Call> {
    /// An endpoint that needs a token, but no scope. Its path names no managing entity.
    pub const fn any_scope() -> Self {
        Self::open_to(Access::AnyScope)
    }

    /// An endpoint for everybody.
    pub const fn public() -> Self {
        Self::open_to(Access::Public)
    }
}

impl<C> Endpoint<C> {
    const fn open_to(access: Access) -> Self {
        let checks =
            Checks { access, takes_json: false, errors: ErrorStyle::Problem, deadline: DEADLINE, audited: None };
        Self { checks, handler_gets: PhantomData }
    }

    /// What it declares, whatever its handler gets.
    pub const fn checks(self) -> Checks {
        self.checks
    }

    /// The same, but a token that comes all the same must be valid and have this scope. What it covers is for the handler
    /// to check: a public path names no managing entity.
    pub const fn with_optional_token(self, scope: Scope) -> Self {
        Self { checks: Checks { access: Access::OptionalToken(scope), ..self.checks }, ..self }
    }

    /// Whether tokens are read here.
    pub const fn reads_tokens(self) -> bool {
        matches!(self.checks.access, Access::Scope(_) | Access::AnyScope | Access::OptionalToken(_))
    }

    /// The same with a body in JSON.
    pub const fn taking_json(self) -> Self {
        Self { checks: Checks { takes_json: true, ..self.checks }, ..self }
    }

    /// The same with errors as an OAuth2 client expects them.
    pub const fn with_oauth_errors(self) -> Self {
        Self { checks: Checks { errors: ErrorStyle::OAuth, ..self.checks }, ..self }
    }

    /// The same with `{}` as the body of a 500.
    pub const fn with_empty_internal_errors(self) -> Self {
        Self { checks: Checks { errors: ErrorStyle::EmptyInternalError, ..self.checks }, ..self }
    }

    /// The same with more time, for an endpoint that waits for a stranger. The function's own limit must be longer.
    pub const fn with_deadline(self, deadline: Duration) -> Self {
        Self { checks: Checks { deadline, ..self.checks }, ..self }
    }

    /// The same with a line in the audit trail for every call, however it ends.
    pub const fn audited(self, action: Action) -> Self {
        Self { checks: Checks { audited: Some(action), ..self.checks }, ..self }
    }
}

/// A handler, as the gate calls it.
pub type Handler = dyn Fn(Call, Option<AuthorizedEntity>) -> BoxFuture<'static, Result<Reply, Problem>> + Send + Sync;

impl Gate {
    /// Takes a request through the checks to the handler and its answer, or any error, back onto the wire.
    pub async fn handle(&self, endpoint: Checks, handler: &Handler, request: Request) -> Response<Body> {
        let request_id = request_id(self, &request);
        let span = tracing::info_span!("request", requestId = %request_id);
        async {
            let (method, path) = (request.method().clone(), request.raw_http_path().to_owned());
            let notes = notes_of(&request, &request_id);
            let admitted =
                AssertUnwindSafe(admit(self, endpoint, handler, request, &request_id, &notes)).catch_unwind();
            let outcome = match timeout(endpoint.deadline, admitted).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(Problem::internal("the handler panicked; see the log above")),
                Err(late) => Err(Problem::unavailable(late)),
            };
            if let Some(action) = endpoint.audited {
                audit(self, action, &outcome, &notes);
            }
            let response = match outcome {
                Ok(reply) => respond(reply),
                Err(problem) => refuse(self, endpoint, problem, &request_id),
            };
            tracing::info!(%method, path, status = response.status().as_u16(), "answered");
            with_common_headers(response, &request_id)
        }
        .instrument(span)
        .await
    }
}

/// The contract's checks, in the contract's order.
async fn admit(
    gate: &Gate,
    endpoint: Checks,
    handler: &Handler,
    request: Request,
    request_id: &str,
    notes: &Notes,
) -> Result<Reply, Problem> {
    is_meant(&request)?; // 2
    let mut claims = None;
    let mut entity = None;
    match endpoint.access {
        Access::Scope(_) | Access::AnyScope => {
            let token = authenticate(gate, &request).await?; // 3
            notes.client(&token.client_id);
            if let Access::Scope(scope) = endpoint.access {
                entity = authorize(&token, scope, &request)?; // 4
            }
            version(&request)?; // 5
            if endpoint.takes_json {
                content_type(&request)?; // 6
            }
            claims = Some(token);
        }
        Access::OptionalToken(scope) if request.headers().contains_key(AUTHORIZATION) => {
            let token = authenticate(gate, &request).await?;
            authorize(&token, scope, &request)?;
            claims = Some(token);
        }
        Access::OptionalToken(_) | Access::Public => {}
    }
    let entity = claims.as_ref().zip(entity).map(|(claims, entity)| well_formed(claims, &entity)).transpose()?; // 7, as far as it is every endpoint's
    let (parts, body) = request.into_parts();
    let body = match body {
        Body::Empty => Vec::new(),
        Body::Text(text) => text.into_bytes(),
        Body::Binary(bytes) => bytes,
        other => other.to_vec(),
    };
    let request = Request::from_parts(parts, Body::Empty);
    let notes = notes.clone();
    handler(Call { request_id: request_id.to_owned(), claims, body, notes, request }, entity).await
}

/// The check of the verb, as far as a gateway leaves it to the endpoint. A gateway that looks for path and verb together takes
/// `DELETE …/webhook/list` for a request to `DELETE …/webhook/{webhookIdentifier}`, but that path is another route's.
fn is_meant(request: &Request) -> Result<(), Problem> {
    let allowed = routes::verbs_of(request.raw_http_path());
    if allowed.is_empty() || allowed.contains(&request.method().as_str()) {
        return Ok(());
    }
    Err(Problem::wrong_verb(request.method(), &allowed))
}

async fn authenticate(gate: &Gate, request: &Request) -> Result<Claims, Problem> {
    let mut values = request.headers().get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(refusal::no_token());
    };
    let token = value.to_str().ok().and_then(bearer_token);
    match token {
        Some(token) if values.next().is_none() => Ok(gate.tokens.verify(token).await?),
        Some(_) => Err(refusal::bad_token(TokenFault::Malformed)),
        None => Err(refusal::no_token()), // another scheme is no bearer token at all
    }
}

/// The token of `Bearer …`; the scheme's name is in any case (RFC 9110 §11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

fn authorize(token: &Claims, scope: Scope, request: &Request) -> Result<Option<String>, Problem> {
    if !token.scopes.contains(scope) {
        return Err(refusal::lacks_scope(scope));
    }
    let Some(entity) = request.path_parameters_ref().and_then(|parameters| parameters.first(ENTITY_PARAMETER)) else {
        return Ok(None);
    };
    if token.entities.cover(entity) { Ok(Some(entity.to_owned())) } else { Err(refusal::entity_not_covered()) }
}

fn well_formed(claims: &Claims, entity: &str) -> Result<AuthorizedEntity, Problem> {
    let entity =
        EntityId::parse(entity).map_err(|error| Problem::invalid_value(ENTITY_PARAMETER, error.to_string()))?;
    claims.authorize(entity).ok_or_else(refusal::entity_not_covered)
}

fn version(request: &Request) -> Result<(), Problem> {
    let mut versions = request.headers().get_all(SERVICE_VERSION_HEADER).iter();
    match (versions.next(), versions.next()) {
        (None, _) => Ok(()),
        (Some(version), None) if ACCEPTED_VERSIONS.iter().any(|accepted| version == accepted) => Ok(()),
        _ => Err(unsupported_version()),
    }
}

/// A version that does not exist.
fn unsupported_version() -> Problem {
    let detail = format!("The header Service-Version must be absent or one of {}.", ACCEPTED_VERSIONS.join(", "));
    Problem::new(ProblemKind::UnsupportedVersion, detail).with_property("supportedVersions", json!(ACCEPTED_VERSIONS))
}

fn content_type(request: &Request) -> Result<(), Problem> {
    match request.headers().get(CONTENT_TYPE) {
        None if request.body().is_empty() => Ok(()), // there is no body; check 7 says that one is missing
        None => Err(Problem::not_json()),
        Some(value) => {
            let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
            if media_type.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Problem::not_json()) }
        }
    }
}

/// Lambda's own id of the invocation, which is a UUID; a new one where it is not.
fn request_id(gate: &Gate, request: &Request) -> String {
    let id = request.lambda_context_ref().map(|context| context.request_id.as_str()).unwrap_or_default();
    if is_uuid(id) { id.to_owned() } else { random::uuid(&*gate.random) }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(position, byte)| match position {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn respond(reply: Reply) -> Response<Body> {
    let mut response = Response::new(if reply.body.is_empty() { Body::Empty } else { Body::Text(reply.body) });
    *response.status_mut() = reply.status;
    for (name, value) in reply.headers {
        response.headers_mut().append(name, value);
    }
    response
}

/// What the audit trail can know of a request before anything of it is checked.
fn notes_of(request: &Request, request_id: &str) -> Notes {
    let notes = Notes::of_request(request_id, call::source_address(request));
    let entity = request.path_parameters_ref().and_then(|parameters| parameters.first(ENTITY_PARAMETER));
    if let Some(Ok(entity)) = entity.map(EntityId::parse) {
        notes.entity(entity.as_str());
    }
    notes
}

fn audit(gate: &Gate, action: Action, outcome: &Result<Reply, Problem>, notes: &Notes) {
    let outcome = match outcome {
        Ok(_) => AuditOutcome::Done,
        Err(problem) => AuditOutcome::of_problem(problem.kind.slug(), problem.kind.status()),
    };
    let environment = &gate.environment;
    Entry { action, outcome, notes, environment, at: gate.clock.now() }.log();
}

fn refuse(gate: &Gate, endpoint: Checks, problem: Problem, request_id: &str) -> Response<Body> {
    let cause = problem.cause.as_ref().map(|cause| logging::chain(cause.as_ref()));
    let kind = problem.kind.slug();
    if problem.kind.status().is_server_error() {
        tracing::error!(kind, cause, "failed");
    } else {
        tracing::info!(kind, cause, "refused");
    }
    let mut body = match endpoint.errors {
        ErrorStyle::EmptyInternalError if problem.kind == ProblemKind::InternalError => serde_json::Map::new(),
        _ => problem.body(&gate.base_url, request_id),
    };
    if endpoint.errors == ErrorStyle::OAuth {
        body.insert("error".into(), oauth_error::error_code(problem.kind).into());
        body.insert("error_description".into(), oauth_error::error_description(&problem.detail).into());
    }
    let body_is_empty = body.is_empty();
    let mut response = Response::new(Body::Text(serde_json::Value::from(body).to_string()));
    *response.status_mut() = problem.kind.status();
    let content_type = match endpoint.errors {
        ErrorStyle::EmptyInternalError if body_is_empty => "application/json",
        ErrorStyle::Problem | ErrorStyle::EmptyInternalError => "application/problem+json",
        ErrorStyle::OAuth => "application/json",
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if endpoint.errors == ErrorStyle::OAuth {
        headers.insert(http::header::PRAGMA, HeaderValue::from_static("no-cache")); // RFC 6749 §5.1
    }
    for (name, value) in problem.headers {
        headers.append(name, value);
    }
    response
}

fn with_common_headers(mut response: Response<Body>, request_id: &str) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static(SERVICE_VERSION_HEADER), HeaderValue::from_static(SERVICE_VERSION));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Addresses of refused callbacks have codes in them, too.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_becomes_a_request_id() {
        assert!(is_uuid("0193f6d2-1c9e-7cc3-98c4-dc0c0c07398f"));
        for bad in [
            "",
            "x",
            "0193f6d2-1c9e-7cc3-98c4-dc0c0c07398",
            "0193f6d2_1c9e-7cc3-98c4-dc0c0c07398f",
            "zzzzzzzz-1c9e-7cc3-98c4-dc0c0c07398f",
        ] {
            assert!(!is_uuid(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_that_is_a_path_of_its_own_is_no_value_of_the_parameter() {
        let with = |method: &str, id: &str| {
            let path = format!("/api/managing-entity/hotel/webhook/{id}");
            let mut request = Request::new(Body::Empty).with_raw_http_path(&path);
            *request.method_mut() = method.parse().expect("a verb");
            is_meant(&request)
        };
        assert!(with("DELETE", "whk_1").is_ok() && with("GET", "list").is_ok() && with("DELETE", "").is_ok());
        for name in ["list", "lis%74"] {
            let refused = with("DELETE", name).expect_err("another path");
            assert_eq!(refused.kind, ProblemKind::MethodNotAllowed);
            assert_eq!(refused.headers[0].1, "GET");
        }
    }

    #[test]
    fn the_scheme_of_a_bearer_token_is_in_any_case() {
        assert_eq!(bearer_token("Bearer abc"), Some("abc"));
        assert_eq!(bearer_token("bEARER  abc"), Some("abc"));
        assert_eq!(bearer_token("Bearer"), Some(""));
        assert_eq!(bearer_token("Basic abc"), None);
        assert_eq!(bearer_token("Bearerabc"), None);
    }

    #[test]
    fn the_version_is_absent_or_one_that_exists() {
        let with = |values: &[&str]| {
            let mut request = Request::new(Body::Empty);
            for value in values {
                request.headers_mut().append(SERVICE_VERSION_HEADER, value.parse().expect("a value"));
            }
            version(&request).is_ok()
        };
        assert!(with(&[]) && with(&["2.0"]) && with(&["2.0.0"]));
        assert!(!with(&[""]) && !with(&["2"]) && !with(&["1.0"]) && !with(&["2.0", "2.0"]) && !with(&["2.0,2.0"]));
    }

    #[test]
    fn a_body_is_json_by_its_media_type_whatever_its_parameters() {
        let with = |value: Option<&str>, body: &str| {
            let mut request = Request::new(Body::from(body));
            if let Some(value) = value {
                request.headers_mut().insert(CONTENT_TYPE, value.parse().expect("a value"));
            }
            content_type(&request).is_ok()
        };
        assert!(with(Some("application/json"), "{}") && with(Some("Application/JSON; charset=utf-8"), "{}"));
        assert!(with(None, ""));
        assert!(!with(None, "{}") && !with(Some("text/plain"), "") && !with(Some("application/jsonp"), "{}"));
    }
}
