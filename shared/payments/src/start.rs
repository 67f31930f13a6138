//! The page from which a person goes on to the provider. It names the managing entity before the person agrees to
//! anything.
//!
//! Without it, a stranger could have a victim complete the stranger's own connection (RFC 9700 §4.7), and take the
//! victim's account. So the browser that goes on from this page is remembered with the state, and the callback takes no
//! other:
//!
//! - a stranger who sends the provider's address to a victim sends a browser that went on from nowhere;
//! - a stranger who sends this page to a victim shows the victim that it is a stranger's entity;
//! - a stranger's page that opens this one out of sight cannot go on from it: the link has a tag that only this
//!   browser's cookie makes, and that only the page itself shows. It stands in no frame, so a click on it is not stolen
//!   there.
//!
//! A state may be opened in several browsers; the last one that goes on is the one that can come back. Opening the page
//! changes nothing.

use crate::{
    authorization_url::with_state,
    browser::Browser,
    callback_query::single,
    error::ConnectionError,
    pending::{PendingAuthorization, PendingAuthorizations},
    provider::ProviderName,
    state::{Ended, State, StateFault},
};
use base::{SharedClock, SharedRandom};
use problem::{Problem, Violations};

/// Everything that the page needs. It has no secret: anyone with a state can call it.
pub struct Start {
    /// The authorizations that were asked for.
    pub pending: PendingAuthorizations,
    /// Tells the time.
    pub clock: SharedClock,
    /// Makes new browsers' cookies.
    pub random: SharedRandom,
}

/// The query of the page's address. It has no `Debug`, since a state is a secret.
pub struct StartQuery<'a> {
    state: &'a str,
    /// The tag of the page's own link.
    tag: Option<&'a str>,
}

/// The answer to a browser that opens the address.
pub enum Opened {
    /// The page is shown.
    Page(Box<StartPage>),
    /// The browser used the page's link and goes on to this address at the provider.
    GoOn(String),
}

/// The content of the page.
pub struct StartPage {
    /// The authorization that the person is asked for.
    pub pending: PendingAuthorization,
    /// The link that leads on, relative to the page.
    pub link: String,
    /// Whether the link was used, and did not lead on.
    pub came_back: bool,
    /// The browser that sees the page. Its cookie is set each time, so that it lasts as long as the state.
    pub browser: Browser,
}

impl<'a> StartQuery<'a> {
    /// Reads the query with `values`, which gives every value of a name.
    pub fn read(values: impl Fn(&str) -> Vec<&'a str>) -> Result<Self, Problem> {
        let mut violations = Violations::default();
        let state = single("state", &values("state"), true, &mut violations);
        let tag = single("go", &values("go"), false, &mut violations);
        violations.check()?;
        // A state that is missing is a violation; this one is no state.
        Ok(Self { state: state.unwrap_or_default(), tag })
    }
}

/// The address of the page.
pub(crate) fn address(base_url: &str, provider: &ProviderName, state: &State) -> String {
    format!("{base_url}/api/public/{provider}/oauth2/start?state={}", state.expose())
}

/// The text that the tag in the page's link is made of.
fn tagged_text(state: &State) -> String {
    format!("start\n{}", state.expose())
}

impl Start {
    /// Shows the page to a browser, or leads it on to the provider.
    pub async fn open(
        &self,
        provider: &ProviderName,
        query: &StartQuery<'_>,
        browser: Option<Browser>,
    ) -> Result<Opened, ConnectionError> {
        let state = State::parse(query.state).ok_or(StateFault::Malformed)?;
        let pending = self.pending.find(&state, provider).await??;
        // Who has the state has seen whose connection it was to be: the page said it.
        if let Some(why) = pending.ended(self.clock.now()) {
            return Err(ConnectionError::Ended { why, entity: pending.entity });
        }
        match (query.tag, &browser) {
            (Some(tag), Some(browser)) if browser.has_tagged(&tagged_text(&state), tag) => {
                self.go_on(&state, &pending, browser).await.map(Opened::GoOn)
            }
            _ => {
                let browser = browser.unwrap_or_else(|| Browser::new(&*self.random));
                let link = format!("start?state={}&go={}", state.expose(), browser.tag(&tagged_text(&state)));
                let came_back = query.tag.is_some();
                Ok(Opened::Page(Box::new(StartPage { pending, link, came_back, browser })))
            }
        }
    }

    async fn go_on(
        &self,
        state: &State,
        pending: &PendingAuthorization,
        browser: &Browser,
    ) -> Result<String, ConnectionError> {
        let now = self.clock.now();
        let bound =
            pending.is_of(browser) || self.pending.bind(state, &pending.provider, browser, now).await?.is_done();
        if !bound {
            // It was good a moment ago.
            return Err(StateFault::Ended(pending.ended(now).unwrap_or(Ended::Spent)).into());
        }
        let address = with_state(&pending.onward.authorization_url, state)?;
        tracing::info!(entity = %pending.entity, provider = %pending.provider, "sent on to a provider");
        Ok(address.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    #[test]
    fn the_address_has_the_state_where_clients_look_for_it() {
        let state = State::new(&SystemRandom);
        let name = ProviderName::parse("pay-2-go").expect("a name");
        let address = address("https://api.example.com", &name, &state);
        let expected = "https://api.example.com/api/public/pay-2-go/oauth2/start?state=";
        assert_eq!(address.strip_prefix(expected), Some(state.expose()));
    }
}
