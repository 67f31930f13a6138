//! The forms that clients send to the token issuer.

use std::{collections::HashSet, fmt};

use problem::{Problem, ProblemKind};

/// The largest form, in bytes: about 20 times the size of a request for all scopes.
const MAX_FORM: usize = 16 * 1024;

/// The response to a malformed form.
pub fn malformed(detail: &str) -> Problem {
    Problem::new(ProblemKind::InvalidTokenRequest, detail)
}

/// The parts of a request to the token issuer that this crate reads.
#[derive(Clone)]
pub struct Posted<'a> {
    /// `Content-Type`; empty if it is missing or not text.
    pub content_type: &'a str,
    /// Whether the body has a content coding, such as `gzip`.
    pub encoded: bool,
    /// All values of `Authorization`, with an empty string in place of a value that is not text.
    pub authorization: Vec<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

impl Posted<'_> {
    /// Parses the form. An encoded body is refused with 400, which clients understand (RFC 6749 §5.2), unlike 415.
    pub fn form(&self) -> Result<Form, Problem> {
        if self.encoded {
            return Err(malformed("Send the form without Content-Encoding: compressed bodies are not accepted."));
        }
        Form::read(self.content_type, self.body)
    }
}

/// The parameter with the requested scopes (RFC 6749 §3.3).
const SCOPE: &str = "scope";

/// The only parameter that may be repeated (RFC 8707 §2).
const REPEATED: &str = "resource";

/// The parameters of a form. A parameter without a value counts as absent, a repeated one is an error unless repetition
/// is allowed, and an unknown one is ignored (RFC 6749 §3.2).
pub struct Form(Vec<(String, String)>);

impl fmt::Debug for Form {
    /// Prints no parameter, since some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").finish_non_exhaustive()
    }
}

impl Form {
    /// Parses a request's form.
    ///
    /// # Errors
    /// 400 if the request has another content type, or the form is too large, is not UTF-8 or repeats a parameter.
    pub fn read(content_type: &str, body: &[u8]) -> Result<Self, Problem> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let detail = "Send the parameters as a form, with Content-Type: application/x-www-form-urlencoded.";
            return Err(malformed(detail));
        }
        if body.len() > MAX_FORM {
            return Err(malformed("The form is larger than any valid request to this address."));
        }
        let body = std::str::from_utf8(body).map_err(|_| malformed("The form is not valid UTF-8."))?;
        let mut parameters = Vec::new();
        let mut names = HashSet::new();
        for (name, value) in form_urlencoded::parse(body.as_bytes()) {
            if !names.insert(name.clone()) && name != REPEATED {
                let is_scope = looks_like_scope(&name);
                return Err(if is_scope { not_scope(&name) } else { malformed("Send each parameter only once.") });
            }
            parameters.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(parameters))
    }

    /// Takes a parameter out of the form.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(position).1).filter(|value| !value.is_empty())
    }

    /// Takes every value of a repeatable parameter.
    pub fn take_all(&mut self, name: &str) -> Vec<String> {
        let taken = self.0.extract_if(.., |(known, _)| known == name);
        taken.map(|(_, value)| value).filter(|value| !value.is_empty()).collect()
    }

    /// Takes the requested scopes. A token requested without them gets all of its application's scopes, so a misspelled
    /// parameter name must not be ignored.
    ///
    /// # Errors
    /// 400 if another parameter has a name that looks like this one, such as `scopes` or `scope[0]`.
    pub fn take_scope(&mut self) -> Result<Option<String>, Problem> {
        match self.0.iter().find(|(name, _)| looks_like_scope(name)) {
            Some((name, _)) => Err(not_scope(name)),
            None => Ok(self.take(SCOPE)),
        }
    }

    /// Takes a required parameter.
    ///
    /// # Errors
    /// 400 with `missing` as its detail if the parameter is absent.
    pub fn required(&mut self, name: &str, missing: &str) -> Result<String, Problem> {
        self.take(name).ok_or_else(|| malformed(missing))
    }
}

