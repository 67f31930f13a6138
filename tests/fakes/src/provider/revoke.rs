//! Revoking access.

use serde_json::json;

use super::{
    book::Book,
    client,
    failure::Fate,
    log::{Kind, RequestOutcome},
    request::Parameters,
    setup::{Authentication, Revocation, Setup},
};
use crate::{Behaviour, Received};

/// The access that a request revokes.
enum Subject {
    Token(String),
    Account(String),
}

/// Responds to one request. `audiences` are the accepted audiences of an assertion: this endpoint's and the token
/// endpoint's.
pub(crate) fn answer(book: &mut Book, setup: &Setup, audiences: [&str; 2], received: &Received) -> Behaviour {
    let subject = match read(setup, audiences, received) {
        Ok(subject) => subject,
        Err(fault) => {
            book.note(setup, Kind::Revocation, "", None, RequestOutcome::Refused(fault.clone()));
            return json_answer(401, &json!({ "error": "invalid_client", "error_description": fault }));
        }
    };
    let (presented, grant) = match subject {
        Subject::Token(token) => {
            let grant = book.grant_of(&token).filter(|grant| book.grants[*grant].provider == setup.name);
            (token, grant)
        }
        Subject::Account(account) => {
            let grant = book.grant_of_account(&setup.name, &account);
            (account, grant)
        }
    };
    let grant = grant.map(|number| &mut book.grants[number]);
    let account = grant.as_ref().map(|grant| grant.account.clone());
    let (behaviour, outcome) = match grant {
        None => (gone(setup, &presented), RequestOutcome::Refused("nothing to give back".to_owned())),
        Some(grant) => match Fate::of(&grant.fate) {
            Some(Fate::Revoke(failure)) => (failure.behaviour(&presented), RequestOutcome::Failed),
            _ if grant.ended => (gone(setup, &presented), RequestOutcome::Refused("given back before".to_owned())),
            _ => {
                grant.ended = true;
                (done(setup, &grant.account), RequestOutcome::Done)
            }
        },
    };
    book.note(setup, Kind::Revocation, &presented, account.as_deref(), outcome);
    behaviour
}

fn read(setup: &Setup, audiences: [&str; 2], received: &Received) -> Result<Subject, String> {
    let method = if setup.revocation == Revocation::Delete { "DELETE" } else { "POST" };
    if received.method != method {
        return Err(format!("the verb is {}, not {method}", received.method));
    }
    let secret = setup.secret().unwrap_or_default();
    match setup.revocation {
        Revocation::Rfc7009 | Revocation::Delete => {
            // A client that sends JSON to the token endpoint also sends it here.
            let parameters = match setup.authentication {
                Authentication::Json(_) => Parameters::of_json(received)?,
                _ => Parameters::of_form(received)?,
            };
            let check = |audience| client::check(setup, received, &parameters, audience);
            audiences.into_iter().map(check).find(Result::is_ok).unwrap_or_else(|| check(audiences[0]))?;
            parameters.need("token").map(|token| Subject::Token(token.to_owned()))
        }
        Revocation::Square => {
            let parameters = Parameters::of_json(received)?;
            if received.header("authorization") != format!("Client {secret}") {
                return Err("`Authorization` is not `Client` with the secret".to_owned());
            }
            if parameters.need("client_id")? != setup.client_id {
                return Err("another client id".to_owned());
            }
            match (parameters.get("access_token"), parameters.get("merchant_id")) {
                (Some(token), None) => Ok(Subject::Token(token.to_owned())),
                (None, Some(account)) => Ok(Subject::Account(account.to_owned())),
                _ => Err("one of `access_token` and `merchant_id` is needed".to_owned()),
            }
        }
        Revocation::Stripe => {
            let parameters = Parameters::of_form(received)?;
            let by_bearer = received.header("authorization") == format!("Bearer {secret}");
            let by_name = client::basic_pair(received).is_ok_and(|pair| pair == (secret.to_owned(), String::new()));
            if !by_bearer && !by_name {
                return Err("the secret is neither a bearer token nor the name of HTTP Basic".to_owned());
            }
            if parameters.need("client_id")? != setup.client_id {
                return Err("another client id".to_owned());
            }
            parameters.need("stripe_user_id").map(|account| Subject::Account(account.to_owned()))
        }
    }
}

fn done(setup: &Setup, account: &str) -> Behaviour {
    match setup.revocation {
        Revocation::Rfc7009 => Behaviour::status(200),
        Revocation::Delete => Behaviour::status(204),
        Revocation::Square => json_answer(200, &json!({ "success": true })),
        Revocation::Stripe => json_answer(200, &json!({ "stripe_user_id": account })),
    }
}

/// The response if the access does not exist or has already ended.
fn gone(setup: &Setup, presented: &str) -> Behaviour {
    match setup.revocation {
        // RFC 7009 §2.2: the access has already ended, as the request intended.
        Revocation::Rfc7009 | Revocation::Delete => done(setup, presented),
        Revocation::Square => {
            // Square does not document this case; its other endpoints return this response for such a token.
            let error = json!({ "category": "AUTHENTICATION_ERROR", "code": "ACCESS_TOKEN_REVOKED" });
            json_answer(401, &json!({ "errors": [error] }))
        }
        Revocation::Stripe => {
            let words = format!(
                "This application is not connected to stripe account {presented}, or that account does not exist."
            );
            json_answer(401, &json!({ "error": "invalid_client", "error_description": words }))
        }
    }
}

fn json_answer(status: u16, body: &serde_json::Value) -> Behaviour {
    Behaviour::answer(status, &[("Content-Type", "application/json")], body.to_string())
}
