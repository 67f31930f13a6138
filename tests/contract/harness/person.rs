//! A person in front of a browser: goes where the service sends them, chooses there, and is sent back.

use http::Method;
use reqwest::{Client, redirect::Policy};

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
    /// The address.
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

/// Opens the consent page, sends its form, and returns where the provider sends the person then. The account is the
/// person's name there.
pub async fn choose(authorization_url: &str, account: &str, choice: Choice<'_>) -> Return {
    let http = Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client needs nothing");
    let page = http.get(authorization_url).send().await.expect("the provider answers");
    let (status, text) = (page.status(), page.text().await.expect("a page is text"));
    assert_eq!(status, 200, "the provider refuses to ask: {text}");

    let mut form = query(authorization_url);
    let lifetime = choice.first_lifetime.map(|seconds| seconds.to_string()).unwrap_or_default();
    let chosen =
        [("account", account), ("decision", choice.decision), ("fate", choice.fate), ("first_lifetime", &lifetime)];
    form.extend(chosen.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let address = authorization_url.split('?').next().unwrap_or_default();
    let answer = http.request(Method::POST, address).form(&form).send().await.expect("the provider answers");
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let location = location.unwrap_or_else(|| panic!("the provider sends nobody back: {}", answer.status()));
    Return { parameters: query(&location), location }
}
