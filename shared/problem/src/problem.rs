//! Problems: the format of errors on the wire (RFC 9457).
//!
//! Everything but a Problem's cause is public. The gate logs the cause and never sends it.

use std::error::Error;

use http::{
    HeaderName, HeaderValue, Method,
    header::{ALLOW, RETRY_AFTER},
};
use serde_json::{Map, Value, json};

use crate::{ProblemKind, Violation};

/// The `Retry-After` of a 503, in seconds.
const RETRY_AFTER_SECONDS: u16 = 5;

/// An error for the client, with its cause for the log.
#[derive(Debug)]
pub struct Problem {
    /// The kind, which determines type, title and status.
    pub kind: ProblemKind,
    /// A sentence about this occurrence that says what to do.
    pub detail: String,
    /// Details for programs.
    pub properties: Map<String, Value>,
    /// Additional headers of the response.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Text for people, if the kind's text does not say enough.
    pub explanation: Option<Box<Explanation>>,
    /// The cause, for the log only.
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}

/// An error page's content, all of it plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happened, in a few words.
    pub title: String,
    /// The paragraphs: what happened, which entity it concerns, and what to do.
    pub paragraphs: Vec<String>,
    /// A link to the next step.
    pub link: Option<Link>,
}

/// A link on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The address.
    pub address: String,
    /// The link's text.
    pub text: String,
}

impl Problem {
    /// A Problem of this kind.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            properties: Map::new(),
            headers: Vec::new(),
            explanation: None,
            cause: None,
        }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        // Values are internal strings such as scopes, verbs and numbers. An invalid one is dropped.
        self.headers.extend(HeaderValue::from_str(value.as_ref()).ok().map(|value| (name, value)));
        self
    }

    /// Adds a `Retry-After`, in seconds.
    pub fn with_retry_after(self, seconds: u64) -> Self {
        self.with_header(RETRY_AFTER, seconds.to_string())
    }

    /// Adds a property.
    pub fn with_property(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Adds text for people.
    pub fn explained(mut self, explanation: Explanation) -> Self {
        self.explanation = Some(Box::new(explanation));
        self
    }

    /// Adds the cause, for the log only.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// 400: the cursor does not belong to this list.
    pub fn invalid_cursor() -> Self {
        let detail = "`cursor` must be a `nextCursor` from this list with the same filters. It may have expired; send \
            the request again without `cursor`.";
        Self::new(ProblemKind::InvalidCursor, detail)
    }

    /// 404: no route has this path.
    pub fn no_route(path: &str) -> Self {
        Self::new(
            ProblemKind::NotFound,
            format!("No route has the path `{path}`; the routes are listed at /openapi.json."),
        )
    }

    /// 405: the path has no route with this verb. `list` is the path that lists the resources, if there is one.
    pub fn wrong_verb(method: &Method, allowed: &[&str], list: Option<&str>) -> Self {
        let allowed = allowed.join(", ");
        let list = list.map(|path| format!(" `GET {path}` lists what exists.")).unwrap_or_default();
        let detail = format!("This address does not support {method}; it supports {allowed}.{list}");
        Self::new(ProblemKind::MethodNotAllowed, detail).with_header(ALLOW, allowed)
    }

    /// 415: the body is not declared as JSON.
    pub fn not_json() -> Self {
        Self::new(ProblemKind::UnsupportedMediaType, "Send the body with the header `Content-Type: application/json`.")
    }

    /// 415: the body has a content encoding.
    pub fn encoded_body() -> Self {
        let detail = "Send the body without `Content-Encoding`: this service does not accept compressed or \
                      otherwise encoded bodies.";
        Self::new(ProblemKind::UnsupportedMediaType, detail)
    }

    /// 400: invalid values. The detail names the first one, since many clients show only the detail.
    pub fn invalid(violations: Vec<Violation>) -> Self {
        let detail = match violations.as_slice() {
            [] => "The request has invalid values.".to_owned(),
            [one] => format!("`{}` {}.", one.name(), one.detail),
            [first, ..] => {
                let count = violations.len();
                format!(
                    "`{}` {}. In total, {count} values are invalid; `properties.violations` lists them.",
                    first.name(),
                    first.detail
                )
            }
        };
        Self::new(ProblemKind::InvalidRequest, detail).with_property("violations", json!(violations))
    }

    /// The violations; empty for other kinds of Problem.
    pub fn violations(&self) -> Vec<Violation> {
        let violations = self.properties.get("violations").cloned().unwrap_or_default();
        serde_json::from_value(violations).unwrap_or_default()
    }

    /// 413: the body is larger than the operation allows.
    pub fn too_large(part: &str, limit: usize) -> Self {
        Self::new(ProblemKind::PayloadTooLarge, format!("{part} is larger than the limit of {limit} bytes."))
            .with_property("limitBytes", limit)
    }

    /// 431: the request line and the headers are larger than the gateway allows.
    pub fn headers_too_large(limit: usize) -> Self {
        let detail = format!("The request line and the headers are larger than the limit of {limit} bytes.");
        Self::new(ProblemKind::HeadersTooLarge, detail).with_property("limitBytes", limit)
    }

    /// 408: the body did not arrive in time.
    pub fn request_timeout() -> Self {
        Self::new(ProblemKind::RequestTimeout, "The request's body did not arrive in time; send the request again.")
    }

    /// 503: a dependency is unavailable.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail = format!("The service is temporarily unavailable; try again in {RETRY_AFTER_SECONDS} seconds.");
        Self::new(ProblemKind::ServiceUnavailable, detail)
            .with_header(RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())
            .caused_by(cause)
    }

    /// 500: an unexpected error.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail =
            "An unexpected error occurred. Try again later; if it keeps failing, report the `instance` to support.";
        Self::new(ProblemKind::InternalError, detail).caused_by(cause)
    }

    /// The response body.
    pub fn body(&self, base_url: &str, request_id: &str) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("type".into(), format!("{base_url}/problems/{}", self.kind.slug()).into());
        body.insert("kind".into(), self.kind.slug().into());
        body.insert("title".into(), self.kind.title().into());
        body.insert("status".into(), self.kind.status().as_u16().into());
        body.insert("detail".into(), self.detail.clone().into());
        body.insert("instance".into(), format!("urn:uuid:{request_id}").into());
        body.insert("properties".into(), self.properties.clone().into());
        body
    }
}

