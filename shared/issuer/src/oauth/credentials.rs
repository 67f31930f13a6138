//! A client's credentials: its identifier, and a secret or an assertion (RFC 6749 §2.3, RFC 7523 §2.2).

use base64::{Engine, prelude::BASE64_STANDARD};
use http::header::WWW_AUTHENTICATE;

use super::{
    assertion::{self, AssertionFault, ClientAssertion},
    form::{Form, malformed},
};
use problem::{Problem, ProblemKind};
use storage::SecretText;

/// The credentials that a client presents. They are not verified.
#[derive(Debug)]
pub struct Credentials {
    /// The client identifier; empty if unreadable.
    pub client_id: String,
    /// The proof of the identifier.
    pub proof: Proof,
}

/// The proof of a client's identifier.
#[derive(Debug)]
pub enum Proof {
    /// One of its secrets.
    Secret(SecretText),
    /// A string signed with one of its keys.
    Assertion(ClientAssertion),
    /// An unreadable proof, which counts as an attempt.
    Unreadable(Unreadable),
}

/// Why a proof cannot be read. For the log.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub enum Unreadable {
    /// `Authorization` has another scheme, is repeated, or is malformed.
    #[error("the Authorization header is not HTTP Basic")]
    Basic,
    /// The assertion is malformed, or belongs to another client.
    #[error(transparent)]
    Assertion(#[from] AssertionFault),
}

impl Credentials {
    /// Reads a request's credentials from all values of its `Authorization` header or from its form.
    ///
    /// # Errors
    /// 400 for incomplete credentials or more than one kind; 401 for none.
    pub fn read(authorization: &[&str], form: &mut Form) -> Result<Self, Problem> {
        let basic = match basic(authorization) {
            Ok(basic) => basic,
            Err(fault) => return Ok(Self::unreadable(form.take("client_id"), fault)),
        };
        let client_id = form.take("client_id");
        let secret = form.take("client_secret");
        let assertion_type = form.take("client_assertion_type");
        let assertion = form.take("client_assertion");
        if [basic.is_some(), secret.is_some(), assertion.is_some()].into_iter().filter(|came| *came).count() > 1 {
            let detail =
                "Send the client's credentials in one way only: HTTP Basic, client_secret or client_assertion.";
            return Err(malformed(detail));
        }
        if assertion_type.as_deref() != assertion.as_ref().map(|_| assertion::TYPE) {
            let detail = format!("Send client_assertion together with the client_assertion_type {}.", assertion::TYPE);
            return Err(malformed(&detail));
        }
        match (basic, client_id, secret, assertion) {
            (Some((id, _)), Some(in_form), _, _) if in_form != id => {
                Err(malformed("The client_id in the form differs from the one in HTTP Basic."))
            }
            (Some((id, secret)), _, _, _) => Ok(Self::with_secret(id, secret)),
            (None, Some(id), Some(secret), _) => Ok(Self::with_secret(id, secret)),
            (None, id, None, Some(assertion)) => Ok(Self::with_assertion(id, assertion)),
            _ => Err(unauthenticated()),
        }
    }

    fn with_secret(client_id: String, secret: String) -> Self {
        Self { client_id, proof: Proof::Secret(SecretText::new(secret)) }
    }

    /// An assertion names its client. A `client_id` in the same request must be equal (RFC 7521 §4.2).
    fn with_assertion(client_id: Option<String>, assertion: String) -> Self {
        let read = ClientAssertion::read(assertion).and_then(|assertion| match &client_id {
            Some(id) if id != assertion.client_id() => Err(AssertionFault::Subject),
            _ => Ok(assertion),
        });
        match read {
            Ok(assertion) => {
                let client_id = assertion.client_id().to_owned();
                Self { client_id, proof: Proof::Assertion(assertion) }
            }
            Err(fault) => Self::unreadable(client_id, fault.into()),
        }
    }

    fn unreadable(client_id: Option<String>, fault: Unreadable) -> Self {
        Self { client_id: client_id.unwrap_or_default(), proof: Proof::Unreadable(fault) }
    }
}

/// The response to a client that could not be authenticated, for any reason. It has a challenge even if the client did
/// not try HTTP Basic, since every 401 needs one (RFC 9110 §15.5.2).
pub fn unauthenticated() -> Problem {
    let detail =
        "The client could not be authenticated; check client_id and client_secret, or the assertion and its key.";
    Problem::new(ProblemKind::InvalidClient, detail).with_header(WWW_AUTHENTICATE, r#"Basic realm="token""#)
}

/// The credentials of HTTP Basic, each form-decoded as RFC 6749 §2.3.1 requires. Another scheme or a malformed value
/// counts as a failed attempt rather than a missing credential.
fn basic(authorization: &[&str]) -> Result<Option<(String, String)>, Unreadable> {
    match authorization {
        [] => Ok(None),
        [value] => decoded(value).map(Some).ok_or(Unreadable::Basic),
        _ => Err(Unreadable::Basic),
    }
}

fn decoded(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    let bytes = scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(encoded.trim()).ok())??;
    let text = String::from_utf8(bytes).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((form_decoded(id)?, form_decoded(secret)?))
}

