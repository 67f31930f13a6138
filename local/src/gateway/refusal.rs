//! The gateway's own answers, for requests that no function answers: Problems, as everywhere.

use std::{error::Error, time::Duration};

use axum::{body::Body, response::Response};
use base::logging;
use gate::{answer, endpoint::ErrorStyle, endpoints};
use http::{HeaderValue, header::CONNECTION};
use problem::Problem;

use super::body::MAX_BODY;
use crate::invoke::InvokeError;

/// A Problem of the gateway's own.
#[derive(Debug)]
pub struct Refusal {
    problem: Box<Problem>,
    errors: ErrorStyle,
}

impl Refusal {
    fn new(problem: Problem) -> Self {
        Self { problem: Box::new(problem), errors: ErrorStyle::Problem }
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

    /// A function that fails is our fault, however it fails.
    pub fn of_invocation(error: InvokeError) -> Self {
        Self::new(Problem::internal(error))
    }

    /// The same in place of an answer of this function, in the words of its endpoint.
    pub fn in_place_of(self, function: &str) -> Self {
        let errors = endpoints::of_function(function).map_or(self.errors, |endpoint| endpoint.errors);
        Self { errors, ..self }
    }

    pub fn of_answer(error: impl Error + Send + Sync + 'static) -> Self {
        Self::new(Problem::internal(error))
    }

    /// What the log should know: the client learns nothing of it.
    pub fn cause(&self) -> Option<String> {
        self.problem.cause.as_deref().map(|cause| logging::chain(cause))
    }

    pub fn into_response(self, base_url: &str, request_id: &str) -> Response {
        answer::of_problem(*self.problem, self.errors, base_url, request_id).map(Body::from)
    }
}

/// A body of which the rest is thrown away.
pub fn of_large_body() -> Refusal {
    ending_the_connection(Problem::too_large("The request", MAX_BODY))
}

/// A body that does not come in time.
pub fn of_late_body() -> Refusal {
    ending_the_connection(Problem::request_timeout())
}

/// A head that is too large; the body is not even looked at.
pub fn of_large_head(limit: usize) -> Refusal {
    ending_the_connection(Problem::headers_too_large(limit))
}

/// A body that ended too soon; mostly the client is gone, and hears nothing of this.
pub fn broken_off(error: axum::Error) -> Refusal {
    ending_the_connection(
        Problem::invalid_value("body", "must come whole, and broke off before its end").caused_by(error),
    )
}

/// What is left of a request on its connection is not read, so a client must not send another one on it.
fn ending_the_connection(mut problem: Problem) -> Refusal {
    problem.headers.push((CONNECTION, HeaderValue::from_static("close")));
    Refusal::new(problem)
}
