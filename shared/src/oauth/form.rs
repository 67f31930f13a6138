//! The token request as it comes: a form, and perhaps HTTP Basic.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
};

use crate::http::{Problem, ProblemKind};

/// The largest form, in bytes: some 20 times what a request for all scopes needs.
const MAX_FORM: usize = 16 * 1024;

/// A token request whose form is right; whether it is granted is another matter.
pub struct TokenRequest {
    /// What kind of grant is asked for.
    pub grant_type: String,
    /// Who says it is asking.
    pub client_id: String,
    /// What proves it. Never logged.
    pub client_secret: String,
    /// The scopes that are asked for; `None` asks for all.
    pub scope: Option<String>,
    /// Whether the credentials came by HTTP Basic.
    pub by_basic: bool,
}

fn malformed(detail: &str) -> Problem {
    Problem::new(ProblemKind::InvalidTokenRequest, detail)
}

/// The one answer for every client that could not be authenticated, whatever the reason.
pub fn unauthenticated(by_basic: bool) -> Problem {
    let detail = "The client could not be authenticated: check client_id and client_secret.";
    let mut problem = Problem::new(ProblemKind::InvalidClient, detail);
    if by_basic {
        problem.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="token""#)));
    }
    problem
}

impl TokenRequest {
    /// Reads a token request.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(malformed(
                "Send the parameters as a form, with Content-Type: application/x-www-form-urlencoded.",
            ));
        }
        let mut form = Form::read(body)?;
        let grant_type = form
            .take("grant_type")
            .ok_or_else(|| malformed("The parameter grant_type is missing; it must be client_credentials."))?;
        let (client_id, client_secret, scope) =
            (form.take("client_id"), form.take("client_secret"), form.take("scope"));
        let (client_id, client_secret, by_basic) = match basic_credentials(headers)? {
            Some(_) if client_secret.is_some() => {
                return Err(malformed("The client's credentials came twice: use either HTTP Basic or the form."));
            }
            Some((id, _)) if client_id.as_ref().is_some_and(|in_form| *in_form != id) => {
                return Err(malformed("The client_id in the form is not the one in HTTP Basic."));
            }
            Some((id, secret)) => (id, secret, true),
            None => match (client_id, client_secret) {
                (Some(id), Some(secret)) => (id, secret, false),
                _ => return Err(unauthenticated(false)),
            },
        };
        Ok(Self { grant_type, client_id, client_secret, scope, by_basic })
    }
}

/// The parameters of a form. One without a value counts as absent, one that comes twice is an error, one that nobody
/// knows is ignored (RFC 6749 §3.2).
struct Form(Vec<(String, String)>);

impl Form {
    fn read(body: &[u8]) -> Result<Self, Problem> {
        if body.len() > MAX_FORM {
            return Err(malformed("The form is larger than any token request."));
        }
        let body = std::str::from_utf8(body).map_err(|_| malformed("The form is not text in UTF-8."))?;
        let (mut parameters, mut names) = (Vec::new(), HashSet::new());
        for (name, value) in form_urlencoded::parse(body.as_bytes()) {
            if !names.insert(name.clone()) {
                return Err(malformed("A parameter of the form comes twice."));
            }
            parameters.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(parameters))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(position).1).filter(|value| !value.is_empty())
    }
}

/// The credentials of HTTP Basic, each form-decoded as RFC 6749 §2.3.1 wants it. Another scheme or a malformed value
/// is a client that could not be authenticated, and not one that did not try.
fn basic_credentials(headers: &HeaderMap) -> Result<Option<(String, String)>, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let decoded = value.to_str().ok().filter(|_| values.next().is_none()).and_then(|value| {
        let (scheme, encoded) = value.split_once(' ')?;
        let bytes = scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(encoded.trim()).ok())??;
        let text = String::from_utf8(bytes).ok()?;
        let (id, secret) = text.split_once(':')?;
        Some((form_decoded(id)?, form_decoded(secret)?))
    });
    decoded.map(Some).ok_or_else(|| unauthenticated(true))
}

fn form_decoded(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(basic: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded; charset=UTF-8"));
        if let Some(pair) = basic {
            let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
            headers.insert(AUTHORIZATION, value.parse().expect("a value"));
        }
        headers
    }

    fn kind(basic: Option<&str>, body: &str) -> ProblemKind {
        TokenRequest::read(&headers(basic), body.as_bytes()).err().expect("refused").kind
    }

    #[test]
    fn credentials_come_by_form_or_by_basic() {
        let form =
            "grant_type=client_credentials&client_id=a%2Bb&client_secret=s%26&scope=booking.read+mcp.read&other=1";
        let request = TokenRequest::read(&headers(None), form.as_bytes()).expect("a request");
        assert_eq!((request.client_id.as_str(), request.client_secret.as_str()), ("a+b", "s&"));
        assert_eq!(request.scope.as_deref(), Some("booking.read mcp.read"));
        assert!(!request.by_basic);
        let request = TokenRequest::read(&headers(Some("a%2Bb:s%3A+1:2")), b"grant_type=x&client_id=a%2Bb&scope=")
            .expect("a request");
        assert_eq!((request.client_id.as_str(), request.client_secret.as_str()), ("a+b", "s: 1:2"));
        assert!(request.by_basic && request.scope.is_none());
    }

    #[test]
    fn a_wrong_form_is_an_invalid_request() {
        for (basic, body) in [
            (None, ""),
            (None, "client_id=a&client_secret=b"),
            (None, "grant_type=&client_id=a&client_secret=b"),
            (None, "grant_type=x&grant_type=x&client_id=a&client_secret=b"),
            (None, "grant_type=x&client_id=a&client_secret=b&scope=c&scope=c"),
            (Some("a:b"), "grant_type=x&client_secret=b"),
            (Some("a:b"), "grant_type=x&client_id=c"),
        ] {
            assert_eq!(kind(basic, body), ProblemKind::InvalidTokenRequest, "{body}");
        }
        let mut json = headers(None);
        json.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let problem = TokenRequest::read(&json, b"{}").err().expect("refused");
        assert_eq!(problem.kind, ProblemKind::InvalidTokenRequest);
    }

    #[test]
    fn a_form_beyond_all_bounds_is_refused_before_it_is_parsed() {
        let many = (0..100_000).map(|number| format!("p{number}=")).collect::<Vec<_>>().join("&");
        assert_eq!(kind(None, &many), ProblemKind::InvalidTokenRequest);
    }

    #[test]
    fn missing_or_malformed_credentials_are_an_invalid_client() {
        for (basic, body) in [
            (None, "grant_type=x"),
            (None, "grant_type=x&client_id=a"),
            (None, "grant_type=x&client_secret=a"),
            (Some("no colon"), "grant_type=x"),
            (Some("%ff:%ff"), "grant_type=x"),
        ] {
            assert_eq!(kind(basic, body), ProblemKind::InvalidClient, "{body}");
        }
        let mut bearer = headers(None);
        bearer.insert(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        let problem = TokenRequest::read(&bearer, b"grant_type=x&client_id=a&client_secret=b").err().expect("refused");
        assert_eq!(problem.kind, ProblemKind::InvalidClient);
        assert!(problem.headers.iter().any(|(name, _)| name == WWW_AUTHENTICATE));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..100), basic in "\\PC{0,30}") {
            let _ = TokenRequest::read(&headers(Some(&basic)), &body);
        }
    }
}
