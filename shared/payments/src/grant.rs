//! Requests to the token endpoint: exchanging a code (RFC 6749 §4.1.3) and refreshing tokens (§6).

use http::Method;

use crate::{
    client_proof::SigningError,
    granted_tokens::{GrantError, GrantedTokens},
    pkce::CodeVerifier,
    provider::Provider,
    provider_request::{Prepared, ProviderRequests},
    token_response,
};
use base::{SharedClock, SharedRandom, Time};
use outbound::{HttpResponse, Outbound};
use storage::SecretText;

/// The parameters that this module sets. A description must not set them.
pub const OWN_PARAMETERS: [&str; 9] = [
    "grant_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "client_id",
    "client_secret",
    "client_assertion_type",
    "client_assertion",
];

/// Requests tokens from providers.
#[derive(Clone)]
pub struct Grants(ProviderRequests);

impl Grants {
    /// Creates a client that sends with `outbound`; `base_url` is this service's address.
    pub fn new(outbound: Outbound, base_url: &str, clock: SharedClock, random: SharedRandom) -> Self {
        Self(ProviderRequests::new(outbound, base_url, clock, random))
    }

    /// Exchanges a code for tokens, in one attempt: a code is valid once, and some providers revoke its tokens if it is
    /// sent again.
    pub async fn exchange(
        &self,
        provider: &Provider,
        code: &str,
        redirect_uri: &str,
        verifier: Option<&CodeVerifier>,
    ) -> Result<GrantedTokens, GrantError> {
        let mut own = vec![("grant_type", "authorization_code"), ("code", code)];
        own.extend(provider.token_redirect_uri.then_some(("redirect_uri", redirect_uri)));
        own.extend(verifier.map(|verifier| ("code_verifier", verifier.expose())));
        let (answer, asked_at) = self.ask(provider, &own).await?;
        let mut granted = token_response::read(&answer, &provider.reading, asked_at)?;
        if granted.scopes.is_empty() {
            granted.scopes.clone_from(&provider.scopes);
        }
        Ok(granted)
    }

