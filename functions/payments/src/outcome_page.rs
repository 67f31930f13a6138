//! The page for a person who returns from a provider, as HTML: it describes the outcome in words.

use form_urlencoded::Serializer;
use gate::{
    Reply,
    page::{self, escaped},
};
use payments::{
    AuthorizationOutcome, ProviderName, builtin,
    outcome_address::{Arrival, OutcomePage},
};

/// The page.
pub fn reply(page: &OutcomePage<'_>) -> Reply {
    page::reply(html(page)).uncached()
}

fn html(page: &OutcomePage<'_>) -> String {
    let Some(arrival) = page.proven else { return unproven(page.provider) };
    let provider = page.provider;
    let name = escaped(builtin::label(provider));
    let strong = |text: &str| format!("<strong>{}</strong>", escaped(text));
    let entity = strong(arrival.entity);
    let code = arrival.error.map(|code| format!("<code>{}</code>", escaped(code.as_str())));
    let said = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    let mention = if code.is_some() { " and mention this code" } else { "" };
    let account = arrival.account.map(|account| format!(" {}", strong(account))).unwrap_or_default();
    let (title, text) = match arrival.outcome {
        AuthorizationOutcome::Connected => (
            "Connected",
            format!("Your <strong>{name}</strong> account{account} is connected to {entity}. You can close this page."),
        ),
        AuthorizationOutcome::Denied => (
            "Not connected",
            format!(
                "You did not allow access at <strong>{name}</strong>, so nothing was connected to {entity}. \
                 You can connect at any time."
            ),
        ),
        AuthorizationOutcome::Failed => (
            "Not connected",
            format!(
                "<strong>{name}</strong> reported an error{said}, so nothing was connected to {entity}. \
                 Try again later. If it fails again, contact the person who gave you the link{mention}."
            ),
        ),
        AuthorizationOutcome::OtherAccount => (
            "Not connected",
            format!(
                "Your <strong>{name}</strong> account{account} was not connected. {entity} is already connected to \
                 another account there, and stays connected to it. To replace that account with yours, connect again \
                 and confirm the replacement. If you keep it, and your account's settings there list this service, \
                 remove it there."
            ),
        ),
    };
    page::html(title, &format!("<p>{text}</p>\n{}", to_panel(&in_panel(&arrival))))
}

/// The address of the panel's list of connections. It contains only the outcome; the panel loads the connections.
fn in_panel(arrival: &Arrival<'_>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("outcome", arrival.outcome.as_str()).append_pair("provider", arrival.provider.as_str());
    if let Some(error) = arrival.error {
        query.append_pair("error", error.as_str());
    }
    format!("/panel/providers?{}", query.finish())
}

fn to_panel(address: &str) -> String {
    format!("<p><a class=\"button\" href=\"{}\">Go to the panel</a></p>\n", escaped(address))
}

/// The page for an unproven address, which may be forged or opened again later. It repeats nothing from the address
/// except a built-in provider's name.
fn unproven(provider: &ProviderName) -> String {
    let name = builtin::find(provider).map_or("your payment provider", |known| &known.label);
    page::html(
        "Payment provider",
        &format!(
            "<p>This page shows a result only in the browser that came back from the provider, and only for a few minutes. To \
             see whether <strong>{}</strong> is connected, check the list of connections in the panel.</p>\n{}",
            escaped(name),
            to_panel("/panel/providers")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use payments::ErrorCode;

    fn name(text: &str) -> ProviderName {
        ProviderName::parse(text).expect("a name")
    }

    fn page(provider: &ProviderName, outcome: AuthorizationOutcome, account: Option<&str>) -> String {
        let error = ErrorCode::parse("temporarily_unavailable");
        let arrival = Arrival { provider, outcome, entity: "demo-hotel", account, error };
        html(&OutcomePage { provider, proven: Some(arrival) })
    }

    #[test]
    fn the_page_shows_each_proven_outcome() {
        let stripe = name("stripe");
        for (outcome, sentence) in [
            (
                AuthorizationOutcome::Connected,
                "Your <strong>Stripe</strong> account is connected to <strong>demo-hotel</strong>",
            ),
            (AuthorizationOutcome::Denied, "You did not allow access at <strong>Stripe</strong>"),
            (AuthorizationOutcome::Failed, "reported an error (<code>temporarily_unavailable</code>)"),
            (
                AuthorizationOutcome::OtherAccount,
                "was not connected. <strong>demo-hotel</strong> is already connected to another account",
            ),
        ] {
            assert!(page(&stripe, outcome, None).contains(sentence), "{sentence}");
        }
    }

    #[test]
    fn an_unproven_address_shows_no_outcome() {
        let page = |text: &str| html(&OutcomePage { provider: &name(text), proven: None });
        let known = page("stripe");
        assert!(known.contains("<strong>Stripe</strong>") && known.contains("list of connections"), "{known}");
        for word in ["Connected", "is connected to", "Not connected", "permission"] {
            assert!(!known.contains(word), "{word}: {known}");
        }
        assert!(!page("call-0900-for-help").contains("0900"), "an unknown name may be a stranger's text");
    }

    #[test]
    fn the_page_links_to_the_panel_with_the_proven_outcome_only() {
        let stripe = name("stripe");
        let proven = page(&stripe, AuthorizationOutcome::Denied, Some("acct_1"));
        let address = "/panel/providers?outcome=denied&amp;provider=stripe&amp;error=temporarily_unavailable";
        assert!(proven.contains(&format!("href=\"{address}\"")), "{proven}");
        let unproven = html(&OutcomePage { provider: &stripe, proven: None });
        assert!(unproven.contains("href=\"/panel/providers\""), "{unproven}");
    }

    #[test]
    fn entity_and_account_never_become_markup() {
        let stripe = name("stripe");
        for outcome in AuthorizationOutcome::ALL {
            let page = page(&stripe, outcome, Some("<i>acct_1"));
            assert!(page.contains("<strong>demo-hotel</strong>") && !page.contains("<i>"), "{page}");
            let names_account = matches!(outcome, AuthorizationOutcome::Connected | AuthorizationOutcome::OtherAccount);
            assert_eq!(page.contains("<strong>&lt;i&gt;acct_1</strong>"), names_account, "{page}");
        }
    }
}
