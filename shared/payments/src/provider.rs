//! The complete description of a payment provider: its addresses, the client's authentication, and the form of its
//! responses. Providers differ only in this data; no code knows a provider by name.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use serde::Deserialize;
use url::Url;

use crate::{client_proof::Client, placeholder::Template};

const MAX_NAME: usize = 31;

base::text_type! {
    /// A provider's name, such as `stripe`: a lower-case letter, then up to 30 lower-case letters, digits and `-`.
    ProviderName, Self::parse
}

/// A string that cannot be a provider's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a lower-case letter and up to 30 lower-case letters, digits and `-`")]
pub struct ProviderNameError;

impl ProviderName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, ProviderNameError> {
        let letters = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let good = text.len() <= MAX_NAME && letters && text.starts_with(|first: char| first.is_ascii_lowercase());
        if good { Ok(Self(text.to_owned())) } else { Err(ProviderNameError) }
    }
}

#[derive(Debug)]
pub struct Provider {
    pub name: ProviderName,
    pub authorize_url: Url,
    pub token_url: Url,
    pub revoke_url: Option<Url>,
    pub issuer: Option<String>,
    /// Whether every response from its authorization endpoint contains the issuer (RFC 9207 §3).
    pub names_issuer: bool,
    pub client: Client,
    pub scopes: Vec<String>,
    pub scope_separator: String,
    pub pkce: bool,
    pub authorize_parameters: BTreeMap<String, String>,
    pub token_parameters: BTreeMap<String, String>,
    /// Whether the exchange repeats the redirect URI (RFC 6749 §4.1.3).
    pub token_redirect_uri: bool,
    pub reading: Reading,
    pub denial_codes: Vec<String>,
    pub refresh_at_most_after: Option<Duration>,
    pub revocation: Revocation,
}

/// How to read the token endpoint's responses where they differ from RFC 6749.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The members that may contain the account; the first one present is used.
    pub account_fields: Vec<String>,
    /// The member with the access token's expiry, and its form, in addition to RFC 6749's `expires_in`.
    pub expiry: Option<Expiry>,
    /// JSON pointers (RFC 6901) to an error's code, in addition to `/error`; the first one present is used. In a
    /// response with an access token, only `/error` is read.
    pub error_fields: Vec<String>,
    /// The provider's equivalents of RFC 6749's `invalid_grant`.
    pub dead_grant_codes: Vec<String>,
    /// A scope separator, in addition to a space.
    pub scope_separator: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expiry {
    pub field: String,
    pub form: ExpiryForm,
}

/// The form of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryForm {
    /// A number of seconds from now, as a number or a string.
    Seconds,
    /// An alias of `Seconds`, which secrets may use.
    SecondsOrText,
    /// A date in RFC 3339.
    Date,
}

/// How access is revoked at the provider.
#[derive(Debug, Clone)]
pub struct Revocation {
    pub method: Method,
    /// Whether the parameters are sent as JSON rather than as a form.
    pub json: bool,
    /// The value of `Authorization`, if it differs from the client's usual authentication.
    pub authorization: Option<Template>,
    /// The parameters; `None` for those of RFC 7009.
    pub parameters: Option<BTreeMap<String, Template>>,
    /// The error codes meaning that there is nothing left to revoke.
    pub gone_codes: Vec<String>,
    /// Words in `error_description` with the same meaning, if the code is not specific enough.
    pub gone_words: Option<String>,
}

impl Provider {
    /// Whether a callback with this `iss`, or without one, can come from this provider (RFC 9207 §2.4). If the
    /// provider's issuer is not known, an `iss` must have the origin of one of its addresses.
    pub fn can_answer_as(&self, iss: Option<&str>) -> bool {
        match (iss, &self.issuer) {
            (None, _) => !self.names_issuer,
            (Some(iss), Some(issuer)) => issuer == iss,
            (Some(iss), None) => Url::parse(iss).is_ok_and(|iss| {
                iss.has_host()
                    && [&self.authorize_url, &self.token_url].iter().any(|known| known.origin() == iss.origin())
            }),
        }
    }

    /// Whether an `error` in the callback means that the person declined.
    pub fn is_denial(&self, error: &str) -> bool {
        error == "access_denied" || self.denial_codes.iter().any(|code| code == error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::tests::provider;
    use serde_json::json;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "stripe", "pay-2-go", &"x".repeat(31)] {
            assert_eq!(ProviderName::parse(good).expect(good).to_string(), *good);
        }
        for bad in ["", "Stripe", "2pay", "-a", "a_b", "a/b", "é", "a\n", &"x".repeat(32)] {
            assert_eq!(ProviderName::parse(bad), Err(ProviderNameError), "{bad}");
        }
        assert!(serde_json::from_str::<ProviderName>("\"../x\"").is_err());
    }

    #[test]
    fn an_issuer_is_the_configured_one_or_at_an_origin_of_the_provider() {
        let configured = provider(json!({ "issuer": "https://id.example.com" }));
        assert!(configured.can_answer_as(Some("https://id.example.com")));
        for other in ["https://id.example.com/", "https://pay.example.com", ""] {
            assert!(!configured.can_answer_as(Some(other)), "{other}");
        }
        let unknown = provider(json!({}));
        for good in ["https://pay.example.com", "https://pay.example.com/", "https://api.example.com:443/x"] {
            assert!(unknown.can_answer_as(Some(good)), "{good}");
        }
        for bad in [
            "",
            "x",
            "http://pay.example.com",
            "https://pay.example.com.evil.org",
            "https://pay.example.com:8443",
            "data:x",
        ] {
            assert!(!unknown.can_answer_as(Some(bad)), "{bad}");
        }
    }

    #[test]
    fn a_missing_issuer_is_accepted_unless_the_provider_always_names_it() {
        assert!(provider(json!({})).can_answer_as(None));
        assert!(provider(json!({ "issuer": "https://id.example.com" })).can_answer_as(None));
        let announced =
            json!({ "issuer": "https://id.example.com", "authorizationResponseIssParameterSupported": true });
        let announced = provider(announced);
        assert!(!announced.can_answer_as(None) && announced.can_answer_as(Some("https://id.example.com")));
    }

    #[test]
    fn the_rfc_and_the_description_name_the_codes_of_a_denial() {
        let provider = provider(json!({ "denialCodes": ["user_cancelled"] }));
        assert!(provider.is_denial("access_denied") && provider.is_denial("user_cancelled"));
        assert!(!provider.is_denial("server_error") && !provider.is_denial(""));
    }
}
