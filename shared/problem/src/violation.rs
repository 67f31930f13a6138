//! Violations: values in a request or in an event's data that break a rule.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum length of a pointer in a violation, in bytes: clients choose the names in their input. A longer one is
/// cut, and ends with `…`.
pub const MAX_POINTER: usize = 120;
/// The end of a string that was cut.
const MARK: &str = "…";

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The part of the input.
    #[serde(rename = "in")]
    pub part: InputPart,
    /// The value within the part: `/eventList/2`. For a parameter or a header, `/` and its name.
    pub pointer: Pointer,
    /// The rule, for programs.
    #[serde(rename = "code")]
    pub rule: Rule,
    /// The rule for people, as the end of a sentence that begins with the value's name.
    pub detail: String,
}

/// A part of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputPart {
    /// The request body; the arguments of a tool call.
    #[default]
    Body,
    /// The request's query.
    Query,
    /// The request path.
    Path,
    /// The request headers.
    Header,
    /// An event's data. A violation in it is a warning.
    Data,
}

/// The rule that a value breaks. The list may grow, so clients should treat an unknown code as [`Rule::Invalid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The value is missing or empty.
    Required,
    /// No member, parameter or argument has this name.
    Unknown,
    /// The value is repeated.
    Duplicate,
    /// The value has another type.
    InvalidType,
    /// The string has another form.
    InvalidFormat,
    /// The value is not one of the known values.
    UnknownValue,
    /// The number or time is too small or too large.
    OutOfRange,
    /// The value has more characters, bytes, elements or levels than are allowed.
    TooLong,
    /// The value is well-formed, but not allowed in this request.
    NotAllowed,
    /// The value contradicts another value in the request.
    Inconsistent,
    /// The value breaks another rule.
    #[serde(other)]
    Invalid,
}

/// A JSON Pointer (RFC 6901); empty for the whole part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pointer(String);

impl Violation {
    /// A violation by a value in this part.
    pub fn new(part: InputPart, pointer: impl Into<Pointer>, rule: Rule, detail: impl Into<String>) -> Self {
        Self { part, pointer: Pointer(cut(&pointer.into().0, MAX_POINTER)), rule, detail: detail.into() }
    }

    /// A violation by a member of the body.
    pub fn body(pointer: impl Into<Pointer>, rule: Rule, detail: impl Into<String>) -> Self {
        Self::new(InputPart::Body, pointer, rule, detail)
    }

    /// A violation by the whole body.
    pub fn whole_body(rule: Rule, detail: impl Into<String>) -> Self {
        Self::body(Pointer::default(), rule, detail)
    }

    /// A violation by a parameter of the query.
    pub fn query(name: &str, rule: Rule, detail: impl Into<String>) -> Self {
        Self::new(InputPart::Query, name, rule, detail)
    }

    /// A violation by a parameter of the path.
    pub fn path(name: &str, rule: Rule, detail: impl Into<String>) -> Self {
        Self::new(InputPart::Path, name, rule, detail)
    }

    /// A violation by a header.
    pub fn header(name: &str, rule: Rule, detail: impl Into<String>) -> Self {
        Self::new(InputPart::Header, name, rule, detail)
    }

    /// The value's display name: `eventList[2]`, or `body` for the whole body.
    pub fn name(&self) -> String {
        match (self.pointer.to_string(), self.part) {
            (name, _) if !name.is_empty() => name,
            (_, InputPart::Body) => "body".to_owned(),
            (_, InputPart::Query) => "query".to_owned(),
            (_, InputPart::Path) => "path".to_owned(),
            (_, InputPart::Header) => "headers".to_owned(),
            (_, InputPart::Data) => "data".to_owned(),
        }
    }
}

impl Pointer {
    /// The member with this name within the value.
    pub fn member(&self, name: &str) -> Self {
        Self(format!("{}/{}", self.0, name.replace('~', "~0").replace('/', "~1")))
    }

    /// The element at this index within the value.
    pub fn at(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// The pointer written as this string, which is already a JSON Pointer.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The value at `inner` within this one.
    pub fn within(&self, inner: &Self) -> Self {
        Self(format!("{}{}", self.0, inner.0))
    }

    /// The pointer as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names and indexes on the way to the value.
    pub fn steps(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
    }
}

/// A pointer to the member with this name.
impl From<&str> for Pointer {
    fn from(name: &str) -> Self {
        Self::default().member(name)
    }
}

/// The value's display name, such as `eventList[2]` or `headers.X-Key`.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().enumerate().try_for_each(|(position, step)| match step.parse::<usize>() {
            Ok(index) if position > 0 => write!(f, "[{index}]"),
            _ if position > 0 => write!(f, ".{step}"),
            _ => f.write_str(&step),
        })
    }
}

/// A string of at most `longest` bytes: the beginning of a longer one, with a mark.
pub fn cut(text: &str, longest: usize) -> String {
    match text.len() {
        length if length <= longest => text.to_owned(),
        _ => format!("{}{MARK}", &text[..text.floor_char_boundary(longest - MARK.len())]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_violation_is_where_it_is_with_a_pointer_a_code_and_a_sentence() {
        let element = Violation::body(Pointer::from("eventList").at(2), Rule::UnknownValue, "must be a type");
        let expected =
            json!({ "in": "body", "pointer": "/eventList/2", "code": "unknown-value", "detail": "must be a type" });
        assert_eq!(serde_json::to_value(&element).expect("JSON"), expected);
        assert_eq!(serde_json::from_value::<Violation>(expected).expect("a violation"), element);
        let later = json!({ "in": "query", "pointer": "/limit", "code": "of-a-later-release", "detail": "" });
        assert_eq!(serde_json::from_value::<Violation>(later).expect("a violation").rule, Rule::Invalid);
    }

    #[test]
    fn people_read_a_name_and_programs_a_pointer() {
        let of = |pointer: Pointer| Violation::body(pointer, Rule::Invalid, "").name();
        assert_eq!(of(Pointer::default()), "body");
        assert_eq!(of(Pointer::from("failed").at(0).member("reason")), "failed[0].reason");
        let odd = Pointer::from("headers").member("a/b~c");
        assert_eq!((odd.as_str(), of(odd.clone())), ("/headers/a~1b~0c", "headers.a/b~c".to_owned()));
        assert_eq!(of("7".into()), "7");
        assert_eq!(Violation::header("Host", Rule::Required, "").name(), "Host");
    }

    #[test]
    fn a_long_pointer_is_cut() {
        let long = Violation::body("ü".repeat(1_000).as_str(), Rule::Unknown, "");
        assert!(long.pointer.as_str().len() <= MAX_POINTER && long.pointer.as_str().ends_with(MARK));
    }
}
