//! Problems: the one form of an error on the wire (RFC 9457), and the one place where errors of the inside become one.
//!
//! A Problem has an outside (kind, detail, properties, headers) and an inside (the cause), which the gate logs and
//! never sends.

use std::error::Error;

use http::{
    HeaderName, HeaderValue, Method,
    header::{ALLOW, RETRY_AFTER},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ProblemKind;

/// How long a client is asked to wait when a dependency is out of reach, in seconds.
const RETRY_AFTER_SECONDS: u16 = 5;

/// An error, as the client sees it and as the log has it.
#[derive(Debug)]
pub struct Problem {
    /// What kind of problem it is; decides type, title and status.
    pub kind: ProblemKind,
    /// This occurrence, in a sentence that says what to do.
    pub detail: String,
    /// What programs may read of it.
    pub properties: Map<String, Value>,
    /// Headers that belong to the answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The same for a person, where the texts of its kind do not say enough.
    pub explanation: Option<Box<Explanation>>,
    /// For the log only.
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}

/// The words of a page on an error, all of them plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happened, in a few words.
    pub title: String,
    /// What happened, to whom, and what to do about it: a text for each paragraph.
    pub paragraphs: Vec<String>,
    /// A link that leads on.
    pub link: Option<Link>,
}

/// A link on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub address: String,
    /// Its words.
    pub text: String,
}

/// One value that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where: a member (`eventUrl`), an element (`eventList[2]`), a header's name, or `body` for the whole.
    pub field: String,
    /// What it must be, as the end of a sentence that begins with the field.
    pub message: String,
}

impl Problem {
    /// A problem of this kind.
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
        // Only texts of our own get here: scopes, verbs, numbers. One that is no header value is left out.
        self.headers.extend(HeaderValue::from_str(value.as_ref()).ok().map(|value| (name, value)));
        self
    }

    /// Adds the time after which to try again, in seconds.
    pub fn with_retry_after(self, seconds: u64) -> Self {
        self.with_header(RETRY_AFTER, seconds.to_string())
    }

    /// Adds a property.
    pub fn with_property(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the words of its page.
    pub fn explained(mut self, explanation: Explanation) -> Self {
        self.explanation = Some(Box::new(explanation));
        self
    }

    /// Adds the cause, for the log alone.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The path is no route's.
    pub fn no_route(path: &str) -> Self {
        Self::new(
            ProblemKind::NotFound,
            format!("No route has the path `{path}`; the routes are listed at /openapi.json."),
        )
    }

    /// The path is a route's, but not with this verb. `list` is the path that shows what was to be read, if there is one.
    pub fn wrong_verb(method: &Method, allowed: &[&str], list: Option<&str>) -> Self {
        let allowed = allowed.join(", ");
        let list = list.map(|path| format!(" Read `{path}` to see what there is.")).unwrap_or_default();
        let detail = format!("This address does not take {method}; it takes {allowed}.{list}");
        Self::new(ProblemKind::MethodNotAllowed, detail).with_header(ALLOW, allowed)
    }

    /// A body that is not declared as JSON.
    pub fn not_json() -> Self {
        Self::new(ProblemKind::UnsupportedMediaType, "Send the body with the header `Content-Type: application/json`.")
    }

    /// A body that is encoded.
    pub fn encoded_body() -> Self {
        let detail =
            "Send the body without `Content-Encoding`: this service takes no compressed or otherwise encoded body.";
        Self::new(ProblemKind::UnsupportedMediaType, detail)
    }

    /// Values that are not as they should be: all of them.
    pub fn invalid(violations: Vec<Violation>) -> Self {
        let detail = match violations.as_slice() {
            [one] => format!("`{}` {}.", one.field, one.message),
            several => format!("{} values are invalid; `properties.violations` lists them all.", several.len()),
        };
        Self::new(ProblemKind::InvalidRequest, detail).with_property("violations", json!(violations))
    }

    /// One value that is not as it should be.
    pub fn invalid_value(field: &str, message: impl Into<String>) -> Self {
        Self::invalid(vec![Violation { field: field.to_owned(), message: message.into() }])
    }

    /// The values that are not as they should be, each with what it must be; none for another kind of problem.
    pub fn violations(&self) -> impl Iterator<Item = (&str, &str)> {
        let violations = self.properties.get("violations").and_then(Value::as_array).into_iter().flatten();
        violations.filter_map(|violation| violation["field"].as_str().zip(violation["message"].as_str()))
    }

    /// The names of the values that are not as they should be; none for another kind of problem.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.violations().map(|(field, _)| field)
    }

    /// The body is larger than the operation takes.
    pub fn too_large(what: &str, limit: usize) -> Self {
        Self::new(ProblemKind::PayloadTooLarge, format!("{what} is larger than the {limit} bytes that are allowed."))
            .with_property("limitBytes", limit)
    }

    /// The request line and the headers are larger than the gateway takes.
    pub fn headers_too_large(limit: usize) -> Self {
        let detail = format!("The request line and the headers are larger than the {limit} bytes that are allowed.");
        Self::new(ProblemKind::HeadersTooLarge, detail).with_property("limitBytes", limit)
    }

    /// The body does not come.
    pub fn request_timeout() -> Self {
        Self::new(ProblemKind::RequestTimeout, "The body of the request did not come in time; send the request again.")
    }

    /// Something that the answer needs is out of reach.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail = format!("The service cannot answer at the moment; try again in {RETRY_AFTER_SECONDS} seconds.");
        Self::new(ProblemKind::ServiceUnavailable, detail)
            .with_header(RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())
            .caused_by(cause)
    }

    /// An unexpected error.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail =
            "An unexpected error occurred; try again later, and report the `instance` to support if it keeps failing.";
        Self::new(ProblemKind::InternalError, detail).caused_by(cause)
    }

    /// The body of the answer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_all_members_and_shows_nothing_of_its_cause() {
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
    fn several_violations_are_all_listed() {
        let violation = |field: &str| Violation { field: field.into(), message: "must be there".into() };
        let problem = Problem::invalid(vec![violation("name"), violation("eventUrl")]);
        assert_eq!(problem.properties["violations"][1]["field"], "eventUrl");
        assert_eq!(problem.fields().collect::<Vec<_>>(), ["name", "eventUrl"]);
        assert!(problem.detail.starts_with("2 values"));
        assert_eq!(Problem::invalid(vec![violation("name")]).detail, "`name` must be there.");
    }
}
