//! The gateway's own answers, in place of a function's: Problems, as everywhere.

use std::{error::Error, time::Duration};

use axum::{body::Body, response::Response};
use base::logging;
use gate::{SERVICE_VERSION, SERVICE_VERSION_HEADER};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use problem::Problem;
use serde_json::Value;

use crate::invoke::InvokeError;

/// The functions whose internal errors have an empty body in place of a Problem.
const SILENT: [&str; 2] = ["geo-ip-update", "provider-callback"];

/// A Problem of the gateway's own.
#[derive(Debug)]
pub struct Refusal {
    problem: Box<Problem>,
    silent: bool,
}

impl Refusal {
    fn new(problem: Problem) -> Self {
        Self { problem: Box::new(problem), silent: false }
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(Problem::too_large("The request", limit))
    }

    pub fn bad_host() -> Self {
        Self::new(Problem::invalid_value("Host", "must be the name or address of the service, with its port"))
    }

    pub fn timed_out(limit: Duration) -> Self {
        Self::new(Problem::unavailable(format!("no answer within {limit:?}")))
    }

    /// A failed invocation is an internal error, whatever its cause.
    pub fn of_invocation(error: InvokeError) -> Self {
        Self::new(Problem::internal(error))
    }

    /// The same in place of an answer of this function.
    pub fn in_place_of(self, function: &str) -> Self {
        Self { silent: SILENT.contains(&function), ..self }
    }

    pub fn of_answer(error: impl Error + Send + Sync + 'static) -> Self {
        Self::new(Problem::internal(error))
    }

    /// The cause, for the log alone.
    pub fn cause(&self) -> Option<String> {
        self.problem.cause.as_deref().map(|cause| logging::chain(cause))
    }

    pub fn into_response(self, base_url: &str, request_id: &str) -> Response {
        let status = self.problem.kind.status();
        let (body, content_type) = if self.silent && status == StatusCode::INTERNAL_SERVER_ERROR {
            ("{}".to_owned(), "application/json")
        } else {
            (Value::from(self.problem.body(base_url, request_id)).to_string(), "application/problem+json")
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.extend(self.problem.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(HeaderName::from_static(SERVICE_VERSION_HEADER), HeaderValue::from_static(SERVICE_VERSION));
        if let Ok(request_id) = HeaderValue::from_str(request_id) {
            headers.insert(HeaderName::from_static("x-request-id"), request_id);
        }
        response
    }
}

/// A body that is too large.
pub fn of_large_body(limit: usize) -> Refusal {
    ending_the_connection(Problem::too_large("The request", limit))
}

/// A body that does not come in time.
pub fn of_late_body() -> Refusal {
    ending_the_connection(Problem::request_timeout())
}

/// A head that is too large; the body is not read.
pub fn of_large_head(limit: usize) -> Refusal {
    ending_the_connection(Problem::headers_too_large(limit))
}

/// A body that ended too soon. Mostly the client is gone, and does not get this.
pub fn broken_off(error: axum::Error) -> Refusal {
    ending_the_connection(
        Problem::invalid_value("body", "must come whole, and broke off before its end").caused_by(error),
    )
}

/// The rest of the request is not read, so that the client must not send another one on this connection.
fn ending_the_connection(mut problem: Problem) -> Refusal {
    problem.headers.push((CONNECTION, HeaderValue::from_static("close")));
    Refusal::new(problem)
}
