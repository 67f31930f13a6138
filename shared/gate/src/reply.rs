//! A successful handler's reply.

use std::fmt;

use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION,
    },
};
use lambda_http::Body;
use serde::Serialize;

use problem::Problem;

/// A reply: status, headers and body.
pub struct Reply {
    /// 2xx, a redirect, or 304; or the status of an error in the format of another protocol.
    pub status: StatusCode,
    /// Headers in addition to the common ones of every response.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body: text in UTF-8, or bytes of any kind.
    pub body: Body,
    /// The Problem that the body reports in the format of another protocol. The gate logs and counts it.
    pub problem: Option<Box<Problem>>,
}

impl fmt::Debug for Reply {
    /// Shows only the status: the rest may contain secrets and tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Reply {
    /// 200 with a value as JSON.
    pub fn ok(value: &impl Serialize) -> Result<Self, Problem> {
        Self::json(StatusCode::OK, value)
    }

    /// A status with a value as JSON.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(value).map_err(Problem::internal)?;
        Ok(Self::text(status, "application/json", body))
    }

    /// 201 for a resource that was created, at this address. Caches must not store the reply, which shows the
    /// resource's secret.
    pub fn created(value: &impl Serialize, address: &str) -> Result<Self, Problem> {
        Self::json(StatusCode::CREATED, value)?.uncached().with_computed_header(LOCATION, address)
    }

    /// 202 with a value as JSON.
    pub fn accepted(value: &impl Serialize) -> Result<Self, Problem> {
        Self::json(StatusCode::ACCEPTED, value)
    }

    /// 200 with text of this media type.
    pub fn ok_text(content_type: &'static str, body: impl Into<String>) -> Self {
        Self::text(StatusCode::OK, content_type, body.into())
    }

    fn text(status: StatusCode, content_type: &'static str, body: String) -> Self {
        Self {
            status,
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))],
            body: Body::Text(body),
            problem: None,
        }
    }

    /// 200 with these bytes of this media type.
    pub fn ok_bytes(content_type: &'static str, body: Vec<u8>) -> Self {
        Self { body: Body::Binary(body), ..Self::text(StatusCode::OK, content_type, String::new()) }
    }

    /// 200 without a body.
    pub fn empty() -> Self {
        Self::bare(StatusCode::OK)
    }

    /// A status without a body.
    pub fn bare(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Body::Empty, problem: None }
    }

    /// Adds the Problem that the body reports.
    pub fn reporting(self, problem: Problem) -> Self {
        Self { problem: Some(Box::new(problem)), ..self }
    }

    /// 204.
    pub fn no_content() -> Self {
        Self::bare(StatusCode::NO_CONTENT)
    }

    /// 204 for OPTIONS of a document that scripts of every origin may read. A browser sends OPTIONS before a header of
    /// the script's choice, such as `MCP-Protocol-Version`.
    pub fn preflight() -> Self {
        const VERBS: &str = "GET, HEAD, OPTIONS";
        Self::no_content()
            .with_header(ALLOW, VERBS)
            .with_header(ACCESS_CONTROL_ALLOW_ORIGIN, "*")
            .with_header(ACCESS_CONTROL_ALLOW_METHODS, VERBS)
            .with_header(ACCESS_CONTROL_ALLOW_HEADERS, "*")
            .with_header(ACCESS_CONTROL_MAX_AGE, "86400")
    }

    /// 304: the client already has this representation.
    pub fn unchanged() -> Self {
        Self::bare(StatusCode::NOT_MODIFIED)
    }

    /// Allows every cache to store the reply for a number of seconds.
    pub fn cacheable(self, seconds: u32) -> Self {
        let value = HeaderValue::from_str(&format!("public, max-age={seconds}"));
        Self {
            headers: self.headers.into_iter().chain(value.ok().map(|value| (CACHE_CONTROL, value))).collect(),
            ..self
        }
    }

    /// Prevents caches from storing the reply.
    pub fn uncached(self) -> Self {
        self.with_header(CACHE_CONTROL, "no-store")
    }

    /// Marks a repeated reply to a request whose `Idempotency-Key` was used before.
    pub fn replayed(self, is_repeated: bool) -> Self {
        if is_repeated { self.with_header(HeaderName::from_static("idempotency-replayed"), "true") } else { self }
    }

    /// Adds a header with a constant value.
    pub fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Adds a header. Fails for an invalid value, which could inject a second header.
    pub fn with_computed_header(mut self, name: HeaderName, value: &str) -> Result<Self, Problem> {
        self.headers.push((name, HeaderValue::from_str(value).map_err(Problem::internal)?));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_reply_shows_no_secret() {
        let reply = Reply::ok(&"hunter2").and_then(|reply| reply.with_computed_header(LOCATION, "/?code=hunter2"));
        assert_eq!(format!("{:?}", reply.expect("a reply")), "Reply { status: 200, .. }");
    }
}
