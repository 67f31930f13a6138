//! The consent page, and what happens after the person's choice.

use super::{
    book::{Book, Code, random_text},
    failure::{ASK_ERRORS, Failure, Fate},
    log::{Kind, RequestOutcome},
    page::{consent_page, fault_page},
    request::Parameters,
    setup::{Authentication, Setup},
};
use crate::{Behaviour, Received};

/// The minimum length of a state that cannot be guessed.
const MIN_STATE: usize = 22;

/// A client's request for the person's consent.
pub(crate) struct Question {
    pub(crate) redirect_uri: String,
    pub(crate) state: String,
    pub(crate) scope: String,
    pub(crate) challenge: Option<String>,
}

impl Question {
    fn read(setup: &Setup, parameters: &Parameters) -> Result<Self, String> {
        if parameters.need("client_id")? != setup.client_id {
            return Err("`client_id` names no client that is known here".to_owned());
        }
        let redirect_uri = parameters.need("redirect_uri")?;
        if !(redirect_uri.starts_with("http://") || redirect_uri.starts_with("https://")) || redirect_uri.contains('#')
        {
            return Err("`redirect_uri` is no address to send a browser to".to_owned());
        }
        if parameters.need("response_type")? != "code" {
            return Err("`response_type` is not `code`".to_owned());
        }
        let state = parameters.need("state")?;
        if state.len() < MIN_STATE {
            return Err(format!("`state` is shorter than {MIN_STATE} characters"));
        }
        let challenge = parameters.get("code_challenge");
        match (challenge, parameters.get("code_challenge_method")) {
            (None, None) if setup.pkce => return Err("`code_challenge` is missing".to_owned()),
            (None, None) => {}
            // In base64url, a SHA-256 hash has 43 characters.
            (Some(challenge), Some("S256")) if challenge.len() == 43 => {}
            _ => return Err("`code_challenge` is none of the method S256".to_owned()),
        }
        Ok(Self {
            redirect_uri: redirect_uri.to_owned(),
            state: state.to_owned(),
            scope: parameters.need("scope")?.to_owned(),
            challenge: challenge.map(str::to_owned),
        })
    }
}

/// Shows the consent page.
pub(crate) fn ask(setup: &Setup, received: &Received) -> Behaviour {
    let read =
        Parameters::of_query(received).and_then(|parameters| Ok((Question::read(setup, &parameters)?, parameters)));
    match read {
        Ok((question, parameters)) => {
            let account = format!("acct_{}", &random_text().replace(['-', '_'], "0")[..12]);
            let note = matches!(setup.authentication, Authentication::AnySecret).then_some(
                "This is a demonstration on your own machine. It accepts any client secret for this client, gives \
                 access to nothing, and forgets everything when it ends.",
            );
            page(200, &consent_page(setup, &question, &parameters, &account, note))
        }
        Err(fault) => page(400, &fault_page(&fault)),
    }
}

/// Handles the person's choice by redirecting to the client, with or without a code.
pub(crate) fn answer(book: &mut Book, setup: &Setup, issuer: &str, received: &Received) -> Behaviour {
    let read =
        Parameters::of_form(received).and_then(|parameters| Ok((Question::read(setup, &parameters)?, parameters)));
    let (question, parameters) = match read {
        Ok(read) => read,
        Err(fault) => return page(400, &fault_page(&fault)),
    };
    let fate = parameters.get("fate").unwrap_or("ok");
    let account = parameters.get("account").unwrap_or("acct_without_a_name");
    let first_lifetime = parameters.get("first_lifetime").and_then(|seconds| seconds.parse().ok());
    let Some(known_fate) = Fate::of(fate) else { return page(400, &fault_page("There is no such fate.")) };
    let mut result = match (parameters.get("decision"), known_fate) {
        (Some("allow"), Fate::Ask(error)) => {
            book.note(setup, Kind::Consent, "", Some(account), RequestOutcome::Failed);
            vec![("error", error.to_owned())]
        }
        (Some("allow"), _) => {
            let code = book.secret("code", fate);
            book.codes.insert(
                code.clone(),
                Code {
                    provider: setup.name.clone(),
                    redirect_uri: question.redirect_uri.clone(),
                    challenge: question.challenge.clone(),
                    scope: question.scope.clone(),
                    account: account.to_owned(),
                    fate: fate.to_owned(),
                    first_lifetime,
                    grant: None,
                },
            );
            book.note(setup, Kind::Consent, &code, Some(account), RequestOutcome::Done);
            vec![("code", code)]
        }
        (Some("deny"), _) => {
            book.note(setup, Kind::Consent, "", Some(account), RequestOutcome::Declined);
            vec![("error", "access_denied".to_owned()), ("error_description", "The person said no.".to_owned())]
        }
        _ => return page(400, &fault_page("`decision` is neither `allow` nor `deny`.")),
    };
    result.push(("state", question.state));
    if setup.issuer {
        result.push(("iss", issuer.to_owned()));
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(result).finish();
    let separator = if question.redirect_uri.contains('?') { '&' } else { '?' };
    // With 303, the request after the choice is a GET (RFC 9700 §4.12).
    let location = format!("{}{separator}{query}", question.redirect_uri);
    Behaviour::answer(303, &[("Location", &location), ("Cache-Control", "no-store")], "")
}

fn page(status: u16, html: &str) -> Behaviour {
    let headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        // Omit `form-action`, which browsers also apply to the redirect after the form.
        ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"),
    ];
    Behaviour::answer(status, &headers, html)
}

/// The fates that a person can choose, each with a description.
pub(crate) fn fates() -> Vec<(String, String)> {
    let mut fates = vec![
        ("no-refresh".to_owned(), "There is no refresh token".to_owned()),
        ("odd-members".to_owned(), "Optional members of a grant cannot be read".to_owned()),
    ];
    for (name, _) in Failure::ALL {
        fates.push((format!("fail-{name}"), format!("The exchange of the code fails: {name}")));
        fates.push((format!("refresh-{name}"), format!("Every refresh fails: {name}")));
        fates.push((format!("refresh-{name}-once"), format!("The first refresh fails: {name}")));
        fates.push((format!("revoke-{name}"), format!("Giving access back fails: {name}")));
    }
    for error in ASK_ERRORS {
        fates.push((format!("ask-{error}"), format!("There is an error in the place of a code: {error}")));
    }
    fates.sort();
    // The first fate is the default.
    fates.insert(0, ("ok".to_owned(), "All goes well".to_owned()));
    fates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fate_that_can_be_chosen_is_one() {
        assert!(fates().iter().all(|(name, _)| Fate::of(name).is_some()));
    }

    #[test]
    fn the_fates_are_in_the_order_of_their_names_after_the_usual_one() {
        let names: Vec<_> = fates().into_iter().map(|(name, _)| name).collect();
        assert!(names[0] == "ok" && names[1..].is_sorted(), "{names:?}");
    }
}
