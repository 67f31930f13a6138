//! A person with a browser, who opens the start page, continues to the provider, chooses there, and returns.

use http::Method;
use reqwest::{Client, redirect::Policy};

use super::{Api, ApiResponse};

/// The choice on the consent page.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The button to press: `allow` or `deny`.
    pub decision: &'a str,
    /// The outcome that the simulated provider applies after consent, by name.
    pub fate: &'a str,
    /// The lifetime of the first access token, unless it is the provider's default.
    pub first_lifetime: Option<u32>,
}

impl Choice<'_> {
    /// Consent with no later failures.
    pub const ALLOW: Self = Self { decision: "allow", fate: "ok", first_lifetime: None };
    /// A refusal of consent.
    pub const DENY: Self = Self { decision: "deny", ..Self::ALLOW };
}

impl<'a> Choice<'a> {
    /// Consent that leads to this fate.
    pub fn leading_to(fate: &'a str) -> Self {
        Self { fate, ..Self::ALLOW }
    }
}

/// The provider's redirect back to the service.
#[derive(Debug, Clone)]
pub struct Return {
    pub location: String,
    parameters: Vec<(String, String)>,
}

impl Return {
    /// A parameter in the URL, or an empty string.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }

    /// The URL's path and query.
    pub fn path(&self, base_url: &str) -> &str {
        self.location.strip_prefix(base_url).unwrap_or_else(|| panic!("redirected elsewhere: {}", self.location))
    }
}

/// The parameters in a URL.
pub fn query(address: &str) -> Vec<(String, String)> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// A person who has continued from the start page.
#[derive(Debug, Clone)]
pub struct Departure {
    /// The cookie of the person's browser.
    pub cookie: String,
    /// The URL of the provider's consent page.
    pub address: String,
}

/// Opens the start page in a browser with these cookies, and continues to the provider.
pub async fn continue_to_provider(api: &Api, authorization_url: &str, cookie: Option<&str>) -> Departure {
    let path = authorization_url.strip_prefix(api.base_url()).expect("the start page is at the service's address");
    let open = api.get(path);
    let page = cookie.into_iter().fold(open, |open, cookie| open.header("cookie", cookie)).expect(200).await;
    let cookie = cookie_of(&page);
    let answer = api.get(link_of(&page, path)).header("cookie", &cookie).expect(302).await;
    Departure { cookie, address: answer.header("location").to_owned() }
}

/// The cookie that a response sets, as a browser sends it back.
pub fn cookie_of(answer: &ApiResponse) -> String {
    let cookie = answer.header("set-cookie").split(';').next().unwrap_or_default();
    assert!(cookie.starts_with("__Host-"), "{}", answer.exchange);
    cookie.to_owned()
}

/// The target of the only link on the page at this path.
pub fn link_of(page: &ApiResponse, path: &str) -> String {
    let text = page.text();
    let mut links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let link = links.next().expect("the page has a link");
    let more = links.next();
    assert_eq!(more, None, "the page has one link: {text}");
    let folder = path.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
    format!("{folder}/{}", link.replace("&amp;", "&"))
}

/// Opens the consent page, sends its form, and returns the provider's redirect. The account is the person's name at the
/// provider.
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
