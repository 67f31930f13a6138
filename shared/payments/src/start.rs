//! The start page, which names the managing entity before a person continues to the provider.
//!
//! Without it, a stranger could make a victim complete the stranger's connection, and so gain access to the victim's
//! account (RFC 9700 §4.7). So the state records which browser continues from this page, and the callback accepts no
//! other. A stranger may try to:
//!
//! - send the provider's address to a victim: the victim's browser has not continued from the page;
//! - send this page to a victim: the page names the stranger's entity;
//! - open this page invisibly from another one: the link has a tag, made with the browser's cookie, that only the page
//!   itself shows. No frame may show the page, so that a click on the link cannot be stolen.
//!
//! Opening the page changes nothing. A state may be opened in several browsers; only the last one to continue can
//! return.

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
use problem::{InputPart, Problem, Violations};

/// The use case for the start page. It needs no authorization beyond the state, and reads no secret.
pub struct Start {
    /// The requested authorizations.
    pub pending: PendingAuthorizations,
    /// The current time.
    pub clock: SharedClock,
    /// Generates the cookies of new browsers.
    pub random: SharedRandom,
}

/// The query of the page's address. Not `Debug`, since a state is a secret.
pub struct StartQuery<'a> {
    state: &'a str,
    /// The tag of the page's link.
    tag: Option<&'a str>,
}

/// The response to a browser that opens the address.
pub enum Opened {
    /// Shows the page.
    Page(Box<StartPage>),
    /// Redirects a browser that used the page's link to this address at the provider.
    Redirect(String),
}

/// The page's content.
pub struct StartPage {
    /// The requested authorization.
    pub pending: PendingAuthorization,
    /// The link to the provider, relative to the page.
    pub link: String,
    /// Why the link that the browser followed did not lead to the provider; `None` if it followed none.
    pub misled: Option<Misled>,
    /// The browser that shows the page. Its cookie is set again each time, so that it lasts as long as the state.
    pub browser: Browser,
}

/// Why a start page's link does not lead to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misled {
    /// The browser sent no cookie.
    NoCookie,
    /// The link belongs to another cookie: the browser opened two start pages at once and kept the later cookie.
    OtherCookie,
}

impl<'a> StartQuery<'a> {
    /// Reads the query with `values`, which returns every value of a name.
    pub fn read(values: impl Fn(&str) -> Vec<&'a str>) -> Result<Self, Problem> {
        let mut violations = Violations::of(InputPart::Query);
        let state = single("state", &values("state"), true, &mut violations);
        let tag = single("go", &values("go"), false, &mut violations);
        violations.check()?;
        // A missing state is a violation, so the default is never used.
        Ok(Self { state: state.unwrap_or_default(), tag })
    }
}

pub(crate) fn address(base_url: &str, provider: &ProviderName, state: &State) -> String {
    format!("{base_url}/api/public/{provider}/oauth2/start?state={}", state.expose())
}

/// The string that the tag in the page's link authenticates.
fn tagged_text(state: &State) -> String {
    format!("start\n{}", state.expose())
}

impl Start {
    /// Shows the page to a browser, or redirects it to the provider.
    pub async fn open(
        &self,
        provider: &ProviderName,
        query: &StartQuery<'_>,
        browser: Option<Browser>,
    ) -> Result<Opened, ConnectionError> {
        let state = State::parse(query.state).ok_or(StateFault::Malformed)?;
        let pending = self.pending.find(&state, provider).await??;
        // The error may contain the entity, since the page shows it to anyone who has the state.
        if let Some(why) = pending.ended(self.clock.now()) {
            return Err(ConnectionError::Ended { why, entity: pending.entity });
        }
        match (query.tag, &browser) {
            (Some(tag), Some(browser)) if browser.has_tagged(&tagged_text(&state), tag) => {
                self.send_on(&state, &pending, browser).await.map(Opened::Redirect)
            }
            _ => {
                let why = if browser.is_some() { Misled::OtherCookie } else { Misled::NoCookie };
                let browser = browser.unwrap_or_else(|| Browser::new(&*self.random));
                let link = format!("start?state={}&go={}", state.expose(), browser.tag(&tagged_text(&state)));
                let misled = query.tag.map(|_| why);
                Ok(Opened::Page(Box::new(StartPage { pending, link, misled, browser })))
            }
        }
    }

    async fn send_on(
        &self,
        state: &State,
        pending: &PendingAuthorization,
        browser: &Browser,
    ) -> Result<String, ConnectionError> {
        let now = self.clock.now();
        let bound =
            pending.is_of(browser) || self.pending.bind(state, &pending.provider, browser, now).await?.is_done();
        if !bound {
            // The state ended a moment ago.
            return Err(StateFault::Ended(pending.ended(now).unwrap_or(Ended::Spent)).into());
        }
        let address = with_state(&pending.onward.authorization_url, state)?;
        tracing::info!(entity = %pending.entity, provider = %pending.provider, "redirected a browser to a provider");
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
