//! The gate: the only code that admits a request by its access token, and that turns Problems into responses.
//!
//! `Gate::admit` runs the contract's checks in order, from the second to the seventh (numbered as in openapi.yaml,
//! *Order of checks*). Of the seventh, it checks only the path's managing entity, the query of operations that take
//! none, and the body of removals; the handler does the rest, and the later checks. Unknown paths and most wrong verbs
//! reach the `fallback` function, which uses the same gate.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use http::{
    HeaderValue, Response,
    header::{ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, VARY},
};
use lambda_http::{Body, Request, RequestExt};
use tokio::time::timeout;
use tracing::Instrument;

use crate::{
    Call, Reply, accept, answer, call, challenge, checks,
    endpoint::{Access, Declaration},
};
use auth::{AuthorizedEntity, Claims, EntityId, Verifier};
use base::audit::{Action, AuditOutcome, Entry, Notes};
use base::metric::{Metrics, Name, Number};
use base::trace::{LambdaTrace, Trace};
use base::{SharedClock, SharedRandom, logging, random};
use problem::{Problem, Violation};

/// An endpoint's gate.
pub struct Gate {
    /// The endpoint's declaration.
    pub endpoint: Declaration,
    /// The handler of admitted calls.
    pub handler: Box<Handler>,
    /// The verifier of tokens.
    pub tokens: Arc<Verifier>,
    /// The clock for the time of calls.
    pub clock: SharedClock,
    /// The source of identifiers for requests without one.
    pub random: SharedRandom,
    /// The API's address, which is the base of Problem types.
    pub base_url: Arc<str>,
    /// The deployment's name.
    pub environment: String,
}

/// A handler. Its second argument is the managing entity in the path, if there is one.
pub type Handler = dyn Fn(Call, Option<AuthorizedEntity>) -> BoxFuture<'static, Result<Reply, Problem>> + Send + Sync;

impl Gate {
    /// Checks a request, calls the handler, and returns the response for the reply or the error.
    pub async fn handle(&self, request: Request) -> Response<Body> {
        let request_id = self.request_id(&request);
        let lambda = request.lambda_context_ref().and_then(|context| context.xray_trace_id.as_deref());
        let lambda = lambda.and_then(LambdaTrace::parse);
        let trace = Trace::of_call(request.headers(), lambda, &*self.random);
        let span = logging::call_span(&request_id, &trace, lambda);
        async {
            let method = logging::shortened(request.method().as_str()).into_owned();
            let path = logging::shortened(request.raw_http_path()).into_owned();
            let notes = notes_of(&request, &request_id);
            let as_page = self.endpoint.opened_by_people && accept::prefers_page(request.headers());
            let admitted = AssertUnwindSafe(self.admit(request, &request_id, trace, &notes)).catch_unwind();
            let outcome = match timeout(self.endpoint.deadline, admitted).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(Problem::internal("the handler panicked; see the log above")),
                Err(late) => Err(Problem::unavailable(late)),
            };
            if let Some(action) = self.endpoint.audited.or_else(|| notes.noted_action()) {
                self.audit(action, &outcome, &notes);
            }
            let problem = outcome.as_ref().map_or_else(Some, |reply| reply.problem.as_deref());
            let has_failed = problem.is_some_and(|problem| problem.kind.status().is_server_error());
            problem.into_iter().for_each(log);
            let mut response = match outcome {
                Ok(reply) => answer::of_reply(reply, &request_id),
                Err(problem) => self.error(problem, as_page, &request_id),
            };
            if self.endpoint.any_origin {
                response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            }
            if has_failed {
                self.count_server_error();
            }
            tracing::info!(method, path, status = response.status().as_u16(), "answered");
            response
        }
        .instrument(span)
        .await
    }

    /// Runs the contract's checks in order, and then the handler. The numbers are those of openapi.yaml.
    async fn admit(&self, request: Request, request_id: &str, trace: Trace, notes: &Notes) -> Result<Reply, Problem> {
        let access = self.endpoint.access;
        checks::verb(&request)?; // 2
        if checks::is_preflight(&request) {
            return Ok(Reply::preflight());
        }
        if self.endpoint.own_origin {
            checks::origin(&request, &self.base_url)?;
        }
        let claims = self.authenticate(&request).await?; // 3
        let mut entity = None;
        if let Some(token) = &claims {
            notes.client(&token.client_id);
            if let Some(scope) = access.scope() {
                checks::scope(token, scope)?;
                entity = checks::coverage(token, &request)?; // 4
            }
            if self.endpoint.publishes {
                checks::right_to_publish(token)?;
            }
        }
        if access.needs_token() {
            checks::version(&request)?; // 5
        }
        if self.endpoint.takes_json {
            checks::media_type(&request)?; // 6
            checks::not_encoded(&request)?;
        }
        checks::readable_body(&request)?;
        // 7, for the managing entity, and for the query and the body if the operation takes none
        let entity = claims.as_ref().zip(entity).map(|(token, entity)| checks::entity(token, entity)).transpose()?;
        if entity.is_some() {
            checks::no_query(&request)?;
            checks::no_input_of_removal(&request)?;
        }
        let (parts, body) = request.into_parts();
        let call = Call {
            request_id: request_id.to_owned(),
            now: self.clock.now(),
            trace,
            claims,
            body: match body {
                Body::Empty => Vec::new(),
                Body::Text(text) => text.into_bytes(),
                Body::Binary(bytes) => bytes,
                other => other.to_vec(),
            },
            notes: notes.clone(),
            base_url: self.base_url.clone(),
            request: Request::from_parts(parts, Body::Empty),
        };
        (self.handler)(call, entity).await
    }

    /// The token's claims; `None` if the endpoint is public, or if its token is optional and absent.
    async fn authenticate(&self, request: &Request) -> Result<Option<Claims>, Problem> {
        match self.endpoint.access {
            Access::Public => Ok(None),
            Access::OptionalToken(_) if !request.headers().contains_key(AUTHORIZATION) => Ok(None),
            _ => {
                let token = checks::token(request)?;
                let resource = self.endpoint.resource;
                Ok(Some(match self.endpoint.gives_credentials {
                    true => self.tokens.verify_with_fresh_revocations(token, resource).await?,
                    false => self.tokens.verify(token, resource).await?,
                }))
            }
        }
    }

    /// Lambda's identifier for the invocation, a UUID. A request without one gets a new UUID.
    fn request_id(&self, request: &Request) -> String {
        match request.lambda_context_ref() {
            Some(context) if !context.request_id.is_empty() => context.request_id.clone(),
            _ => random::uuid(&*self.random),
        }
    }

    /// The response for a Problem, as a page or in the endpoint's format.
    fn error(&self, problem: Problem, as_page: bool, request_id: &str) -> Response<Body> {
        let problem = challenge::completed(problem, &self.endpoint, &self.base_url);
        let mut response = if as_page {
            answer::of_problem_as_page(problem, &self.base_url, request_id)
        } else {
            answer::of_problem(problem, self.endpoint.errors, &self.base_url, request_id)
        };
        if self.endpoint.opened_by_people {
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        }
        response
    }

    /// Counts a server error for the alarm that rolls back an update.
    fn count_server_error(&self) {
        let numbers = &[Number::count(Name::ServerErrors, 1)];
        Metrics { environment: &self.environment, by: &[], numbers, at: self.clock.now() }.publish();
    }

    fn audit(&self, action: Action, outcome: &Result<Reply, Problem>, notes: &Notes) {
        let problem = outcome.as_ref().map_or_else(Some, |reply| reply.problem.as_deref());
        let outcome = problem
            .map_or(AuditOutcome::Done, |problem| AuditOutcome::of_problem(problem.kind.slug(), problem.kind.status()));
        Entry { action, outcome, notes, environment: &self.environment, at: self.clock.now() }.log();
    }
}