fn form_decoded(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a form, optionally with an HTTP Basic `Authorization`.
    fn read(basic: Option<&str>, body: &str) -> Result<Credentials, Problem> {
        let value = basic.map(|pair| format!("Basic {}", BASE64_STANDARD.encode(pair)));
        read_with(&value.iter().map(String::as_str).collect::<Vec<_>>(), body)
    }

    fn read_with(authorization: &[&str], body: &str) -> Result<Credentials, Problem> {
        Credentials::read(authorization, &mut Form::read("application/x-www-form-urlencoded", body.as_bytes())?)
    }

    fn kind(basic: Option<&str>, body: &str) -> ProblemKind {
        read(basic, body).expect_err("refused").kind
    }

    fn secret(credentials: &Credentials) -> &str {
        match &credentials.proof {
            Proof::Secret(secret) => secret.expose(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_secret_comes_by_form_or_by_basic() {
        let by_form = read(None, "client_id=a%2Bb&client_secret=s%26").expect("credentials");
        assert_eq!((by_form.client_id.as_str(), secret(&by_form)), ("a+b", "s&"));
        let by_basic = read(Some("a%2Bb:s%3A+1:2"), "client_id=a%2Bb&client_secret=").expect("credentials");
        assert_eq!((by_basic.client_id.as_str(), secret(&by_basic)), ("a+b", "s: 1:2"));
    }

    #[test]
    fn credentials_come_in_one_way_and_whole() {
        let assertion = format!("client_assertion=x&client_assertion_type={}", assertion::TYPE);
        for (basic, body) in [
            (Some("a:b"), "client_secret=b"),
            (Some("a:b"), "client_id=c"),
            (Some("a:b"), &assertion),
            (None, &format!("client_id=a&client_secret=b&{assertion}")),
            (None, "client_assertion=x"),
            (None, "client_assertion=x&client_assertion_type=saml2"),
            (None, "client_id=a&client_secret=b&client_assertion_type=x"),
        ] {
            assert_eq!(kind(basic, body), ProblemKind::InvalidTokenRequest, "{basic:?} {body}");
        }
    }

    #[test]
    fn missing_credentials_get_invalid_client_and_a_challenge() {
        for body in ["", "client_id=a", "client_secret=a"] {
            let problem = read(None, body).expect_err("refused");
            assert_eq!(
                (problem.kind, &problem.headers[0].0),
                (ProblemKind::InvalidClient, &WWW_AUTHENTICATE),
                "{body}"
            );
        }
    }

    #[test]
    fn unreadable_credentials_count_as_an_attempt_of_the_named_client() {
        let assertion = format!("client_assertion=x&client_assertion_type={}", assertion::TYPE);
        let of_somebody = format!("{assertion}&client_id=a");
        for (basic, body, client_id) in [
            (None, assertion.as_str(), ""),
            (None, &of_somebody, "a"),
            (Some("no colon"), "", ""),
            (Some("no colon"), "client_id=a", "a"),
            (Some("%ff:%ff"), "", ""),
        ] {
            let credentials = read(basic, body).expect("an attempt");
            assert!(matches!(credentials.proof, Proof::Unreadable(_)), "{basic:?} {body}");
            assert_eq!(credentials.client_id, client_id, "{basic:?} {body}");
        }
        for bad in [&["Bearer abc"][..], &[""], &["Basic YTpi", "Basic YTpi"]] {
            let credentials = read_with(bad, "client_id=a&client_secret=b").expect("an attempt");
            assert!(matches!(credentials.proof, Proof::Unreadable(Unreadable::Basic)), "{bad:?}");
        }
    }

    #[test]
    fn nothing_that_proves_anything_is_printed() {
        let credentials = read(None, "client_id=a&client_secret=hunter2").expect("credentials");
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(body in "\\PC{0,100}", basic in "\\PC{0,30}") {
            let _ = read(Some(&basic), &body);
        }

        #[test]
        fn credentials_that_a_client_encodes_for_basic_are_read_unchanged(id in "\\PC{0,20}", password in "\\PC{0,20}") {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let basic = format!("{}:{}", encoded(&id), encoded(&password));
            let credentials = read(Some(&basic), "").expect("credentials");
            prop_assert_eq!((credentials.client_id.as_str(), secret(&credentials)), (id.as_str(), password.as_str()));
        }
    }
}
