//! The page for a person who comes back from a provider, as HTML: it says the outcome in words.

use gate::{
    Reply,
    page::{self, escaped},
};
use payments::{AuthorizationOutcome, builtin, outcome_address::OutcomePage};

/// The page.
pub fn reply(page: &OutcomePage<'_>) -> Reply {
    page::reply(html(page)).uncached()
}

fn html(&OutcomePage { provider, outcome, proven }: &OutcomePage<'_>) -> String {
    let name = escaped(builtin::label(provider));
    let strong = |text: &str| format!(" <strong>{}</strong>", escaped(text));
    let account = proven.and_then(|arrival| arrival.account).map(strong).unwrap_or_default();
    let entity = proven.map(|arrival| strong(arrival.entity));
    let to = entity.as_ref().map(|entity| format!(" to{entity}")).unwrap_or_default();
    let (title, text) = match outcome {
        Some(AuthorizationOutcome::Connected) => (
            "Connected",
            format!("Your account{account} at <strong>{name}</strong> is connected{to}. You can close this page."),
        ),
        Some(AuthorizationOutcome::Denied) => (
            "Not connected",
            format!(
                "You did not give the permission at <strong>{name}</strong>, so nothing was connected{to}. \
                 You can connect again whenever you like."
            ),
        ),
        Some(AuthorizationOutcome::Failed) => (
            "Not connected",
            format!(
                "<strong>{name}</strong> could not give the permission, so nothing was connected{to}. \
                 Try again in a while; if it keeps failing, ask the provider's support."
            ),
        ),
        Some(AuthorizationOutcome::OtherAccount) => (
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
    use payments::{ProviderName, outcome_address::Arrival};

    fn stripe() -> ProviderName {
        ProviderName::parse("stripe").expect("a name")
    }

    #[test]
    fn the_page_says_each_outcome_and_none_without_one() {
        let provider = stripe();
        let page = |outcome| html(&OutcomePage { provider: &provider, outcome, proven: None });
        for (outcome, sentence) in [
            (AuthorizationOutcome::Connected, "<strong>Stripe</strong> is connected"),
            (AuthorizationOutcome::Denied, "You did not give the permission"),
            (AuthorizationOutcome::Failed, "could not give the permission"),
            (AuthorizationOutcome::OtherAccount, "is connected to another account"),
        ] {
            assert!(page(Some(outcome)).contains(sentence), "{sentence}");
        }
        let none = page(None);
        assert!(none.contains("You came back from") && !none.contains("</strong> is connected"));
    }

    #[test]
    fn a_proven_entity_and_account_are_named_and_never_become_markup() {
        let provider = stripe();
        for outcome in AuthorizationOutcome::ALL {
            let arrival = Arrival { provider: &provider, outcome, entity: "demo-hotel", account: Some("<i>acct_1") };
            let proven = OutcomePage { provider: &provider, outcome: Some(outcome), proven: Some(arrival) };
            let page = html(&proven);
            assert!(page.contains("<strong>demo-hotel</strong>") && !page.contains("<i>"), "{page}");
            let names_account = matches!(outcome, AuthorizationOutcome::Connected | AuthorizationOutcome::OtherAccount);
            assert_eq!(page.contains("<strong>&lt;i&gt;acct_1</strong>"), names_account, "{page}");
            let unproven = html(&OutcomePage { proven: None, ..proven });
            assert!(!page.contains("  ") && !unproven.contains("  "), "{page}");
        }
    }
}
