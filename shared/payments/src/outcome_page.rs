//! The page that a person lands on who comes back from a provider: it says the outcome in words.
//!
//! Its address says how a person came back, and a tag that only the browser's own cookie makes proves it. Without the proof
//! the page names no entity and no account, so that a stranger cannot put words of theirs on a page of ours.

use form_urlencoded::Serializer;
use http::header::CACHE_CONTROL;

use super::{PROVIDER_PARAMETER, ProviderName, browser::Browser, builtin};
use gate::{
    Call, Reply,
    page::{self, escaped},
};
use problem::Problem;

/// How a person came back from a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With the permission, and the connection stands.
    Connected,
    /// The person declined.
    Denied,
    /// The provider could not do it.
    Failed,
    /// With the permission for an account that may not replace the one that is connected.
    OtherAccount,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Connected, Self::Denied, Self::Failed, Self::OtherAccount];

    /// The outcome as it stands in the page's address.
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

/// Who came back from where, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub(super) provider: &'a ProviderName,
    pub(super) outcome: Outcome,
    /// The managing entity.
    pub(super) entity: &'a str,
    /// The account that the person chose, where the provider names it.
    pub(super) account: Option<&'a str>,
}

impl Arrival<'_> {
    /// What the browser is told. The account comes last, since it is the one part that may have anything in it.
    fn told(&self) -> String {
        let Self { provider, outcome, entity, account } = self;
        format!("outcome\n{provider}\n{}\n{entity}\n{}", outcome.as_str(), account.unwrap_or_default())
    }
}

/// The address of the page, in the admin panel that stands at `panel`, for this browser.
pub(super) fn address(panel: &str, arrival: &Arrival<'_>, browser: &Browser) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("outcome", arrival.outcome.as_str()).append_pair("entity", arrival.entity);
    if let Some(account) = arrival.account {
        query.append_pair("account", account);
    }
    query.append_pair("proof", &browser.tag(&arrival.told()));
    format!("{panel}/provider/{}?{}", arrival.provider, query.finish())
}

/// Answers a request for the page. Whatever stands in its address, it changes nothing.
pub fn reply(call: &Call) -> Result<Reply, Problem> {
    let provider =
        ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::no_route(call.whole_path()))?;
    let one = |name| match call.query(name).as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let outcome = one("outcome").and_then(Outcome::parse);
    let arrival = outcome.zip(one("entity")).map(|(outcome, entity)| {
        let account = one("account").filter(|account| !account.is_empty());
        Arrival { provider: &provider, outcome, entity, account }
    });
    let proven = arrival.filter(|arrival| {
        let tag = one("proof").unwrap_or_default();
        Browser::of(call.headers()).is_some_and(|browser| browser.was_told(&arrival.told(), tag))
    });
    Ok(page::reply(html(&provider, outcome, proven)).with_header(CACHE_CONTROL, "no-store"))
}

fn html(provider: &ProviderName, outcome: Option<Outcome>, proven: Option<Arrival<'_>>) -> String {
    let name = escaped(builtin::find(provider).map_or(provider.as_str(), |known| &known.label));
    let strong = |text: &str| format!(" <strong>{}</strong>", escaped(text));
    let account = proven.and_then(|arrival| arrival.account).map(strong).unwrap_or_default();
    let entity = proven.map(|arrival| strong(arrival.entity));
    let to = entity.as_ref().map(|entity| format!(" to{entity}")).unwrap_or_default();
    let (title, text) = match outcome {
        Some(Outcome::Connected) => (
            "Connected",
            format!("Your account{account} at <strong>{name}</strong> is connected{to}. You can close this page."),
        ),
        Some(Outcome::Denied) => (
            "Not connected",
            format!(
                "You did not give the permission at <strong>{name}</strong>, so nothing was connected{to}. \
                 You can connect again whenever you like."
            ),
        ),
        Some(Outcome::Failed) => (
            "Not connected",
            format!(
                "<strong>{name}</strong> could not give the permission, so nothing was connected{to}. \
                 Try again in a while; if it keeps failing, ask the provider's support."
            ),
        ),
        Some(Outcome::OtherAccount) => (
            "Not connected",
            format!(
                "Your account{account} at <strong>{name}</strong> was not connected, since{who} is connected to another account \
                 there, which stays. To put this account in its place, connect again and say that it may replace the other. \
                 If the settings of this account still show the access, withdraw it there.",
                who = entity.as_deref().unwrap_or(" the managing entity")
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
    use base::random::SystemRandom;

    fn stripe() -> ProviderName {
        ProviderName::parse("stripe").expect("a name")
    }

    #[test]
    fn the_page_says_each_outcome_and_nothing_of_an_unknown_one() {
        let page = |outcome| html(&stripe(), Outcome::parse(outcome), None);
        assert!(page("connected").contains("<strong>Stripe</strong> is connected"));
        assert!(page("denied").contains("You did not give the permission"));
        assert!(page("failed").contains("could not give the permission"));
        assert!(page("other-account").contains("is connected to another account"));
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
    fn what_is_proven_is_named_and_is_no_markup() {
        let (provider, account) = (stripe(), Some("<i>acct_1"));
        for outcome in Outcome::ALL {
            let arrival = Arrival { provider: &provider, outcome, entity: "demo-hotel", account };
            let page = html(&provider, Some(outcome), Some(arrival));
            assert!(page.contains("<strong>demo-hotel</strong>") && !page.contains("<i>"), "{page}");
            let names_account = matches!(outcome, Outcome::Connected | Outcome::OtherAccount);
            assert_eq!(page.contains("<strong>&lt;i&gt;acct_1</strong>"), names_account, "{page}");
            assert!(!page.contains("  ") && !html(&provider, Some(outcome), None).contains("  "), "{page}");
        }
    }

    #[test]
    fn the_address_leads_to_the_page_that_says_the_outcome() {
        let (provider, browser) = (stripe(), Browser::new(&SystemRandom));
        for outcome in Outcome::ALL {
            let arrival = Arrival { provider: &provider, outcome, entity: "demo-hotel", account: Some("a&b c") };
            let address = address("https://panel.example.com/admin", &arrival, &browser);
            let (path, said) = address.split_once('?').expect("a query");
            assert_eq!(path, "https://panel.example.com/admin/provider/stripe");
            let said: Vec<(String, String)> = form_urlencoded::parse(said.as_bytes()).into_owned().collect();
            let said: Vec<(&str, &str)> = said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let proof = browser.tag(&arrival.told());
            let expected =
                [("outcome", outcome.as_str()), ("entity", "demo-hotel"), ("account", "a&b c"), ("proof", &proof)];
            assert_eq!(said, expected);
            assert_eq!(Outcome::parse(said[0].1), Some(outcome));
        }
    }
}
