//! Faults in a provider's responses, named as they are in codes and tokens.

use std::time::Duration;

use crate::Behaviour;

/// Text that every failing response contains, and that only the service may see.
pub const PROVIDERS_WORDS: &str = "the-providers-own-words";

/// A failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A 400 response with `invalid_grant`.
    InvalidGrant,
    /// A 200 response with the error `invalid_grant`.
    InvalidGrantWith200,
    /// A 401 response with `invalid_client`.
    InvalidClient,
    /// A 429 response with a `Retry-After` of one second.
    TooManyRequests,
    /// A 500 response with a page.
    Internal,
    /// A 503 response without a body.
    Unavailable,
    /// The provider does not respond.
    Hang,
    /// The provider ends the connection without a response.
    Close,
    /// The provider resets the connection without a response.
    Reset,
    /// The provider carries out the request, then ends the connection without a response.
    Lost,
    /// A body that is shorter than announced.
    Truncated,
    /// A 200 response with invalid JSON.
    NotJson,
    /// A 200 response with a page.
    Html,
    /// A 200 response with a body that never ends.
    Huge,
    /// A 200 response without a body.
    Empty,
    /// A 200 response without an access token.
    NoAccessToken,
    /// A 200 response with members of the wrong types.
    WrongTypes,
    /// A 200 response with a duplicate member.
    Doubled,
    /// A redirect to another of the provider's paths.
    Redirect,
    /// A body that is sent byte by byte.
    Trickle,
    /// Headers that never end.
    EndlessHeaders,
}

impl Failure {
    /// All failures, by name.
    pub const ALL: [(&str, Self); 21] = [
        ("invalid_grant", Self::InvalidGrant),
        ("200-invalid_grant", Self::InvalidGrantWith200),
        ("invalid_client", Self::InvalidClient),
        ("429", Self::TooManyRequests),
        ("500", Self::Internal),
        ("503", Self::Unavailable),
        ("hang", Self::Hang),
        ("close", Self::Close),
        ("reset", Self::Reset),
        ("lost", Self::Lost),
        ("truncated", Self::Truncated),
        ("not-json", Self::NotJson),
        ("html", Self::Html),
        ("huge", Self::Huge),
        ("empty", Self::Empty),
        ("no-access-token", Self::NoAccessToken),
        ("wrong-types", Self::WrongTypes),
        ("doubled", Self::Doubled),
        ("redirect", Self::Redirect),
        ("trickle", Self::Trickle),
        ("endless-headers", Self::EndlessHeaders),
    ];

    /// The failure with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, failure)| failure)
    }

    /// The server's behaviour for this failure; `leak` is a token that the response contains.
    pub(crate) fn behaviour(self, leak: &str) -> Behaviour {
        let error =
            |code: &str| format!(r#"{{"error":"{code}","error_description":"{PROVIDERS_WORDS}","token":"{leak}"}}"#);
        let json = |status, body: &str| Behaviour::answer(status, &[("Content-Type", "application/json")], body);
        let page = format!("<!doctype html><title>{PROVIDERS_WORDS}</title><p>{leak}");
        match self {
            Self::InvalidGrant => json(400, &error("invalid_grant")),
            Self::InvalidGrantWith200 => json(200, &error("invalid_grant")),
            Self::InvalidClient => json(401, &error("invalid_client")),
            Self::TooManyRequests => {
                let headers = [("Content-Type", "application/json"), ("Retry-After", "1")];
                Behaviour::answer(429, &headers, error("slow_down"))
            }
            Self::Internal => Behaviour::answer(500, &[("Content-Type", "text/html")], page),
            Self::Unavailable => Behaviour::status(503),
            Self::Hang => Behaviour::hang(),
            Self::Close | Self::Lost => Behaviour::close(),
            Self::Reset => Behaviour::reset(),
            Self::Truncated => Behaviour::truncated_body(200),
            Self::NotJson => json(200, &format!(r#"{{"access_token":"{leak}","token_type":"#)),
            Self::Html => Behaviour::answer(200, &[("Content-Type", "text/html")], page),
            Self::Huge => Behaviour::endless_body(200),
            Self::Empty => Behaviour::status(200),
            Self::NoAccessToken => {
                json(200, &format!(r#"{{"token_type":"Bearer","expires_in":3600,"refresh_token":"{leak}"}}"#))
            }
            Self::WrongTypes => {
                json(200, &format!(r#"{{"access_token":["{leak}"],"token_type":"Bearer","expires_in":"soon"}}"#))
            }
            Self::Doubled => json(
                200,
                &format!(
                    r#"{{"access_token":"{leak}","token_type":"Bearer","expires_in":60,"access_token":"{leak}"}}"#
                ),
            ),
            Self::Redirect => Behaviour::answer(307, &[("Location", "/elsewhere")], ""),
            Self::Trickle => Behaviour::trickled_body(200, Duration::from_millis(200)),
            Self::EndlessHeaders => Behaviour::endless_headers(Duration::from_millis(200)),
        }
    }
}

/// The errors that the provider can report instead of returning a code.
pub(crate) const ASK_ERRORS: [&str; 3] = ["invalid_scope", "server_error", "temporarily_unavailable"];

/// The fate after a consent; its name is the first part of the code and the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fate {
    /// No failure: `ok`.
    #[default]
    Fine,
    /// Exchanging the code fails: `fail-…`.
    Exchange(Failure),
    /// Every refresh fails: `refresh-…`.
    Refresh(Failure),
    /// The first refresh fails: `refresh-…-once`.
    RefreshOnce(Failure),
    /// There is no refresh token: `no-refresh`.
    NoRefresh,
    /// Every token response has optional members that cannot be read: `odd-members`.
    OddMembers,
    /// The provider returns this error instead of a code (RFC 6749 §4.1.2.1): `ask-…`.
    Ask(&'static str),
    /// Revocation fails: `revoke-…`.
    Revoke(Failure),
}

impl Fate {
    /// Reads the fate at the beginning of a code.
    pub(crate) fn of(text: &str) -> Option<Self> {
        match text {
            "ok" => return Some(Self::Fine),
            "no-refresh" => return Some(Self::NoRefresh),
            "odd-members" => return Some(Self::OddMembers),
            _ => {}
        }
        let (stage, rest) = text.split_once('-')?;
        if stage == "ask" {
            return ASK_ERRORS.into_iter().find(|error| *error == rest).map(Self::Ask);
        }
        let (name, once) = rest.strip_suffix("-once").map_or((rest, false), |name| (name, true));
        let failure = Failure::named(name)?;
        match (stage, once) {
            ("fail", false) => Some(Self::Exchange(failure)),
            ("refresh", false) => Some(Self::Refresh(failure)),
            ("refresh", true) => Some(Self::RefreshOnce(failure)),
            ("revoke", false) => Some(Self::Revoke(failure)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_is_read_from_its_name_and_a_misspelt_one_is_none() {
        assert_eq!(Fate::of("ok"), Some(Fate::Fine));
        assert_eq!(Fate::of("fail-not-json"), Some(Fate::Exchange(Failure::NotJson)));
        assert_eq!(Fate::of("refresh-500-once"), Some(Fate::RefreshOnce(Failure::Internal)));
        assert_eq!(Fate::of("revoke-hang"), Some(Fate::Revoke(Failure::Hang)));
        assert_eq!(Fate::of("ask-server_error"), Some(Fate::Ask("server_error")));
        for wrong in ["", "ask-500", "fail", "fail-", "fail-501", "fail-500-once", "else-500"] {
            assert_eq!(Fate::of(wrong), None, "{wrong}");
        }
    }
}
