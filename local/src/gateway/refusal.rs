//! What the gateway answers when no function does: a Problem, as everywhere.

use std::{error::Error, time::Duration};

use axum::{body::Body, response::Response};
use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE},
};
use serde_json::Value;
use shared::{
    http::{Problem, SERVICE_VERSION, SERVICE_VERSION_HEADER},
    logging,
};

use super::MAX_BODY;
use crate::invoke::InvokeError;

/// A Problem of the gateway's own.
#[derive(Debug)]
pub struct Refusal(Box<Problem>);

impl Refusal {
    fn new(problem: Problem) -> Self {
        Self(Box::new(problem))
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

    /// A function that fails is our fault (500), one that cannot be reached passes (503).
    pub fn of_invocation(error: InvokeError) -> Self {
        Self::new(match error {
            InvokeError::Emulator(_) | InvokeError::Answer(_) => Problem::unavailable(error),
            InvokeError::Unknown(_) | InvokeError::Failed(_) | InvokeError::Died | InvokeError::TimedOut(_) => {
                Problem::internal(error)
            }
        })
    }

    pub fn of_answer(error: impl Error + Send + Sync + 'static) -> Self {
        Self::new(Problem::internal(error))
    }

    /// What the log should know: the client learns nothing of it.
    pub fn cause(&self) -> Option<String> {
        self.0.cause.as_deref().map(|cause| logging::chain(cause))
    }

    pub fn into_response(self, base_url: &str, request_id: &str) -> Response {
        let body = Value::from(self.0.body(base_url, request_id)).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.0.kind.status();
        let headers = response.headers_mut();
        headers.extend(self.0.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(HeaderName::from_static(SERVICE_VERSION_HEADER), HeaderValue::from_static(SERVICE_VERSION));
        if let Ok(request_id) = HeaderValue::from_str(request_id) {
            headers.insert(HeaderName::from_static("x-request-id"), request_id);
        }
        response
    }
}

/// A body that could not be read: too large, or the client broke off and hears nothing of this.
pub fn of_body(error: axum::Error) -> Refusal {
    let too_large = error.source().is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>());
    let mut problem = if too_large {
        Problem::too_large("The request", MAX_BODY)
    } else {
        Problem::invalid_value("body", "must come whole, and broke off before its end").caused_by(error)
    };
    // The rest of the body is not read, so the connection ends with this answer; a client that is not told so would send
    // its next request on it, and get no answer.
    problem.headers.push((CONNECTION, HeaderValue::from_static("close")));
    Refusal::new(problem)
}