/// The notes for the audit trail, with the facts that are known before the checks.
fn notes_of(request: &Request, request_id: &str) -> Notes {
    let notes = Notes::of_request(request_id, call::source_address(request));
    if let Some(Ok(entity)) = checks::entity_in_path(request).map(EntityId::parse) {
        notes.entity(entity.as_str());
    }
    notes
}

fn log(problem: &Problem) {
    let kind = problem.kind.slug();
    let cause = problem.cause.as_ref().map(|cause| logging::chain(cause.as_ref()));
    if problem.kind.status().is_server_error() {
        tracing::error!(kind, cause, "failed");
    } else {
        // The cause may contain an untrusted token or form.
        let cause = cause.as_deref().map(logging::shortened);
        tracing::info!(kind, fields = fields(problem), cause = cause.as_deref(), "refused");
    }
}

/// The names of the invalid values for the log. Clients choose the names of unknown members, so the log contains only a
/// few short ones: a secret that was sent as a name is longer.
fn fields(problem: &Problem) -> Option<String> {
    const MOST: usize = 10;
    const LONGEST: usize = 40;
    let violations = problem.violations();
    let names = violations.iter().take(MOST).map(Violation::name);
    let names: Vec<_> = names.map(|name| if name.len() > LONGEST { "…".to_owned() } else { name }).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use problem::{Pointer, Rule};

    use super::*;

    #[test]
    fn a_refusal_logs_the_names_of_its_fields_but_no_long_ones() {
        let violation = |pointer: Pointer| Violation::body(pointer, Rule::Unknown, "hush");
        let long = "s".repeat(43);
        let pointers = ["eventUrl".into(), Pointer::from("eventList").at(2), long.as_str().into()];
        let several = Problem::invalid(pointers.map(violation).into());
        assert_eq!(fields(&several).as_deref(), Some("eventUrl, eventList[2], …"));
        assert_eq!(fields(&Problem::not_json()), None);
        let many = Problem::invalid((0..99).map(|_| violation("a".into())).collect());
        assert_eq!(fields(&many).map(|names| names.len()), Some(28));
    }
}
