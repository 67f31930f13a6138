//! The words for a person whose connection did not come about: what happened, to which managing entity and at which provider,
//! and what to do. Programs get the Problem without them.

use gate::Call;
use payments::{
    ConnectionError, Ended, ProviderName, builtin,
    callback::{CallbackError, CallbackFailure},
    panel::PanelSettings,
};
use problem::{Explanation, Link, Problem};

/// A person's words for the managing entity and the provider of a connection.
struct Named {
    entity: Option<String>,
    provider: String,
}

impl Named {
    /// `demo-hotel to Stripe`, or `to Stripe` where the entity is not known.
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

/// The provider's name, for people. A stranger can put any name into an address, so that only one that is built in counts
/// until the state has proven the address.
fn provider_name(call: &Call, is_proven: bool) -> String {
    let name = crate::provider(call);
    let known = name.as_ref().filter(|name: &&ProviderName| is_proven || builtin::find(name).is_some());
    known.map_or_else(|| "the payment provider".to_owned(), |name| builtin::label(name).to_owned())
}

/// The Problem of a callback that failed, with the words of its page.
pub fn of_callback(failure: CallbackFailure, call: &Call, panel: &PanelSettings) -> Problem {
    let provider = provider_name(call, failure.entity.is_some());
    let named = Named { provider, entity: failure.entity.as_ref().map(|entity| entity.as_str().to_owned()) };
    let explanation = explain_callback(&failure.error, &named);
    explained(failure.error.into(), explanation, panel)
}

/// A Problem with the words of its page, and a link to the admin panel where the deployment has one.
fn explained(problem: Problem, words: Option<Words>, panel: &PanelSettings) -> Problem {
    let Some((title, paragraphs)) = words else { return problem };
    let to_panel = || Link { address: panel.address.clone(), text: "Go to the admin panel".to_owned() };
    problem.explained(Explanation { title, paragraphs, link: (!panel.is_own).then(to_panel) })
}

/// The Problem of a start page that was not shown, with the words of its page.
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
    let (connecting, provider) = (named.connecting(), &named.provider);
    let again = format!("Begin again: ask for a new link to connect {connecting}. The one that you used works once.");
    Some(match error {
        CallbackError::InvalidState(_) => invalid(),
        CallbackError::Ended(why) => ended(*why, named),
        // A browser sends no token, so that a program sees this.
        CallbackError::EntityNotCovered => return None,
        CallbackError::Read(_) | CallbackError::Provider(_) | CallbackError::Seal(_) | CallbackError::TooSlow => (
            "Please try once more".to_owned(),
            vec![
                format!("Something on our side did not answer when we were about to connect {connecting}."),
                "Nothing is lost, and nothing is connected yet. Wait a few seconds and reload this page.".to_owned(),
            ],
        ),
        CallbackError::Spend(_) => (
            "Not connected".to_owned(),
            vec![
                format!(
                    "Something on our side failed when we were about to connect {connecting}. Nothing was connected."
                ),
                again,
            ],
        ),
        CallbackError::Exchange(error) if error.is_our_client() => (
            "Not connected".to_owned(),
            vec![
                format!(
                    "You gave your permission, but {provider} does not accept this service, which is set up wrongly there. \
                     Nothing was connected for {}, and trying again does not help.",
                    named.entity()
                ),
                format!(
                    "Tell those who sent you here, so that the operator of this service corrects its credentials at \
                     {provider}. Ask for a new link then."
                ),
            ],
        ),
        CallbackError::Exchange(error) => {
            let mut said = vec![
                format!(
                    "You gave your permission, but {provider} did not complete the connection. Nothing was connected for {}.",
                    named.entity()
                ),
                again,
            ];
            said.extend(error.may_have_granted().then(|| may_stand(provider)));
            said.push(format!(
                "If it keeps failing, tell those who sent you here that {provider} refuses or does not answer."
            ));
            ("Not connected".to_owned(), said)
        }
        CallbackError::Keep(_) | CallbackError::Late => (
            "Perhaps not connected".to_owned(),
            vec![
                format!(
                    "{provider} was asked to connect {}, but we could not finish in time what belongs to it.",
                    named.entity()
                ),
                format!(
                    "The list of connections says in a minute whether {provider} is connected. If it is not there, ask for a \
                     new link and begin again. The one that you used works once."
                ),
                may_stand(provider),
            ],
        ),
    })
}

/// The access that the provider may have given although it did not come to a connection. This service has no token of it,
/// so that only the person can withdraw it.
fn may_stand(provider: &str) -> String {
    format!(
        "The settings of your account at {provider} may show the access all the same, among the applications that are \
         connected. If you do not connect again, withdraw it there."
    )
}

fn invalid() -> Words {
    (
        "This link is not valid".to_owned(),
        vec![
            "The link that brought you here is not valid, or not any more, or you began in another browser. Nothing was \
             connected by it now."
                .to_owned(),
            "Begin again: ask for a new link, and stay in one browser, with cookies allowed, until you are back.".to_owned(),
        ],
    )
}

fn ended(why: Ended, named: &Named) -> Words {
    let (connecting, provider) = (named.connecting(), &named.provider);
    match why {
        Ended::Expired => (
            "This link has expired".to_owned(),
            vec![
                format!(
                    "The link to connect {connecting} was good for ten minutes, which are over. Nothing was connected by it."
                ),
                "Begin again: ask for a new link.".to_owned(),
            ],
        ),
        Ended::Spent => (
            "This link was used already".to_owned(),
            vec![
                format!(
                    "The link to connect {connecting} works once, and was used before; perhaps this page was reloaded."
                ),
                format!(
                    "The list of connections says whether {provider} is connected. If it is not there, ask for a new link and \
                     begin again."
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
    fn a_failure_is_told_with_entity_provider_and_what_to_do() {
        for (error, parts) in [
            (CallbackError::Ended(Ended::Expired), ["expired", "ten minutes", "ask for a new link"]),
            (CallbackError::Ended(Ended::Spent), ["used already", "list of connections", "ask for a new link"]),
            (CallbackError::TooSlow, ["once more", "Nothing is lost", "reload this page"]),
            (CallbackError::Late, ["Perhaps", "in a minute", "withdraw it there"]),
        ] {
            let said = said(explain_callback(&error, &named()));
            for part in parts.into_iter().chain(["demo-hotel", "Stripe"]) {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }

    #[test]
    fn every_page_of_a_failure_leads_to_the_panel_of_the_deployment_and_not_to_our_own() {
        let link = |is_own| {
            let panel = PanelSettings { address: "https://panel.example.com".into(), is_own };
            explained(Problem::not_json(), Some(invalid()), &panel).explanation.expect("words").link
        };
        assert_eq!(link(true), None);
        assert_eq!(link(false).expect("a link").address, "https://panel.example.com");
    }

    #[test]
    fn a_strangers_state_is_told_without_entity_and_provider() {
        let said = said(explain_callback(&CallbackError::InvalidState(StateFault::NoCookie), &named()));
        assert!(
            !said.contains("demo-hotel") && !said.contains("Stripe") && said.contains("ask for a new link"),
            "{said}"
        );
        assert!(explain_callback(&CallbackError::EntityNotCovered, &named()).is_none());
    }
}
