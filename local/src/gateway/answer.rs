//! A function's response (payload format 2.0), converted to an HTTP response.

use std::collections::BTreeMap;

use axum::{body::Body, response::Response};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderName, HeaderValue, StatusCode, header::SET_COOKIE};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    multi_value_headers: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    cookies: Vec<String>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// The kind of Problem in a response, for the terminal.
#[derive(Clone)]
pub struct ProblemShown(pub String);

impl ProblemShown {
    /// The last part of the body's `type` member, if it looks like one of this service's Problem kinds.
    fn of_body(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Typed {
            r#type: String,
        }
        let typed: Typed = serde_json::from_slice(body).ok()?;
        let kind = typed.r#type.rsplit('/').next()?;
        kind.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'-').then(|| Self(kind.to_owned()))
    }
}

/// Why a function's result is not a valid response.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("the function's answer is not a response in payload format 2.0")]
    Format(#[source] serde_json::Error),
    #[error("the function's body is not valid Base64")]
    Encoding(#[source] base64::DecodeError),
    #[error("the function's answer has an invalid status or header")]
    Http(#[source] http::Error),
}

/// The HTTP response that the result describes.
pub fn to_response(answer: &[u8]) -> Result<Response, AnswerError> {
    let answer: Answer = serde_json::from_slice(answer).map_err(AnswerError::Format)?;
    let body = match answer.body {
        Some(body) if answer.is_base64_encoded => BASE64_STANDARD.decode(body).map_err(AnswerError::Encoding)?,
        body => body.unwrap_or_default().into_bytes(),
    };
    let status = StatusCode::from_u16(answer.status_code).map_err(http)?;
    let is_error = status.is_client_error() || status.is_server_error();
    let problem = is_error.then(|| ProblemShown::of_body(&body)).flatten();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if let Some(problem) = problem {
        response.extensions_mut().insert(problem);
    }
    let single = answer.headers.iter().filter(|(name, _)| !answer.multi_value_headers.contains_key(*name));
    let several =
        answer.multi_value_headers.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    for (name, value) in single.chain(several) {
        let name = HeaderName::try_from(name).map_err(http)?;
        response.headers_mut().append(name, HeaderValue::try_from(value).map_err(http)?);
    }
    for cookie in answer.cookies {
        response.headers_mut().append(SET_COOKIE, HeaderValue::try_from(cookie).map_err(http)?);
    }
    Ok(response)
}

fn http(error: impl Into<http::Error>) -> AnswerError {
    AnswerError::Http(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn status_headers_cookies_and_body_are_taken_over() {
        let answer =
            br#"{"statusCode": 201, "headers": {"location": "/x", "a": "0"}, "multiValueHeaders": {"a": ["1", "2"]},
            "cookies": ["c=1", "d=2"], "body": "w7w=", "isBase64Encoded": true}"#;
        let response = to_response(answer).expect("a response");
        assert_eq!(response.status(), StatusCode::CREATED);
        let all = |name: &str| response.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all("location"), ["/x"]);
        assert_eq!(all("a"), ["1", "2"]);
        assert_eq!(all("set-cookie"), ["c=1", "d=2"]);
        let body = axum::body::to_bytes(response.into_body(), 10).await.expect("a body");
        assert_eq!(body, "ü".as_bytes());
    }

    #[test]
    fn an_error_names_the_kind_of_its_problem_and_nothing_else_does() {
        let kind = |status: u16, body: &str| {
            let answer = serde_json::json!({ "statusCode": status, "body": body }).to_string();
            to_response(answer.as_bytes())
                .expect("a response")
                .extensions()
                .get()
                .map(|ProblemShown(kind)| kind.clone())
        };
        let problem = r#"{"type": "http://127.0.0.1:9000/problems/webhook-not-found", "detail": "hush"}"#;
        assert_eq!(kind(404, problem), Some("webhook-not-found".to_owned()));
        assert_eq!(kind(200, problem), None);
        for other in ["", "{}", "text", r#"{"type": "hush/a secret"}"#, r#"{"type": 1}"#] {
            assert_eq!(kind(500, other), None, "{other}");
        }
    }

    #[test]
    fn an_answer_that_is_no_response_is_an_error() {
        for answer in [
            "\"text\"",
            "{}",
            r#"{"statusCode": 99}"#,
            r#"{"statusCode": 200, "headers": {"a b": ""}}"#,
            r#"{"statusCode": 200, "body": "-", "isBase64Encoded": true}"#,
        ] {
            assert!(to_response(answer.as_bytes()).is_err(), "{answer}");
        }
    }
}