    /// Gets new tokens, in one attempt: a rotating refresh token is valid once.
    pub async fn refresh(&self, provider: &Provider, refresh_token: &SecretText) -> Result<GrantedTokens, GrantError> {
        let own = [("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
        let (answer, asked_at) = self.ask(provider, &own).await?;
        token_response::read(&answer, &provider.reading, asked_at)
    }

    /// Returns the response, and the time of the request, from which a token's lifetime is counted.
    async fn ask(&self, provider: &Provider, own: &[(&str, &str)]) -> Result<(HttpResponse, Time), GrantError> {
        let asked_at = self.0.now();
        let request = self.prepare(provider, own).map_err(GrantError::Client)?;
        Ok((self.0.send(request).await.map_err(GrantError::Unreachable)?, asked_at))
    }

    fn prepare(&self, provider: &Provider, own: &[(&str, &str)]) -> Result<Prepared, SigningError> {
        let authentication = self.0.authentication(&provider.client, &provider.token_url)?;
        let described = provider.token_parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let of_the_client = authentication.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let parameters: Vec<_> = own.iter().copied().chain(described).chain(of_the_client).collect();
        let url = &provider.token_url;
        let json = provider.client.speaks_json();
        Ok(Prepared::new(Method::POST, url, authentication.authorization, json, &parameters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client_proof::tests::{NOW, p256_pem},
        description::tests::provider,
        provider_request::tests::{answer, answer_with, answering, requests},
    };
    use flate2::{Compression, write::GzEncoder};
    use http::StatusCode;
    use outbound::AttemptError;
    use serde_json::{Value, json};
    use std::{io::Write, time::Duration};

    fn grants() -> Grants {
        Grants(requests())
    }

    fn shown(provider: &Provider) -> String {
        let own = [("grant_type", "authorization_code"), ("code", "c o/d&e")];
        let request = grants().prepare(provider, &own).expect("prepared");
        let headers =
            request.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().expect("ASCII")));
        let body = String::from_utf8(request.body.to_vec()).expect("text");
        format!("{} {}\n{}\n{body}", request.method, request.url, headers.collect::<String>())
    }

    const AGENT: &str = concat!("user-agent: Waypost/", env!("CARGO_PKG_VERSION"), "\n");

    #[test]
    fn each_way_to_authenticate_makes_the_expected_request() {
        let accept = "POST https://api.example.com/token\naccept: application/json\naccept-encoding: identity\n";
        let form = format!("{accept}content-type: application/x-www-form-urlencoded\n");
        assert_eq!(
            shown(&provider(json!({ "clientSecret": "s:t" }))),
            format!("{form}{AGENT}authorization: Basic YXBwOnMlM0F0\n\ngrant_type=authorization_code&code=c+o%2Fd%26e")
        );
        assert_eq!(
            shown(&provider(json!({ "clientAuthentication": "body", "tokenParameters": { "x": "y" } }))),
            format!(
                "{form}{AGENT}\ngrant_type=authorization_code&code=c+o%2Fd%26e&x=y&client_id=app&client_secret=hunter2"
            )
        );
        assert_eq!(
            shown(&provider(json!({ "clientAuthentication": "json" }))),
            format!(
                "{accept}content-type: application/json\n{AGENT}\n{}",
                r#"{"client_id":"app","client_secret":"hunter2","code":"c o/d&e","grant_type":"authorization_code"}"#
            )
        );
        let signed = shown(&provider(json!({ "clientAuthentication": "private_key_jwt", "privateKey": p256_pem() })));
        let expected = format!(
            "{form}{AGENT}\ngrant_type=authorization_code&code=c+o%2Fd%26e&client_id=app\
             &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=eyJ"
        );
        assert!(signed.starts_with(&expected) && !signed.contains("hunter2"), "{signed}");
    }

    /// Sends a request to a fake provider with this response. Returns the result and the received request.
    async fn ask(members: Value, raw: Vec<u8>, refresh: bool) -> (Result<GrantedTokens, GrantError>, String) {
        let (address, asked) = answering(raw);
        let mut provider = provider(members);
        provider.token_url = address;
        let outcome = if refresh {
            grants().refresh(&provider, &SecretText::new("rt/1")).await
        } else {
            let verifier = CodeVerifier::from_stored("v".repeat(43));
            grants().exchange(&provider, "the-code", "https://w.example/cb", Some(&verifier)).await
        };
        (outcome, asked.join().expect("asked"))
    }

    #[tokio::test]
    async fn a_code_becomes_tokens() {
        let body = r#"{"access_token":"at","expires_in":60,"refresh_token":"rt","account_id":"acct_1"}"#;
        let (granted, asked) = ask(json!({}), answer(200, body), false).await;
        let granted = granted.expect("granted");
        assert_eq!(granted.expires, Some(NOW + Duration::from_secs(60)));
        assert_eq!((granted.account.as_deref(), granted.scopes.len()), (Some("acct_1"), 2));
        assert!(asked.starts_with("POST /token HTTP/1.1\r\n"), "{asked}");
        let expected = format!(
            "grant_type=authorization_code&code=the-code&redirect_uri=https%3A%2F%2Fw.example%2Fcb&code_verifier={}",
            "v".repeat(43)
        );
        assert!(asked.ends_with(&expected), "{asked}");
    }

    #[tokio::test]
    async fn a_form_and_a_compressed_answer_become_tokens() {
        let form = "access_token=a%2Bt&expires_in=60&refresh_token=rt&scope=read%2Cwrite&account_id=acct+1";
        let form_type = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(form.as_bytes()).expect("memory takes all");
        let packed = encoder.finish().expect("memory takes all");
        for raw in [
            answer_with(200, form_type, form.as_bytes()),
            answer_with(200, &format!("{form_type}Content-Encoding: gzip\r\n"), &packed),
        ] {
            let (granted, _) = ask(json!({ "scopeSeparator": "," }), raw, false).await;
            let granted = granted.expect("granted");
            assert_eq!(granted.access_token.expose(), "a+t");
            assert_eq!(granted.expires, Some(NOW + Duration::from_secs(60)));
            assert_eq!(granted.scopes, ["read", "write"]);
            assert_eq!(granted.account.as_deref(), Some("acct 1"));
        }
        let (dead, _) = ask(json!({}), answer_with(200, form_type, b"error=invalid_grant&error_uri=x"), true).await;
        assert!(dead.expect_err("dead").is_dead_grant());
    }

    #[tokio::test]
    async fn the_redirect_address_is_left_out_where_the_provider_wants_none() {
        let (_, asked) = ask(json!({ "tokenRedirectUri": false }), answer(200, "{}"), false).await;
        assert!(!asked.contains("redirect_uri"), "{asked}");
    }

    #[tokio::test]
    async fn a_refresh_asks_with_the_token_alone() {
        let (granted, asked) = ask(json!({}), answer(200, r#"{"access_token":"at"}"#), true).await;
        assert!(granted.expect("granted").refresh_token.is_none());
        assert!(asked.ends_with("\r\n\r\ngrant_type=refresh_token&refresh_token=rt%2F1"), "{asked}");
    }

    #[tokio::test]
    async fn each_end_of_an_exchange_is_its_own_error() {
        let (dead, _) = ask(json!({}), answer(400, r#"{"error":"invalid_grant"}"#), true).await;
        assert!(dead.expect_err("dead").is_dead_grant());
        let large = format!(r#"{{"access_token":"at","x":"{}"}}"#, "x".repeat(70_000));
        assert!(matches!(ask(json!({}), answer(200, &large), true).await.0, Err(GrantError::TooLarge)));
        let (cut, _) = ask(json!({}), b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_vec(), true).await;
        assert!(matches!(cut, Err(GrantError::Unreachable(AttemptError::Connect(_)))));
        let moved = b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n".to_vec();
        let (moved, _) = ask(json!({}), moved, true).await;
        assert!(matches!(moved, Err(GrantError::Status { status: StatusCode::FOUND, .. })));
    }
}
