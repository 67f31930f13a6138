//! The page from which a person is led to the provider: it says whose connection it is to be, before anything is agreed to.
//!
//! Without it, a stranger could have a victim complete the stranger's own connection (RFC 9700 §4.7), and take the victim's
//! account. So the browser that goes on from this page is remembered with the state, and the callback takes no other:
//!
//! - a stranger who sends the provider's address to a victim sends a browser that went on from nowhere;
//! - a stranger who sends this page to a victim shows the victim whose connection it is;
//! - a stranger's page that opens this one out of sight cannot go on from it: the link has a tag that only this browser's
//!   cookie makes, and that only the page itself shows. It stands in no frame, so a click on it is not stolen there.
//!
//! A state may be opened in several browsers; the last one that goes on is the one that can come back. Opening the page
//! changes nothing.

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION, SET_COOKIE},
};

use super::{
    ConnectionStatus, PROVIDER_PARAMETER, PendingAuthorizations, ProviderName,
    authorization_url::with_state,
    brought::single,
    browser::Browser,
    builtin,
    state::{Onward, PendingAuthorization, Predecessor, State},
};
use auth::entity::EntityId;
use base::{clock::SharedClock, random::SharedRandom};
use gate::{
    Call, Reply,
    page::{self, escaped},
};
use problem::{Problem, Violations};

/// Everything that the page needs. It has no secret: anyone with a state can call it.
pub struct Start {
    /// What was asked for.
    pub pending: PendingAuthorizations,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

/// The address of the page.
pub(super) fn address(base_url: &str, provider: &ProviderName, state: &State) -> String {
    format!("{base_url}/api/public/{provider}/oauth2/start?state={}", state.expose())
}

/// What the tag in the page's link is made of.
fn told(state: &State) -> String {
    format!("start\n{}", state.expose())
}

impl Start {
    /// Shows the page, or leads on from it.
    pub async fn answer(&self, call: &Call) -> Result<Reply, Problem> {
        let mut violations = Violations::default();
        let state = single("state", &call.query("state"), true, &mut violations);
        let tag = single("go", &call.query("go"), false, &mut violations);
        violations.check()?;
        let name = ProviderName::parse(call.path(PROVIDER_PARAMETER)).map_err(|_| Problem::invalid_state())?;
        let state = state.and_then(State::parse).ok_or_else(Problem::invalid_state)?;
        let pending = self.pending.find(&state, &name, self.clock.now()).await?.ok_or_else(Problem::invalid_state)?;
        let browser = Browser::of(call.headers());
        match (tag, &browser) {
            (Some(tag), Some(browser)) if browser.was_told(&told(&state), tag) => {
                self.go_on(&state, &pending, browser).await
            }
            _ => {
                let browser = browser.unwrap_or_else(|| Browser::new(&*self.random));
                let onward = pending.onward.as_ref().ok_or_else(Problem::invalid_state)?;
                let link = format!("start?state={}&go={}", state.expose(), browser.tag(&told(&state)));
                let shown = Shown { pending: &pending, onward, link, came_back: tag.is_some() };
                // The cookie is set each time, so that it lasts as long as the state.
                page::reply(shown.html())
                    .with_header(CACHE_CONTROL, "no-store")
                    .with_computed_header(SET_COOKIE, &browser.cookie())
            }
        }
    }

    async fn go_on(&self, state: &State, pending: &PendingAuthorization, browser: &Browser) -> Result<Reply, Problem> {
        let onward = pending.onward.as_ref().ok_or_else(Problem::invalid_state)?;
        let bound =
            pending.is_of(browser) || self.pending.bind(state, &pending.provider, browser, self.clock.now()).await?;
        if !bound {
            return Err(Problem::invalid_state());
        }
        let address = with_state(&onward.authorization_url, state).map_err(Problem::internal)?;
        tracing::info!(entity = %pending.entity, provider = %pending.provider, "sent on to a provider");
        Reply { status: StatusCode::FOUND, headers: Vec::new(), body: String::new() }
            .with_header(CACHE_CONTROL, "no-store")
            .with_computed_header(LOCATION, address.as_str())
    }
}

/// What the page shows.
struct Shown<'a> {
    pending: &'a PendingAuthorization,
    onward: &'a Onward,
    link: String,
    /// Whether the link was used, and did not lead on.
    came_back: bool,
}

