//! The responses that the gateway sends instead of a function's, as Problems.

use std::{error::Error, time::Duration};

use axum::{body::Body, response::Response};
use base::logging;
use gate::{answer, endpoint::ErrorStyle, endpoints};
use http::{HeaderValue, header::CONNECTION};
use problem::{Problem, Rule, Violation};

use super::answer::ProblemShown;
use crate::invoke::InvokeError;

/// A Problem from the gateway itself.
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
        let detail = "must be the service's name or address, with its port";
        Self::new(Violation::header("Host", Rule::InvalidFormat, detail).into())
    }

    pub fn timed_out(limit: Duration) -> Self {
        Self::new(Problem::unavailable(format!("no answer within {} s", limit.as_secs())))
    }

    /// A failed invocation, which is an internal error regardless of its cause.
    pub fn of_invocation(error: InvokeError) -> Self {
        Self::new(Problem::internal(error))
    }

    /// The refusal, in the error format that this function's endpoint uses.
    pub fn in_place_of(self, function: &str) -> Self {
        let errors = endpoints::of_function(function).map_or(self.errors, |endpoint| endpoint.errors);
        Self { errors, ..self }
    }

    pub fn of_answer(error: impl Error + Send + Sync + 'static) -> Self {
        Self::new(Problem::internal(error))
    }

    /// The cause, which only the log shows.
    pub fn cause(&self) -> Option<String> {
        self.problem.cause.as_deref().map(|cause| logging::chain(cause))
    }

    pub fn into_response(self, base_url: &str, request_id: &str) -> Response {
        let shown = ProblemShown(self.problem.kind.slug().to_owned());
        let mut response = answer::of_problem(*self.problem, self.errors, base_url, request_id).map(Body::new);
        response.extensions_mut().insert(shown);
        response
    }
}

/// The refusal of a body that is too large.
pub fn of_large_body(limit: usize) -> Refusal {
    ending_the_connection(Problem::too_large("The request", limit))
}

/// The refusal of a body that does not arrive in time.
pub fn of_slow_body() -> Refusal {
    ending_the_connection(Problem::request_timeout())
}

/// The refusal of a head that is too large; the body is not read.
pub fn of_large_head(limit: usize) -> Refusal {
    ending_the_connection(Problem::headers_too_large(limit))
}

/// The refusal of a body that ended too early. The client has usually gone and does not receive this response.
pub fn broken_off(error: axum::Error) -> Refusal {
    let violation = Violation::whole_body(Rule::InvalidFormat, "is incomplete: the connection was closed too early");
    ending_the_connection(Problem::from(violation).caused_by(error))
}

/// A refusal that closes the connection, since the rest of the request will not be read.
fn ending_the_connection(mut problem: Problem) -> Refusal {
    problem.headers.push((CONNECTION, HeaderValue::from_static("close")));
    Refusal::new(problem)
}
