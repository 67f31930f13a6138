//! The explanation for a person whose connection failed: the failure, the managing entity, the provider, and the next
//! step. Programs get the Problem without it.

use gate::Call;
use payments::{
    ConnectionError, Ended, ProviderName, builtin,
    callback::{CallbackError, CallbackFailure},
    panel::PanelSettings,
};
use problem::{Explanation, Link, Problem};

/// The display names of a connection's managing entity and provider.
struct Named {
    entity: Option<String>,
    provider: String,
}

impl Named {
    /// `demo-hotel to Stripe`, or `to Stripe` if the entity is unknown.
    fn connecting(&self) -> String {
        match &self.entity {
            Some(entity) => format!("{entity} to {}", self.provider),
            None => format!("to {}", self.provider),
        }
    }

    fn entity(&self) -> &str {
        self.entity.as_deref().unwrap_or("the managing entity")
    }
}

/// The provider's display name. Anyone can forge an address, so only built-in names are shown until the state has
/// proven it.
fn provider_name(call: &Call, is_proven: bool) -> String {
    let name = crate::provider(call);
    let known = name.as_ref().filter(|name: &&ProviderName| is_proven || builtin::find(name).is_some());
    known.map_or_else(|| "the payment provider".to_owned(), |name| builtin::label(name).to_owned())
}

/// The Problem of a failed callback, with the explanation for its page.
pub fn of_callback(failure: CallbackFailure, call: &Call, panel: &PanelSettings) -> Problem {
    let provider = provider_name(call, failure.entity.is_some());
    let named = Named { provider, entity: failure.entity.as_ref().map(|entity| entity.as_str().to_owned()) };
    let explanation = explain_callback(&failure.error, &named);
    explained(failure.error.into(), explanation, panel)
}

/// A Problem with the explanation for its page, and a link to the admin panel if the deployment has one.
fn explained(problem: Problem, words: Option<Words>, panel: &PanelSettings) -> Problem {
    let Some((title, paragraphs)) = words else { return problem };
    let to_panel = || Link { address: panel.address.clone(), text: "Go to the admin panel".to_owned() };
    problem.explained(Explanation { title, paragraphs, link: (!panel.is_own).then(to_panel) })
}

/// The Problem of a refused start page, with the explanation for its page.
pub fn of_start(error: ConnectionError, call: &Call, panel: &PanelSettings) -> Problem {
    let entity = match &error {
        ConnectionError::Ended { entity, .. } => Some(entity.as_str().to_owned()),
        _ => None,
    };
    let named = Named { provider: provider_name(call, entity.is_some()), entity };
    let explanation = match &error {
        ConnectionError::InvalidState(_) => Some(invalid()),
        ConnectionError::Ended { why, .. } => Some(ended(*why, &named)),
        _ => None,
    };
    explained(error.into(), explanation, panel)
}

/// Title and paragraphs.
type Words = (String, Vec<String>);

fn explain_callback(error: &CallbackError, named: &Named) -> Option<Words> {
    let connecting = named.connecting();
    let provider = &named.provider;
    let again = format!("To try again, ask for a new link to connect {connecting}. Each link works only once.");
    Some(match error {
        CallbackError::InvalidState(_) => invalid(),
        CallbackError::Ended(why) => ended(*why, named),
        // Only a program gets this error, since a browser sends no token.
        CallbackError::EntityNotCovered => return None,
        CallbackError::Read(_) | CallbackError::Provider(_) | CallbackError::Seal(_) | CallbackError::TooSlow => (
            "Please try again".to_owned(),
            vec![
                format!("This service could not finish connecting {connecting}."),
                "Nothing is lost, and nothing is connected yet. Wait a few seconds, then reload this page.".to_owned(),
            ],
        ),
        CallbackError::Spend(_) => (
            "Not connected".to_owned(),
            vec![format!("This service failed while connecting {connecting}. Nothing was connected."), again],
        ),
        CallbackError::Exchange(error) if error.is_our_client() => (
            "Not connected".to_owned(),
            vec![
                format!(
                    "You allowed access, but {provider} rejected this service's credentials. Nothing was connected for \
                     {}.",
                    named.entity()
                ),
                format!(
                    "Contact the person who gave you the link. This service's operator must correct its credentials at \
                     {provider} before you can connect. Then ask for a new link."
                ),
            ],
        ),
        CallbackError::Exchange(error) => {
            let mut said = vec![
                format!(
                    "You allowed access, but {provider} did not complete the connection. Nothing was connected for {}.",
                    named.entity()
                ),
                again,
            ];
            said.extend(error.may_have_granted().then(|| access_may_remain(provider)));
            said.push(format!(
                "If it fails again, contact the person who gave you the link, and say that {provider} did not complete the \
                 connection."
            ));
            ("Not connected".to_owned(), said)
        }
        CallbackError::Keep(_) | CallbackError::Late => (
            "Connection not confirmed".to_owned(),
            vec![
                format!(
                    "You allowed access, but this service could not confirm in time that {} is connected to \
                     {provider}.",
                    named.entity()
                ),
                format!(
                    "Check the list of connections in a minute. If {provider} is not there, ask for a new link and \
                     start again. Each link works only once."
                ),
                access_may_remain(provider),
            ],
        ),
    })
}

