//! Revocation of access at the provider, as in RFC 7009 or as the provider's description says.

use http::{HeaderValue, StatusCode};

use crate::{
    client_proof::{Authentication, SigningError, sensitive},
    placeholder::Placeholder,
    provider::{Provider, Revocation},
    provider_request::{Prepared, ProviderRequests},
    token_response,
};
use base::{SharedClock, SharedRandom};
use outbound::{AttemptError, HttpResponse, Outbound};
use storage::SecretText;

/// Revokes access at providers.
#[derive(Clone)]
pub struct Revocations(ProviderRequests);

/// The provider's response to a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Done,
    /// The access had already ended.
    AlreadyGone,
    /// The provider has no endpoint for revocation, so a person must revoke it there.
    NotOffered,
}

/// Why access could not be revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    #[error("the provider did not answer")]
    Unreachable(#[source] AttemptError),
    #[error("the provider answered {status}")]
    Status { status: StatusCode },
    #[error("the request to the provider could not be signed")]
    Client(#[source] SigningError),
}

impl Revocations {
    /// Creates a client that sends with `outbound`; `base_url` is this service's address.
    pub fn new(outbound: Outbound, base_url: &str, clock: SharedClock, random: SharedRandom) -> Self {
        Self(ProviderRequests::new(outbound, base_url, clock, random))
    }

    /// Revokes the access to an account, in one attempt.
    pub async fn revoke(
        &self,
        provider: &Provider,
        access_token: &SecretText,
        refresh_token: Option<&SecretText>,
        account: Option<&str>,
    ) -> Result<Revoked, RevokeError> {
        let request = self.prepare(provider, access_token, refresh_token, account).map_err(RevokeError::Client)?;
        let Some(request) = request else { return Ok(Revoked::NotOffered) };
        let answer = self.0.send(request).await.map_err(RevokeError::Unreachable)?;
        if answer.status.is_success() {
            Ok(Revoked::Done)
        } else if says_gone(&answer, &provider.revocation, &provider.reading.error_fields) {
            Ok(Revoked::AlreadyGone)
        } else {
            Err(RevokeError::Status { status: answer.status })
        }
    }

    fn prepare(
        &self,
        provider: &Provider,
        access_token: &SecretText,
        refresh_token: Option<&SecretText>,
        account: Option<&str>,
    ) -> Result<Option<Prepared>, SigningError> {
        let Some(url) = &provider.revoke_url else { return Ok(None) };
        let client = &provider.client;
        let revocation = &provider.revocation;
        let value = |place| match place {
            Placeholder::ClientId => Some(client.id.as_str()),
            Placeholder::ClientSecret => client.secret().map(SecretText::expose),
            Placeholder::AccessToken => Some(access_token.expose()),
            Placeholder::RefreshToken => refresh_token.map(SecretText::expose),
            Placeholder::Account => account,
            Placeholder::OwnHost => None,
        };
        let authentication = match &revocation.authorization {
            Some(template) => {
                let header = template.fill(value).and_then(|text| HeaderValue::try_from(text).ok());
                Authentication { authorization: Some(sensitive(header.ok_or(SigningError)?)), parameters: Vec::new() }
            }
            None => self.0.authentication(client, url)?,
        };
        let described: Vec<(&str, String)> = match &revocation.parameters {
            // A parameter without a value is left out.
            Some(parameters) => {
                parameters.iter().filter_map(|(name, template)| Some((name.as_str(), template.fill(value)?))).collect()
            }
            // The refresh token represents the whole grant (RFC 7009 §2.1).
            None => match refresh_token {
                Some(token) => rfc_7009(token, "refresh_token"),
                None => rfc_7009(access_token, "access_token"),
            },
        };
        let parameters: Vec<_> =
            described.iter().chain(&authentication.parameters).map(|(name, value)| (*name, value.as_str())).collect();
        let method = revocation.method.clone();
        let json = revocation.json;
        Ok(Some(Prepared::new(method, url, authentication.authorization, json, &parameters)))
    }
}

fn rfc_7009(token: &SecretText, hint: &str) -> Vec<(&'static str, String)> {
    vec![("token", token.expose().to_owned()), ("token_type_hint", hint.to_owned())]
}

/// Whether a refusal means that the access is already gone, rather than that this service made a mistake.
fn says_gone(answer: &HttpResponse, revocation: &Revocation, error_fields: &[String]) -> bool {
    if !answer.status.is_client_error() {
        return false;
    }
    let code = token_response::error_code(answer, error_fields);
    let by_code = code.is_some_and(|code| {
        ["invalid_grant", "invalid_token"].contains(&code.as_str()) || revocation.gone_codes.contains(&code)
    });
    let by_words = || {
        let body = token_response::error_body(answer)?;
        body.get("error_description")?.as_str()?.contains(revocation.gone_words.as_deref()?).then_some(())
    };
    by_code || by_words().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        description::tests::provider,
        provider_request::tests::{answer, answering, requests},
    };
    use serde_json::{Value, json};

    async fn revoke(members: Value, status: u16, body: &str) -> (Result<Revoked, RevokeError>, String) {
        let (address, asked) = answering(answer(status, body));
        let mut provider = provider(members);
        provider.revoke_url = Some(address);
        let access = SecretText::new("at");
        let refresh = SecretText::new("rt");
        let outcome = Revocations(requests()).revoke(&provider, &access, Some(&refresh), Some("acct_1")).await;
        (outcome, asked.join().expect("asked"))
    }

    #[tokio::test]
    async fn by_default_the_refresh_token_is_revoked_as_the_rfc_says() {
        let (outcome, asked) = revoke(json!({}), 200, "").await;
        assert_eq!(outcome.expect("revoked"), Revoked::Done);
        assert!(asked.starts_with("POST /token HTTP/1.1\r\n") && asked.contains("authorization: Basic "), "{asked}");
        assert!(asked.ends_with("\r\n\r\ntoken=rt&token_type_hint=refresh_token"), "{asked}");
    }

    #[tokio::test]
    async fn a_description_can_say_all_of_it() {
        let description = json!({ "clientAuthentication": "json", "revocation": {
            "authorization": "Client {clientSecret}", "parameters": { "client_id": "{clientId}", "access_token": "{accessToken}" },
        } });
        let (_, asked) = revoke(description, 200, r#"{"success":true}"#).await;
        assert!(asked.contains("authorization: Client hunter2\r\n"), "{asked}");
        assert!(asked.ends_with("\r\n\r\n{\"access_token\":\"at\",\"client_id\":\"app\"}"), "{asked}");
        let description = json!({ "clientAuthentication": "json", "revocation": {
            "method": "DELETE", "encoding": "form", "parameters": { "account": "{account}" },
        } });
        let (_, asked) = revoke(description, 204, "").await;
        assert!(asked.starts_with("DELETE /token HTTP/1.1\r\n"), "{asked}");
        assert!(asked.ends_with("\r\n\r\naccount=acct_1&client_id=app&client_secret=hunter2"), "{asked}");
    }

    #[tokio::test]
    async fn only_an_explicit_refusal_means_that_access_is_gone() {
        let description = || json!({ "revocation": { "goneCodes": ["NO_TOKEN"], "goneWords": "is not connected" } });
        for gone in [
            r#"{"error":"invalid_grant"}"#,
            r#"{"error":"invalid_token"}"#,
            r#"{"error":"NO_TOKEN"}"#,
            r#"{"error":"invalid_client","error_description":"This application is not connected to acct_1"}"#,
        ] {
            assert_eq!(revoke(description(), 401, gone).await.0.expect("gone"), Revoked::AlreadyGone, "{gone}");
            assert!(matches!(revoke(description(), 500, gone).await.0, Err(RevokeError::Status { .. })), "{gone}");
        }
        for kept in ["", "<html>", r#"{"error":"invalid_client","error_description":"No such API key"}"#] {
            assert!(matches!(revoke(description(), 404, kept).await.0, Err(RevokeError::Status { .. })), "{kept}");
        }
    }

    #[tokio::test]
    async fn without_an_address_nothing_is_sent() {
        let access = SecretText::new("at");
        let outcome = Revocations(requests()).revoke(&provider(json!({})), &access, None, None).await;
        assert_eq!(outcome.expect("no error"), Revoked::NotOffered);
    }

    #[test]
    fn without_a_refresh_token_the_access_token_is_revoked() {
        let body = |members: Value| {
            let provider = provider(members);
            let request = Revocations(requests()).prepare(&provider, &SecretText::new("at"), None, None);
            String::from_utf8(request.expect("signed").expect("a request").body.to_vec()).expect("text")
        };
        let url = "https://api.example.com/revoke";
        assert_eq!(body(json!({ "revokeUrl": url })), "token=at&token_type_hint=access_token");
        // A parameter without a value is left out.
        let parameters = json!({ "parameters": { "account": "{account}", "fixed": "1", "token": "{refreshToken}" } });
        assert_eq!(body(json!({ "revokeUrl": url, "revocation": parameters })), "fixed=1");
    }
}
