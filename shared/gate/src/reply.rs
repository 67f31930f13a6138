//! What a handler answers when all is well.

use std::fmt;

use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde::Serialize;

use problem::Problem;

/// A status, headers and a body.
pub struct Reply {
    /// 2xx, or a redirect.
    pub status: StatusCode,
    /// Headers beside those that every response carries.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, in UTF-8.
    pub body: String,
}

impl fmt::Debug for Reply {
    /// Says nothing of what is in it: secrets and tokens are.
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

    /// 200 for what was removed, with a sentence on what that means.
    pub fn removed(id: &impl Serialize, message: &'static str) -> Result<Self, Problem> {
        #[derive(Serialize)]
        struct Removed<'a, I> {
            id: &'a I,
            success: bool,
            message: &'static str,
        }
        Self::ok(&Removed { id, success: true, message })
    }

    /// 200 with a text of this media type.
    pub fn ok_text(content_type: &'static str, body: impl Into<String>) -> Self {
        Self::text(StatusCode::OK, content_type, body.into())
    }

    fn text(status: StatusCode, content_type: &'static str, body: String) -> Self {
        Self { status, headers: vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))], body }
    }

    /// 200 without a body.
    pub fn empty() -> Self {
        Self { status: StatusCode::OK, headers: Vec::new(), body: String::new() }
    }

    /// Lets everybody keep the answer for so many seconds.
    pub fn cacheable(self, seconds: u32) -> Self {
        let value = HeaderValue::from_str(&format!("public, max-age={seconds}"));
        Self {
            headers: self.headers.into_iter().chain(value.ok().map(|value| (CACHE_CONTROL, value))).collect(),
            ..self
        }
    }

    /// Adds a header that never varies.
    pub fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Adds a header. A value that cannot be one is an error, and never a way to smuggle a second header.
    pub fn with_computed_header(mut self, name: HeaderName, value: &str) -> Result<Self, Problem> {
        self.headers.push((name, HeaderValue::from_str(value).map_err(Problem::internal)?));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::LOCATION;

    #[test]
    fn nothing_of_what_is_answered_is_printed() {
        let reply = Reply::ok(&"hunter2").and_then(|reply| reply.with_computed_header(LOCATION, "/?code=hunter2"));
        assert_eq!(format!("{:?}", reply.expect("a reply")), "Reply { status: 200, .. }");
    }
}
