//! The address of the page for a person who returns from a provider, and what the page may show.
//!
//! The address contains the outcome and a tag, which the callback made with the browser's cookie. Without a valid tag,
//! the page shows no outcome, entity or account, so a forged address reveals nothing.

use form_urlencoded::Serializer;

use crate::{browser::Browser, provider::ProviderName};

/// The outcome of an authorization for the person who returns from a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationOutcome {
    /// The person granted access, and the connection was created.
    Connected,
    /// The person declined.
    Denied,
    /// The provider failed.
    Failed,
    /// The person granted access to an account that may not replace the connected one.
    OtherAccount,
}

impl AuthorizationOutcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Connected, Self::Denied, Self::Failed, Self::OtherAccount];

    /// The outcome in the page's address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::OtherAccount => "other-account",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// A person's return from a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// The provider.
    pub provider: &'a ProviderName,
    /// How the authorization ended.
    pub outcome: AuthorizationOutcome,
    /// The managing entity.
    pub entity: &'a str,
    /// The account that the person chose, if the provider names it.
    pub account: Option<&'a str>,
    /// The provider's error code, if it may be repeated.
    pub error: Option<ErrorCode<'a>>,
}

/// The facts that the page may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomePage<'a> {
    /// The provider that the address names.
    pub provider: &'a ProviderName,
    /// The return described by the address, if the browser's tag proves it.
    pub proven: Option<Arrival<'a>>,
}

impl Arrival<'_> {
    /// The string that the tag authenticates. The account comes last, since it may contain any character.
    fn tagged_text(&self) -> String {
        let Self { provider, outcome, entity, account, error } = self;
        let error = error.map(|code| format!(" {}", code.as_str())).unwrap_or_default();
        format!("outcome{error}\n{provider}\n{}\n{entity}\n{}", outcome.as_str(), account.unwrap_or_default())
    }

    /// The address of the page for this browser, in the admin panel at `panel`.
    pub(crate) fn address(&self, panel: &str, browser: &Browser) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("outcome", self.outcome.as_str()).append_pair("entity", self.entity);
        if let Some(account) = self.account {
            query.append_pair("account", account);
        }
        if let Some(error) = self.error {
            query.append_pair("error", error.as_str());
        }
        query.append_pair("proof", &browser.tag(&self.tagged_text()));
        format!("{panel}/provider/{}?{}", self.provider, query.finish())
    }
}

impl<'a> OutcomePage<'a> {
    /// Reads the page's query with `values`, which returns every value of a name. A malformed query proves nothing, but
    /// is not an error.
    pub fn read(provider: &'a ProviderName, values: impl Fn(&str) -> Vec<&'a str>, browser: Option<&Browser>) -> Self {
        let one = |name| match values(name).as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let outcome = one("outcome").and_then(AuthorizationOutcome::parse);
        let arrival = outcome.zip(one("entity")).map(|(outcome, entity)| {
            let account = one("account").filter(|account| !account.is_empty());
            Arrival { provider, outcome, entity, account, error: one("error").and_then(ErrorCode::parse) }
        });
        let tag = one("proof").unwrap_or_default();
        let proven =
            arrival.filter(|arrival| browser.is_some_and(|browser| browser.has_tagged(&arrival.tagged_text(), tag)));
        Self { provider, proven }
    }
}

/// The longest code that is repeated.
const LONGEST: usize = 64;

/// A provider's error code, such as `temporarily_unavailable`. The RFC allows nearly every visible character and any
/// length. A code that is repeated in an address, on a page and in the log must be a short name, like all registered
/// codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode<'a>(&'a str);

impl<'a> ErrorCode<'a> {
    /// Parses a code: up to 64 letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        (plain && (1..=LONGEST).contains(&text.len())).then_some(Self(text))
    }

    /// The code.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    fn stripe() -> ProviderName {
        ProviderName::parse("stripe").expect("a name")
    }

    fn read<'a>(
        provider: &'a ProviderName,
        said: &'a [(String, String)],
        browser: Option<&Browser>,
    ) -> OutcomePage<'a> {
        let values =
            |name: &str| said.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str()).collect();
        OutcomePage::read(provider, values, browser)
    }

    #[test]
    fn the_address_leads_to_the_page_that_says_the_outcome() {
        let provider = stripe();
        let browser = Browser::new(&SystemRandom);
        for outcome in AuthorizationOutcome::ALL {
            let entity = "demo-hotel";
            let account = Some("a&b c");
            let error = ErrorCode::parse("server_error");
            let arrival = Arrival { provider: &provider, outcome, entity, account, error };
            let address = arrival.address("https://panel.example.com/admin", &browser);
            let (path, query) = address.split_once('?').expect("a query");
            assert_eq!(path, "https://panel.example.com/admin/provider/stripe");
            let mut said: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let names: Vec<_> = said.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["outcome", "entity", "account", "error", "proof"]);
            assert_eq!(said[0].1, outcome.as_str());
            let proven = OutcomePage { provider: &provider, proven: Some(arrival) };
            assert_eq!(read(&provider, &said, Some(&browser)), proven);
            let unproven = OutcomePage { proven: None, ..proven };
            assert_eq!(read(&provider, &said, None), unproven);
            assert_eq!(read(&provider, &said, Some(&Browser::new(&SystemRandom))), unproven);
            for (place, value) in [(1, "other-hotel"), (0, "connected"), (0, "denied"), (3, "invalid_scope"), (3, "")] {
                let before = said[place].1.clone();
                if before != value {
                    said[place].1 = value.to_owned();
                    assert_eq!(read(&provider, &said, Some(&browser)).proven, None, "{value}");
                }
                said[place].1 = before;
            }
        }
    }

    #[test]
    fn an_unknown_or_unproven_outcome_shows_nothing() {
        let provider = stripe();
        for unknown in ["", "Connected", "<script>", "connected ", "connected", "failed"] {
            let said = [("outcome".to_owned(), unknown.to_owned())];
            let page = read(&provider, &said, None);
            assert_eq!(page, OutcomePage { provider: &provider, proven: None });
        }
    }

    #[test]
    fn only_a_short_name_is_repeated_as_a_code() {
        for good in ["access_denied", "temporarily_unavailable", "UNAUTHORIZED", "E-1.2", &"x".repeat(64)] {
            assert_eq!(ErrorCode::parse(good).map(ErrorCode::as_str), Some(good));
        }
        for bad in ["", " ", "a b", "<b>", "a&b=c", "https://x", "ä", "a\r\nb", "a%0d", &"x".repeat(65)] {
            assert_eq!(ErrorCode::parse(bad), None, "{bad}");
        }
    }
}
