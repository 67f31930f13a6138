//! The token endpoint, which exchanges codes and refresh tokens for access tokens.

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;

use super::{
    book::{Book, Tokens},
    client,
    failure::{Failure, Fate},
    log::{Kind, RequestOutcome},
    request::Parameters,
    setup::{Authentication, Setup, Shape},
};
use crate::{Behaviour, Received, clock};

/// A refused request: the code from RFC 6749 §5.2, and the reason.
struct Refusal(&'static str, String);

impl Refusal {
    fn request(reason: impl Into<String>) -> Self {
        Self("invalid_request", reason.into())
    }

    fn grant(reason: impl Into<String>) -> Self {
        Self("invalid_grant", reason.into())
    }
}

/// Responds to one request.
pub(crate) fn answer(book: &mut Book, setup: &Setup, audience: &str, received: &Received) -> Behaviour {
    let parameters = match setup.authentication {
        Authentication::Json(_) => Parameters::of_json(received),
        _ => Parameters::of_form(received),
    };
    let parameters = match parameters {
        Ok(parameters) => parameters,
        Err(fault) => {
            book.note(setup, Kind::Exchange, "", None, RequestOutcome::Refused(fault.clone()));
            return refusal(setup, &Refusal::request(fault));
        }
    };
    for secret in ["code", "code_verifier", "refresh_token", "client_assertion", "client_secret"] {
        book.secrets.extend(parameters.get(secret).map(str::to_owned));
    }
    let (kind, presented) = match parameters.get("grant_type") {
        Some("refresh_token") => (Kind::Refresh, parameters.get("refresh_token")),
        _ => (Kind::Exchange, parameters.get("code")),
    };
    let presented = presented.unwrap_or_default().to_owned();
    let account = match kind {
        Kind::Refresh => book.grant_of(&presented).map(|number| book.grants[number].account.clone()),
        _ => book.codes.get(&presented).map(|code| code.account.clone()),
    };
    let answered = known_client(book, setup, audience, received, &parameters).and_then(|()| match kind {
        Kind::Refresh => refresh(book, setup, &presented),
        _ => exchange(book, setup, &parameters, &presented),
    });
    let (behaviour, outcome) = match answered {
        Ok(TokenOutcome::Granted(behaviour)) => (behaviour, RequestOutcome::Done),
        Ok(TokenOutcome::Failed(failure)) => {
            let leak = book.secret("leak", "ok");
            (failure.behaviour(&leak), RequestOutcome::Failed)
        }
        Err(refused) => (refusal(setup, &refused), RequestOutcome::Refused(refused.1)),
    };
    book.note(setup, kind, &presented, account.as_deref(), outcome);
    behaviour
}

enum TokenOutcome {
    Granted(Behaviour),
    Failed(Failure),
}

fn known_client(
    book: &mut Book,
    setup: &Setup,
    audience: &str,
    received: &Received,
    parameters: &Parameters,
) -> Result<(), Refusal> {
    let refuse = |reason: String| Refusal("invalid_client", reason);
    let assertion = client::check(setup, received, parameters, audience).map_err(refuse)?;
    if assertion.is_none_or(|assertion| book.first_use(assertion)) {
        Ok(())
    } else {
        Err(refuse("the assertion was used before".to_owned()))
    }
}

fn exchange(book: &mut Book, setup: &Setup, parameters: &Parameters, presented: &str) -> Result<TokenOutcome, Refusal> {
    let grant_type = parameters.need("grant_type").map_err(Refusal::request)?;
    if grant_type != "authorization_code" {
        return Err(Refusal("unsupported_grant_type", format!("the grant type {grant_type}")));
    }
    let fate = Fate::of(presented.split('.').next().unwrap_or_default());
    let Some(code) = book.codes.get(presented).filter(|code| code.provider == setup.name) else {
        return match fate {
            // A test made this code up to cause this failure.
            Some(Fate::Exchange(failure)) => Ok(TokenOutcome::Failed(failure)),
            _ => Err(Refusal::grant("a code that was never issued")),
        };
    };
    if let Some(grant) = code.grant {
        // Another party also has the code (RFC 6749 §4.1.2).
        book.grants[grant].ended = true;
        return Err(Refusal::grant("a code that was used before"));
    }
    if let Some(given) = parameters.get("redirect_uri")
        && given != code.redirect_uri
    {
        return Err(Refusal::grant("`redirect_uri` differs from that of the authorization request"));
    }
    // Only Stripe does not require this parameter.
    if setup.shape != Shape::Stripe && parameters.get("redirect_uri").is_none() {
        return Err(Refusal::request("`redirect_uri` is missing"));
    }
    match (&code.challenge, parameters.get("code_verifier")) {
        (None, None) => {}
        (Some(challenge), Some(verifier)) if is_verifier(verifier) && challenge_of(verifier) == *challenge => {}
        (Some(_), Some(_)) => return Err(Refusal::grant("`code_verifier` does not match `code_challenge`")),
        (Some(_), None) => return Err(Refusal::request("`code_verifier` is missing")),
        // An attacker removed the challenge from the URL (RFC 9700 §4.8.2).
        (None, Some(_)) => return Err(Refusal::request("`code_verifier` without a `code_challenge`")),
    }
    let lifetime = code.first_lifetime.or(setup.lifetime);
    let (grant, tokens) = book.grant(setup, presented).ok_or_else(|| Refusal::grant("the code no longer exists"))?;
    if let Some(Fate::Exchange(failure)) = fate {
        return Ok(TokenOutcome::Failed(failure));
    }
    Ok(TokenOutcome::Granted(granted(book, setup, grant, &tokens, lifetime)))
}

fn refresh(book: &mut Book, setup: &Setup, presented: &str) -> Result<TokenOutcome, Refusal> {
    let number = book.grant_of(presented).filter(|number| book.grants[*number].provider == setup.name);
    let number = number.ok_or_else(|| Refusal::grant("a refresh token that was never issued"))?;
    let grant = &mut book.grants[number];
    let failure = match Fate::of(&grant.fate) {
        Some(Fate::Refresh(failure)) => Some(failure),
        Some(Fate::RefreshOnce(failure)) if !grant.failed_once => Some(failure),
        _ => None,
    };
    grant.failed_once = true;
    if let Some(failure) = failure.filter(|failure| *failure != Failure::Lost) {
        return Ok(TokenOutcome::Failed(failure));
    }
    let tokens = book.refresh(setup, number, presented).map_err(Refusal::grant)?;
    match failure {
        Some(lost) => Ok(TokenOutcome::Failed(lost)),
        None => Ok(TokenOutcome::Granted(granted(book, setup, number, &tokens, setup.lifetime))),
    }
}

fn granted(book: &Book, setup: &Setup, grant: usize, tokens: &Tokens, lifetime: Option<u32>) -> Behaviour {
    let grant = &book.grants[grant];
    let mut body = json!({ "access_token": tokens.access });
    if let Some(refresh) = &tokens.refresh {
        body["refresh_token"] = refresh.as_str().into();
    }
    match setup.shape {
        Shape::Standard => {
            body["token_type"] = "Bearer".into();
            body["scope"] = grant.scope.as_str().into();
            body["account_id"] = grant.account.as_str().into();
            if let Some(lifetime) = lifetime {
                body["expires_in"] = lifetime.into();
            }
        }
        Shape::Square => {
            body["token_type"] = "bearer".into();
            body["merchant_id"] = grant.account.as_str().into();
            body["short_lived"] = false.into();
            if let Some(lifetime) = lifetime {
                body["expires_at"] = clock::written_in(lifetime).into();
            }
        }
        Shape::Stripe => {
            body["token_type"] = "bearer".into();
            body["scope"] = grant.scope.as_str().into();
            body["livemode"] = false.into();
            body["stripe_user_id"] = grant.account.as_str().into();
            body["stripe_publishable_key"] = "pk_test_simulated".into();
        }
    }
    if Fate::of(&grant.fate) == Some(Fate::OddMembers) {
        body["token_type"] = "mac".into();
        body["scope"] = json!([]);
        if tokens.refresh.is_none() {
            body["refresh_token"] = "".into();
        }
        body["expires_in"] = lifetime.map_or_else(|| json!(0), |lifetime| json!(format!("{lifetime}.0")));
    }
    answered(200, &body)
}

fn refusal(setup: &Setup, Refusal(code, reason): &Refusal) -> Behaviour {
    match (setup.shape, *code) {
        (Shape::Square, "invalid_client") => {
            answered(401, &json!({ "message": "Not Authorized", "type": "service.not_authorized" }))
        }
        (Shape::Square, "invalid_grant") => {
            let error = json!({ "category": "AUTHENTICATION_ERROR", "code": "UNAUTHORIZED", "detail": reason });
            answered(401, &json!({ "errors": [error] }))
        }
        (_, "invalid_client") => answered(401, &json!({ "error": code, "error_description": reason })),
        _ => answered(400, &json!({ "error": code, "error_description": reason })),
    }
}

fn answered(status: u16, body: &serde_json::Value) -> Behaviour {
    let headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store"), ("Pragma", "no-cache")];
    Behaviour::answer(status, &headers, body.to_string())
}

/// RFC 7636 §4.1: a verifier has 43 to 128 unreserved characters.
fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
}

/// RFC 7636 §4.2 defines the method S256.
fn challenge_of(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636_appendix_b() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(is_verifier(verifier));
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
