//! An entity's connections to payment providers, created as a person would create them.

use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Api, ApiResponse, Call, Choice, Departure, Entity, Return, choose, continue_to_provider, query};

/// A person's path through a provider, up to the callback.
#[derive(Clone)]
pub struct Visit {
    /// The state in the provider's URL.
    pub state: String,
    /// The person's account at the provider, which no other test uses.
    pub account: String,
    /// The cookie of the person's browser.
    pub cookie: String,
    /// The URL that the provider redirected to.
    pub back: Return,
    api: Api,
}

impl Visit {
    /// The code in that URL, or an empty string.
    pub fn code(&self) -> &str {
        self.back.parameter("code")
    }

    /// The callback, as the person's browser calls it.
    pub fn callback(&self) -> Call {
        self.at(self.back.path(self.api.base_url()))
    }

    /// A request to another path from the person's browser.
    pub fn at(&self, path: impl Into<String>) -> Call {
        self.api.get(path).header("cookie", &self.cookie)
    }

    /// Calls the callback, and asserts this outcome.
    pub async fn arrive(&self, outcome: &str) -> ApiResponse {
        let answer = self.callback().expect(302).await;
        assert_eq!(outcome_of(&answer), outcome, "{}", answer.exchange);
        answer
    }
}

impl Entity {
    /// Requests a connection, and returns the URL that the person should open.
    pub async fn authorization_url(&self, provider: &str) -> String {
        let answer = self.post(&format!("/payment/provider/{provider}/connection")).expect(201).await;
        answer.json()["authorizationUrl"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// Requests a connection that may replace the connected account, and returns the URL that the person should open.
    pub async fn replacing_url(&self, provider: &str) -> String {
        let request = self.post(&format!("/payment/provider/{provider}/connection")).json(&json!({ "replace": true }));
        request.expect(201).await.json()["authorizationUrl"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// Sends a person to a provider, where the person makes this choice.
    pub async fn visit(&self, provider: &str, choice: Choice<'_>) -> Visit {
        self.visit_from(&self.authorization_url(provider).await, &new_account(), choice).await
    }

    /// Sends a person to this URL, where the person chooses this account.
    pub async fn visit_from(&self, authorization_url: &str, account: &str, choice: Choice<'_>) -> Visit {
        let Departure { cookie, address } = continue_to_provider(self.api(), authorization_url, None).await;
        let back = choose(&address, account, choice).await;
        let state = state_of(authorization_url);
        let account = account.to_owned();
        Visit { state, account, cookie, back, api: self.api().clone() }
    }

    /// Replaces the connected account with another one.
    pub async fn replace(&self, provider: &str, choice: Choice<'_>) -> Visit {
        let visit = self.visit_from(&self.replacing_url(provider).await, &new_account(), choice).await;
        visit.arrive("connected").await;
        visit
    }

    /// Connects an account, including the callback.
    pub async fn link(&self, provider: &str, choice: Choice<'_>) -> Visit {
        let visit = self.visit(provider, choice).await;
        visit.arrive("connected").await;
        visit
    }

    /// The entity's connections, as listed.
    pub async fn connections(&self) -> Vec<Value> {
        let page = self.get("/payment/connection/list?limit=100").expect(200).await.json();
        page["items"].as_array().expect("openapi.yaml says so").clone()
    }

    /// The connection to a provider, if there is one.
    pub async fn connection(&self, provider: &str) -> Option<Value> {
        self.connections().await.into_iter().find(|connection| connection["provider"] == provider)
    }

    pub fn disconnect(&self, provider: &str) -> Call {
        self.call("DELETE", &format!("/payment/provider/{provider}/connection"))
    }
}

/// A new account that no other test uses.
pub fn new_account() -> String {
    static ACCOUNTS: AtomicU32 = AtomicU32::new(1);
    format!("acct-{}", ACCOUNTS.fetch_add(1, Ordering::Relaxed))
}

/// The outcome that the redirect to the panel contains.
pub fn outcome_of(answer: &ApiResponse) -> String {
    let outcome = query(answer.header("location")).into_iter().find(|(name, _)| name == "outcome");
    outcome.map(|(_, outcome)| outcome).unwrap_or_default()
}

/// The state in an authorization URL.
pub fn state_of(authorization_url: &str) -> String {
    let state = query(authorization_url).into_iter().find(|(name, _)| name == "state");
    state.expect("an authorization address has a state").1
}

/// A state's hash in the format of the table's key: SHA-256 in base64url.
pub fn hash_of(state: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, state.as_bytes()))
}
