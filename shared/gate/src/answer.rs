//! Answers over HTTP: a reply, or a Problem in the words of its endpoint, with the headers that every answer carries.

use http::{
    HeaderName, HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, PRAGMA, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use lambda_http::Body;
use problem::{Problem, ProblemKind};
use serde_json::{Map, Value};

use crate::{Reply, SERVICE_VERSION, SERVICE_VERSION_HEADER, endpoint::ErrorStyle, error_page, oauth_error, page};

/// The answer of a handler.
pub(crate) fn of_reply(reply: Reply, request_id: &str) -> Response<Body> {
    let mut response = Response::new(reply.body);
    *response.status_mut() = reply.status;
    for (name, value) in reply.headers {
        response.headers_mut().append(name, value);
    }
    with_common_headers(response, request_id)
}

/// The answer for a Problem. The page of its kind stands below `base_url`.
pub fn of_problem(problem: Problem, style: ErrorStyle, base_url: &str, request_id: &str) -> Response<Body> {
    let empty = style == ErrorStyle::EmptyInternalError && problem.kind == ProblemKind::InternalError;
    let mut body = if empty { Map::new() } else { problem.body(base_url, request_id) };
    if style == ErrorStyle::OAuth {
        body.insert("error".into(), oauth_error::error_code(problem.kind).into());
        body.insert("error_description".into(), oauth_error::error_description(&problem.detail).into());
    }
    let plain_json = empty || style == ErrorStyle::OAuth;
    let content_type = if plain_json { "application/json" } else { "application/problem+json" };
    let mut response = error(problem, content_type, Value::from(body).to_string(), request_id);
    if style == ErrorStyle::OAuth {
        response.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache")); // RFC 6749 §5.1
    }
    response
}

/// The answer for a Problem as a page for a person.
pub(crate) fn of_problem_as_page(problem: Problem, base_url: &str, request_id: &str) -> Response<Body> {
    let html = error_page::html(&problem, base_url, request_id);
    let mut response = error(problem, page::MEDIA_TYPE, html, request_id);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
    response
}

fn error(problem: Problem, content_type: &'static str, body: String, request_id: &str) -> Response<Body> {
    let mut response = Response::new(Body::Text(body));
    *response.status_mut() = problem.kind.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in problem.headers {
        headers.append(name, value);
    }
    with_common_headers(response, request_id)
}

fn with_common_headers(mut response: Response<Body>, request_id: &str) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static(SERVICE_VERSION_HEADER), HeaderValue::from_static(SERVICE_VERSION));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The address of a refused callback has the provider's code in it.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}