/// Warns that the provider may have granted access without a connection. Only the person can withdraw the access, since
/// this service has no token for it.
fn access_may_remain(provider: &str) -> String {
    format!(
        "Your account settings at {provider} may list this service as a connected application. If you do not connect \
         again, remove it there."
    )
}

fn invalid() -> Words {
    (
        "This link is not valid".to_owned(),
        vec![
            "The link is invalid or incomplete, or you started in another browser. Nothing was connected this time."
                .to_owned(),
            "To try again, ask for a new link. Allow cookies, and stay in the same browser until you are back."
                .to_owned(),
        ],
    )
}

fn ended(why: Ended, named: &Named) -> Words {
    let connecting = named.connecting();
    let provider = &named.provider;
    match why {
        Ended::Expired => (
            "This link has expired".to_owned(),
            vec![
                format!(
                    "The link to connect {connecting} was valid for ten minutes and has expired. Nothing was connected."
                ),
                "To try again, ask for a new link.".to_owned(),
            ],
        ),
        Ended::Spent => (
            "This link has already been used".to_owned(),
            vec![
                format!(
                    "The link to connect {connecting} works only once, and has already been used. You may have \
                     reloaded this page."
                ),
                format!(
                    "Check the list of connections. If {provider} is not there, ask for a new link and start again."
                ),
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use payments::StateFault;

    fn named() -> Named {
        Named { entity: Some("demo-hotel".into()), provider: "Stripe".into() }
    }

    fn said(words: Option<Words>) -> String {
        let (title, paragraphs) = words.expect("words");
        format!("{title}: {}", paragraphs.join(" "))
    }

    #[test]
    fn a_failure_names_the_entity_the_provider_and_the_remedy() {
        for (error, parts) in [
            (CallbackError::Ended(Ended::Expired), ["expired", "ten minutes", "ask for a new link"]),
            (CallbackError::Ended(Ended::Spent), ["already been used", "list of connections", "ask for a new link"]),
            (CallbackError::TooSlow, ["try again", "Nothing is lost", "reload this page"]),
            (CallbackError::Late, ["not confirmed", "in a minute", "remove it there"]),
        ] {
            let said = said(explain_callback(&error, &named()));
            for part in parts.into_iter().chain(["demo-hotel", "Stripe"]) {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }

    #[test]
    fn every_failure_page_links_only_to_a_separate_panel() {
        let link = |is_own| {
            let panel = PanelSettings { address: "https://panel.example.com".into(), is_own };
            explained(Problem::not_json(), Some(invalid()), &panel).explanation.expect("words").link
        };
        assert_eq!(link(true), None);
        assert_eq!(link(false).expect("a link").address, "https://panel.example.com");
    }

    #[test]
    fn an_unproven_state_reveals_no_entity_and_no_provider() {
        let said = said(explain_callback(&CallbackError::InvalidState(StateFault::NoCookie), &named()));
        assert!(
            !said.contains("demo-hotel") && !said.contains("Stripe") && said.contains("ask for a new link"),
            "{said}"
        );
        assert!(explain_callback(&CallbackError::EntityNotCovered, &named()).is_none());
    }
}
