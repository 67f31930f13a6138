//! The page that a person lands on who comes back from a provider: it says the outcome in words.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY};

use super::{PROVIDER_PARAMETER, ProviderName, builtin};
use crate::http::{
    Call, Problem, Reply,
    page::{self, escaped},
};

/// How a person came back from a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With the permission, and the connection stands.
    Connected,
    /// The person declined.
    Denied,
    /// The provider could not do it.
    Failed,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Connected, Self::Denied, Self::Failed];

    /// The outcome as it stands in the page's address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// The address of the page, in the admin panel that stands at `panel`.
pub(super) fn address(panel: &str, provider: &ProviderName, outcome: Outcome) -> String {
    format!("{panel}/provider/{provider}?outcome={}", outcome.as_str())
}

/// Answers a request for the page. Whatever stands in its address, it changes nothing and says nothing but the outcome.
pub fn reply(call: &Call) -> Result<Reply, Problem> {
    let provider =
        ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::no_route(call.whole_path()))?;
    let outcome = match call.query("outcome").as_slice() {
        [one] => Outcome::parse(one),
        _ => None,
    };
    Ok(Reply::ok_text("text/html; charset=utf-8", html(&provider, outcome))
        .with_header(CACHE_CONTROL, "no-store")
        .with_header(REFERRER_POLICY, "no-referrer")
        .with_header(CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"))
}

fn html(provider: &ProviderName, outcome: Option<Outcome>) -> String {
    let name = escaped(builtin::find(provider).map_or(provider.as_str(), |known| &known.label));
    let (title, text) = match outcome {
        Some(Outcome::Connected) => {
            ("Connected", format!("Your account at <strong>{name}</strong> is connected. You can close this page."))
        }
        Some(Outcome::Denied) => (
            "Not connected",
            format!(
                "You did not give the permission at <strong>{name}</strong>, so nothing was connected. \
                 You can connect again whenever you like."
            ),
        ),
        Some(Outcome::Failed) => (
            "Not connected",
            format!(
                "<strong>{name}</strong> could not give the permission, so nothing was connected. \
                 Try again in a while; if it keeps failing, ask the provider's support."
            ),
        ),
        None => (
            "Payment provider",
            format!(
                "You came back from <strong>{name}</strong>. The list of connections says whether it is connected."
            ),
        ),
    };
    page::html(title, &format!("<p>{text}</p>\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripe() -> ProviderName {
        ProviderName::parse("stripe").expect("a name")
    }

    #[test]
    fn the_page_says_each_outcome_and_nothing_of_an_unknown_one() {
        let page = |outcome| html(&stripe(), Outcome::parse(outcome));
        assert!(page("connected").contains("<strong>Stripe</strong> is connected"));
        assert!(page("denied").contains("You did not give the permission"));
        assert!(page("failed").contains("could not give the permission"));
        for unknown in ["", "Connected", "<script>", "connected "] {
            let page = page(unknown);
            assert!(
                page.contains("You came back from")
                    && !page.contains("script")
                    && !page.contains("</strong> is connected")
            );
        }
    }

    #[test]
    fn the_address_leads_to_the_page_that_says_the_outcome() {
        for outcome in Outcome::ALL {
            let address = address("https://panel.example.com/admin", &stripe(), outcome);
            let (path, said) = address.split_once("?outcome=").expect("an outcome");
            assert_eq!(path, "https://panel.example.com/admin/provider/stripe");
            assert_eq!(Outcome::parse(said), Some(outcome));
        }
    }
}
