//! A connection's start page, as HTML: it leads a person to the provider.

use auth::EntityId;
use gate::{
    Reply,
    page::{self, escaped},
};
use http::header::SET_COOKIE;
use payments::{
    ConnectionStatus, builtin,
    pending::{PendingAuthorization, Predecessor},
    start::{Misled, StartPage},
};
use problem::Problem;

/// The page, with the browser's cookie.
pub fn reply(shown: &StartPage) -> Result<Reply, Problem> {
    page::reply(html(shown)).uncached().with_computed_header(SET_COOKIE, &shown.browser.cookie())
}

fn html(shown: &StartPage) -> String {
    let label = builtin::label(&shown.pending.provider);
    let provider = escaped(label);
    let who = format!("<strong>{}</strong>", escaped(shown.pending.entity.as_str()));
    let mut content = question(shown, &provider, &who);
    content += &next_steps(&provider);
    let misled = shown.misled.map(|misled| match misled {
        Misled::NoCookie => {
            "Your browser did not accept this site's cookie, so you could not continue. Allow cookies for this site, \
             then try again."
        }
        Misled::OtherCookie => "Several of these pages were opened at once. Please continue again.",
    });
    content += &misled.map(|text| format!("<p role=\"alert\">{text}</p>\n")).unwrap_or_default();
    // A link instead of a form: browsers check the redirects of a form's response against `form-action`.
    content += &format!(
        "<p><a class=\"button\" href=\"{}\">Continue to {provider}</a></p>\n\
         <p>If you do not work for {who} or did not ask for this, close this page. Nothing is connected until you \
         allow it at {provider}.</p>\n",
        escaped(&shown.link)
    );
    page::html(&format!("Connect {label}"), &content)
}

/// The requesting entity, and the access that it requests.
fn question(shown: &StartPage, provider: &str, who: &str) -> String {
    let PendingAuthorization { entity, onward, replace, .. } = &shown.pending;
    let mut facts = format!(
        "<dt>Requested by</dt>\n<dd>The managing entity {who}</dd>\n\
         <dt>Account</dt>\n<dd>The <strong>{provider}</strong> account that you choose there. All managers of {who} can use it \
         once it is connected.</dd>\n"
    );
    if !onward.scopes.is_empty() {
        let scopes = onward.scopes.iter().map(|scope| format!("<li><code>{}</code></li>\n", escaped(scope)));
        facts += &format!("<dt>Permissions</dt>\n<dd><ul>\n{}</ul></dd>\n", scopes.collect::<String>());
    }
    if let Some(predecessor) = &onward.predecessor {
        facts += &format!("<dt>Current connection</dt>\n<dd>{}</dd>\n", replaced(predecessor, *replace, entity));
    }
    format!("<dl>\n{facts}</dl>\n")
}

/// The person's next steps.
fn next_steps(provider: &str) -> String {
    format!(
        "<h2>What happens next</h2>\n<ol>\n\
         <li>You sign in at {provider}. This service never sees your password.</li>\n\
         <li>{provider} asks you to allow access. You can still decline.</li>\n\
         <li>{provider} sends you back here, and you see the result. Stay in this browser until then.</li>\n</ol>\n"
    )
}

/// The sentences about an account that is already connected.
fn replaced(predecessor: &Predecessor, replace: bool, entity: &EntityId) -> String {
    let account = match &predecessor.account {
        Some(account) => format!("the account <strong>{}</strong>", escaped(account)),
        None => "an account without a name".to_owned(),
    };
    let entity = escaped(entity.as_str());
    let now = match predecessor.status {
        ConnectionStatus::Connected => format!("<strong>{entity}</strong> is connected to {account}."),
        ConnectionStatus::Broken => {
            format!("The connection from <strong>{entity}</strong> to {account} has stopped working.")
        }
    };
    let then = if replace || predecessor.account.is_none() {
        "The account that you choose now replaces it."
    } else {
        "Choose the same account again. A different account is not accepted."
    };
    format!("{now} {then}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{SystemRandom, Time};
    use payments::{ProviderName, browser::Browser, pending::Onward};

    fn page(predecessor: Option<Predecessor>, replace: bool, misled: Option<Misled>) -> String {
        let onward = Onward {
            authorization_url: "https://pay.example.com/authorize?client_id=app".into(),
            scopes: vec!["read_write".into(), "<b>".into()],
            predecessor,
        };
        let pending = PendingAuthorization {
            entity: EntityId::parse("demo-hotel").expect("an entity"),
            provider: ProviderName::parse("stripe").expect("a name"),
            connection: None,
            sealed_verifier: None,
            onward,
            replace,
            expires_date: Time::from_millis(1_795_167_900_123),
            browser: None,
            spent_by: None,
        };
        let link = "start?state=s&go=t".to_owned();
        let browser = Browser::new(&SystemRandom);
        let page = html(&StartPage { pending, link, misled, browser });
        page.split_once("</head>").expect("a head").1.to_owned()
    }

    fn before(account: Option<&str>, status: ConnectionStatus) -> Option<Predecessor> {
        Some(Predecessor { account: account.map(str::to_owned), status })
    }

    #[test]
    fn the_page_names_the_entity_the_provider_and_the_scopes() {
        let page = page(None, false, None);
        for word in ["<strong>demo-hotel</strong>", "<strong>Stripe</strong>", "<code>read_write</code>", "&lt;b&gt;"] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(page.contains("href=\"start?state=s&amp;go=t\">Continue to Stripe</a>"), "{page}");
        assert!(!page.contains("replace") && !page.contains("role=\"alert\"") && !page.contains("  "), "{page}");
    }

    #[test]
    fn the_page_names_the_account_to_be_replaced() {
        use ConnectionStatus::{Broken, Connected};
        let hostile = Some("<script>acct_1");
        let connected = page(before(hostile, Connected), true, None);
        assert!(connected.contains("is connected to the account <strong>&lt;script&gt;acct_1</strong>"), "{connected}");
        assert!(connected.contains("replaces it") && !connected.contains("<script>"), "{connected}");
        let broken = page(before(hostile, Broken), false, None);
        assert!(broken.contains("has stopped working") && broken.contains("Choose the same account again"), "{broken}");
        assert!(page(before(None, Broken), false, None).contains("an account without a name"));
        for page in [connected, broken] {
            assert!(!page.contains("  "), "no sentence has two spaces: {page}");
        }
    }

    #[test]
    fn the_page_asks_for_cookies_only_when_the_browser_sent_none() {
        assert!(page(None, false, Some(Misled::NoCookie)).contains("Allow cookies"));
        let of_another = page(None, false, Some(Misled::OtherCookie));
        assert!(of_another.contains("Please continue again") && !of_another.contains("cookies"), "{of_another}");
    }
}
