//! HTTP responses: a reply, or a Problem in its endpoint's format, with the headers of every response.

use http::{
    HeaderName, HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, PRAGMA, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use lambda_http::Body;
use problem::{Problem, ProblemKind};
use serde_json::{Map, Value};

use crate::{Reply, SERVICE_VERSION, SERVICE_VERSION_HEADER, endpoint::ErrorStyle, error_page, page};

/// The response for a handler's reply.
pub(crate) fn of_reply(reply: Reply, request_id: &str) -> Response<Body> {
    let mut response = Response::new(reply.body);
    *response.status_mut() = reply.status;
    for (name, value) in reply.headers {
        response.headers_mut().append(name, value);
    }
    with_common_headers(response, request_id)
}

/// The response for a Problem. The page of its kind is below `base_url`.
pub fn of_problem(problem: Problem, style: ErrorStyle, base_url: &str, request_id: &str) -> Response<Body> {
    let empty = style == ErrorStyle::EmptyInternalError && problem.kind == ProblemKind::InternalError;
    let mut body = if empty { Map::new() } else { problem.body(base_url, request_id) };
    if style == ErrorStyle::OAuth {
        body.insert("error".into(), error_code(problem.kind).into());
        body.insert("error_description".into(), error_description(&problem.detail).into());
    }
    let plain_json = empty || style == ErrorStyle::OAuth;
    let content_type = if plain_json { "application/json" } else { "application/problem+json" };
    let mut response = error(problem, content_type, Value::from(body).to_string(), request_id);
    if style == ErrorStyle::OAuth {
        response.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache")); // RFC 6749 §5.1
    }
    response
}

/// The response for a Problem as a page for a person.
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
    // The address of a refused callback contains the provider's code.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}

/// A Problem kind's `error` code for OAuth 2 clients, from RFC 6749 §5.2 or RFC 8707 §2. Other kinds get the nearest
/// code of RFC 6749 §4.1.2.1, which clients also know.
const fn error_code(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::InvalidClient => "invalid_client",
        ProblemKind::InvalidScope => "invalid_scope",
        ProblemKind::InvalidTarget => "invalid_target",
        ProblemKind::UnsupportedResponseType => "unsupported_response_type",
        ProblemKind::UnsupportedGrantType => "unsupported_grant_type",
        ProblemKind::ForeignToken => "unauthorized_client",
        ProblemKind::ServiceUnavailable | ProblemKind::TooManyAttempts => "temporarily_unavailable",
        ProblemKind::InternalError => "server_error",
        _ => "invalid_request",
    }
}

/// A detail with only the characters that RFC 6749 §5.2 allows: printable ASCII without `"` and `\`.
fn error_description(detail: &str) -> String {
    detail
        .chars()
        .map(|letter| if matches!(letter, ' '..='~') && letter != '"' && letter != '\\' { letter } else { '\'' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_only_the_characters_that_the_rfc_allows() {
        assert_eq!(error_description("no \"x\" \\ or é\n!"), "no 'x' ' or ''!");
    }
}