/// Whether a parameter's name is not `scope` but was probably meant to be: in another case, in the plural, or as an
/// element of a list (`scope[]`, `scope[0]`, `scope.0`), as form libraries write it.
fn looks_like_scope(name: &str) -> bool {
    let word = name.split(['[', '.']).next().unwrap_or_default().trim();
    name != SCOPE && ["scope", "scopes"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn not_scope(name: &str) -> Problem {
    let shown: String = name.chars().take(40).collect();
    malformed(&format!(
        "The parameter {shown} is unknown; send all scopes in one parameter named scope, separated by spaces."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(body: &[u8]) -> Result<Form, Problem> {
        Form::read("application/x-www-form-urlencoded", body)
    }

    #[test]
    fn a_parameter_is_decoded_and_one_without_a_value_is_absent() {
        let mut form = form(b"scope=booking.read+mcp.read&client_id=a%2Bb&token=&other").expect("a form");
        assert_eq!(form.take("scope").as_deref(), Some("booking.read mcp.read"));
        assert_eq!(form.required("client_id", "x").ok().as_deref(), Some("a+b"));
        assert_eq!((form.take("token"), form.take("other"), form.take("client_id")), (None, None, None));
        assert_eq!(form.required("token", "is missing").expect_err("refused").detail, "is missing");
    }

    #[test]
    fn a_resource_alone_may_come_several_times() {
        let mut several = form(b"resource=a&scope=x&resource=&resource=b").expect("a form");
        assert_eq!(several.take_all("resource"), ["a", "b"]);
        assert_eq!((several.take_all("resource").len(), several.take("scope").as_deref()), (0, Some("x")));
        assert!(form(b"scope=a&scope=b").is_err());
    }

    #[test]
    fn a_name_that_looks_like_scope_is_refused_and_not_ignored() {
        for name in
            ["scopes", "Scope", "SCOPE", "scope[]", "scope[0]", "scope%5B0%5D", "scope.0", "Scopes[a]", "scope+"]
        {
            for body in [format!("{name}=mcp.read"), format!("scope=a&{name}="), format!("{name}=a&{name}=b")] {
                let refused = form(body.as_bytes()).and_then(|mut form| form.take_scope()).expect_err(&body);
                assert_eq!(refused.kind, ProblemKind::InvalidTokenRequest, "{body}");
                let shown = name.replace("%5B", "[").replace("%5D", "]").replace('+', " ");
                let expected =
                    format!("The parameter {shown} is unknown; send all scopes in one parameter named scope,");
                assert!(refused.detail.starts_with(&expected), "{}", refused.detail);
            }
        }
        let mut others = form(b"scope=a&scope_hint=b&telescope=c&scoped=d&audience=e").expect("a form");
        assert_eq!(others.take_scope().ok().flatten().as_deref(), Some("a"));
        assert_eq!(form(b"x=1").and_then(|mut form| form.take_scope()).ok(), Some(None));
        let long = form(format!("scope[{}]=", "x".repeat(9_000)).as_bytes()).and_then(|mut form| form.take_scope());
        assert!(long.expect_err("refused").detail.len() < 200);
    }

    #[test]
    fn the_content_type_of_a_form_may_have_parameters() {
        assert!(Form::read("Application/X-WWW-Form-Urlencoded; charset=UTF-8", b"").is_ok());
        for other in ["", "application/json", "multipart/form-data", "application/x-www-form-urlencodedx"] {
            assert_eq!(Form::read(other, b"a=b").expect_err(other).kind, ProblemKind::InvalidTokenRequest, "{other}");
        }
    }

    #[test]
    fn an_oversized_form_is_refused_before_it_is_parsed() {
        let many = (0..100_000).map(|number| format!("p{number}=")).collect::<Vec<_>>().join("&");
        assert_eq!(form(many.as_bytes()).expect_err("refused").kind, ProblemKind::InvalidTokenRequest);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = form(&body);
        }

        #[test]
        fn a_parameter_is_read_as_it_was_written_and_only_once(name in "\\PC{1,20}", value in "\\PC{1,20}", again in any::<bool>()) {
            let mut body = form_urlencoded::Serializer::new(String::new());
            body.append_pair(&name, &value);
            if again {
                body.append_pair(&name, "");
            }
            match form(body.finish().as_bytes()) {
                Ok(mut form) => prop_assert!(!again && form.take(&name) == Some(value)),
                Err(_) => prop_assert!(again),
            }
        }
    }
}