impl Shown<'_> {
    fn html(&self) -> String {
        let PendingAuthorization { entity, provider, replace, .. } = self.pending;
        let provider = escaped(builtin::find(provider).map_or(provider.as_str(), |known| &known.label));
        let who = format!("<strong>{}</strong>", escaped(entity.as_str()));
        let mut content = format!(
            "<p>The managing entity {who} asks to be connected to an account at <strong>{provider}</strong>: the one that \
             you choose there. Whoever manages {who} can use it from then on.</p>\n"
        );
        if !self.onward.scopes.is_empty() {
            let scopes = self.onward.scopes.iter().map(|scope| format!("<li><code>{}</code></li>\n", escaped(scope)));
            content += &format!("<p>This is what is asked for:</p>\n<ul>\n{}</ul>\n", scopes.collect::<String>());
        }
        if let Some(predecessor) = &self.onward.predecessor {
            content += &replaced(predecessor, *replace, entity);
        }
        content += &format!(
            "<p>If you do not work for {who}, or did not ask for this, close this page: nothing is connected then.</p>\n"
        );
        if self.came_back {
            content += "<p role=\"alert\">The link below did not lead on. Let your browser accept cookies from this address, \
                        and use the link again.</p>\n";
        }
        content += &format!("<p><a href=\"{}\">Go on to {provider}</a></p>\n", escaped(&self.link));
        page::html("Connect an account", &content)
    }
}

/// What becomes of the account that is connected already.
fn replaced(predecessor: &Predecessor, replace: bool, entity: &EntityId) -> String {
    let account = match &predecessor.account {
        Some(account) => format!("the account <strong>{}</strong>", escaped(account)),
        None => "an account that the provider does not name".to_owned(),
    };
    let entity = escaped(entity.as_str());
    let now = match predecessor.status {
        ConnectionStatus::Connected => format!("Now, <strong>{entity}</strong> is connected to {account}."),
        ConnectionStatus::Broken => {
            format!("The connection of <strong>{entity}</strong> to {account} no longer works.")
        }
    };
    let then = if replace || predecessor.account.is_none() {
        "The account that you choose takes its place."
    } else {
        "Choose this account again; another one will not be connected in its place."
    };
    format!("<p>{now} {then}</p>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{clock::Time, random::SystemRandom};

    fn page(predecessor: Option<Predecessor>, replace: bool, came_back: bool) -> String {
        let onward = Onward {
            authorization_url: "https://pay.example.com/authorize?client_id=app".into(),
            scopes: vec!["read_write".into(), "<b>".into()],
            predecessor,
        };
        let pending = PendingAuthorization {
            entity: EntityId::parse("demo-hotel").expect("an entity"),
            provider: ProviderName::parse("stripe").expect("a name"),
            sealed_verifier: None,
            onward: Some(onward.clone()),
            replace,
            expires_date: Time::from_millis(1_795_167_900_123),
            browser: None,
            spent_by: None,
        };
        Shown { pending: &pending, onward: &onward, link: "start?state=s&go=t".into(), came_back }.html()
    }

    fn before(account: Option<&str>, status: ConnectionStatus) -> Option<Predecessor> {
        Some(Predecessor { account: account.map(str::to_owned), status })
    }

    #[test]
    fn the_page_names_the_entity_the_provider_and_what_is_asked_for() {
        let page = page(None, false, false);
        for word in ["<strong>demo-hotel</strong>", "<strong>Stripe</strong>", "<code>read_write</code>", "&lt;b&gt;"] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(page.contains("<a href=\"start?state=s&amp;go=t\">Go on to Stripe</a>"), "{page}");
        assert!(!page.contains("place") && !page.contains("role=\"alert\"") && !page.contains("  "), "{page}");
    }

    #[test]
    fn the_page_names_the_account_that_is_to_be_replaced() {
        use ConnectionStatus::{Broken, Connected};
        let hostile = Some("<script>acct_1");
        let connected = page(before(hostile, Connected), true, false);
        assert!(connected.contains("is connected to the account <strong>&lt;script&gt;acct_1</strong>"), "{connected}");
        assert!(connected.contains("takes its place") && !connected.contains("<script>"), "{connected}");
        let broken = page(before(hostile, Broken), false, false);
        assert!(broken.contains("no longer works") && broken.contains("Choose this account again"), "{broken}");
        assert!(page(before(None, Broken), false, false).contains("does not name"));
        for page in [connected, broken] {
            assert!(!page.contains("  "), "no sentence has a gap: {page}");
        }
    }

    #[test]
    fn a_person_whose_browser_takes_no_cookies_is_told_so() {
        assert!(page(None, false, true).contains("accept cookies"));
    }

    #[test]
    fn the_address_has_the_state_where_clients_look_for_it() {
        let state = State::new(&SystemRandom);
        let name = ProviderName::parse("pay-2-go").expect("a name");
        let address = address("https://api.example.com", &name, &state);
        let expected = "https://api.example.com/api/public/pay-2-go/oauth2/start?state=";
        assert_eq!(address.strip_prefix(expected), Some(state.expose()));
    }
}