impl From<Violation> for Problem {
    fn from(violation: Violation) -> Self {
        Self::invalid(vec![violation])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    #[test]
    fn every_problem_has_all_members_and_hides_its_cause() {
        let problem = Problem::internal("the password is hunter2");
        let body = Value::from(problem.body("https://api.example.com", "0193f6d2-1c9e-7cc3-98c4-dc0c0c07398f"));
        assert_eq!(body["type"], "https://api.example.com/problems/internal-error");
        assert_eq!(body["kind"], "internal-error");
        assert_eq!(body["status"], 500);
        assert_eq!(body["instance"], "urn:uuid:0193f6d2-1c9e-7cc3-98c4-dc0c0c07398f");
        assert_eq!(body["properties"], json!({}));
        assert!(body["title"].is_string() && body["detail"].is_string());
        assert!(!body.to_string().contains("hunter2"));
    }

    #[test]
    fn several_violations_are_all_listed_and_the_detail_names_the_first() {
        let violation = |name: &str| Violation::body(name, Rule::Required, "must be there");
        let problem = Problem::invalid(vec![violation("name"), violation("eventUrl")]);
        assert_eq!(problem.properties["violations"][1]["pointer"], "/eventUrl");
        assert_eq!(problem.violations(), [violation("name"), violation("eventUrl")]);
        assert_eq!(
            problem.detail,
            "`name` must be there. In total, 2 values are invalid; `properties.violations` lists them."
        );
        assert_eq!(Problem::from(violation("name")).detail, "`name` must be there.");
    }
}
