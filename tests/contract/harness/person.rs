//! A person in front of a browser: opens the start page, goes on to the provider, chooses there, and is sent back.

use http::Method;
use reqwest::{Client, redirect::Policy};

use super::{Api, ApiResponse};

/// What a person does on the consent page.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The button: `allow` or `deny`.
    pub decision: &'a str,
    /// What becomes of the consent later on, as the simulated provider names it.
    pub fate: &'a str,
    /// How long the first access token lives, where that is not what is usual there.
    pub first_lifetime: Option<u32>,
}

impl Choice<'_> {
    /// Consent that leads to no failure.
    pub const ALLOW: Self = Self { decision: "allow", fate: "ok", first_lifetime: None };
    /// No.
    pub const DENY: Self = Self { decision: "deny", ..Self::ALLOW };
}

impl<'a> Choice<'a> {
    /// Consent that leads to this.
    pub fn leading_to(fate: &'a str) -> Self {
        Self { fate, ..Self::ALLOW }
    }
}

/// Where a provider sends the person back to.
#[derive(Debug, Clone)]
pub struct Return {
    pub location: String,
    parameters: Vec<(String, String)>,
}

impl Return {
    /// A parameter of the address, or nothing.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }

    /// The path with its query, as it stands in the address.
    pub fn path(&self, base_url: &str) -> &str {
        self.location.strip_prefix(base_url).unwrap_or_else(|| panic!("sent elsewhere: {}", self.location))
    }
}

/// The parameters of an address.
pub fn query(address: &str) -> Vec<(String, String)> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// A person who has gone on from the start page.
#[derive(Debug, Clone)]
pub struct Departure {
    /// What their browser is known by, as it sends it.
    pub cookie: String,
    /// Where the provider asks them.
    pub address: String,
}

/// Opens the start page in a browser that has these cookies, and goes on from it.
pub async fn go_on(api: &Api, authorization_url: &str, cookie: Option<&str>) -> Departure {
    let path = authorization_url.strip_prefix(api.base_url()).expect("the start page is the service's own");
    let open = api.get(path);
    let page = cookie.into_iter().fold(open, |open, cookie| open.header("cookie", cookie)).expect(200).await;
    let cookie = cookie_of(&page);
    let answer = api.get(link_of(&page, path)).header("cookie", &cookie).expect(302).await;
    Departure { cookie, address: answer.header("location").to_owned() }
}

/// The cookie that an answer sets, as a browser sends it back.
pub fn cookie_of(answer: &ApiResponse) -> String {
    let cookie = answer.header("set-cookie").split(';').next().unwrap_or_default();
    assert!(cookie.starts_with("__Host-"), "{}", answer.exchange);
    cookie.to_owned()
}

/// Where the one link of a page leads that stands at this path.
pub fn link_of(page: &ApiResponse, path: &str) -> String {
    let text = page.text();
    let mut links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let link = links.next().expect("the page has a link");
    let more = links.next();
    assert_eq!(more, None, "the page has one link: {text}");
    let folder = path.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
    format!("{folder}/{}", link.replace("&amp;", "&"))
}

/// Opens the consent page, sends its form, and returns where the provider sends the person then. The account is the
/// person's name there.
pub async fn choose(authorization_url: &str, account: &str, choice: Choice<'_>) -> Return {
    let http = Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client needs nothing");
    let page = http.get(authorization_url).send().await.expect("the provider answers");
    let status = page.status();
    let text = page.text().await.expect("a page is text");
    assert_eq!(status, 200, "the provider refuses to ask: {text}");

    let mut form = query(authorization_url);
    let lifetime = choice.first_lifetime.map(|seconds| seconds.to_string()).unwrap_or_default();
    let chosen =
        [("account", account), ("decision", choice.decision), ("fate", choice.fate), ("first_lifetime", &lifetime)];
    form.extend(chosen.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let address = authorization_url.split('?').next().unwrap_or_default();
    let answer = http.request(Method::POST, address).form(&form).send().await.expect("the provider answers");
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let location = location.unwrap_or_else(|| panic!("the provider sends no browser back: {}", answer.status()));
    Return { parameters: query(&location), location }
}
