//! An entity's connections to payment providers, made as a person makes them.

use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Api, ApiResponse, Call, Choice, Departure, Entity, Return, choose, go_on, query};

/// A person's way through a provider, up to the callback.
#[derive(Clone)]
pub struct Visit {
    /// The state in the address that the service sent them to.
    pub state: String,
    /// Their account at the provider, which no other test has.
    pub account: String,
    /// What their browser is known by, as it sends it.
    pub cookie: String,
    /// Where the provider sent them back to.
    pub back: Return,
    api: Api,
}

impl Visit {
    /// The code that they came back with, or nothing.
    pub fn code(&self) -> &str {
        self.back.parameter("code")
    }

    /// The callback, as their browser calls it.
    pub fn callback(&self) -> Call {
        self.at(self.back.path(self.api.base_url()))
    }

    /// Another address, as their browser calls it.
    pub fn at(&self, path: impl Into<String>) -> Call {
        self.api.get(path).header("cookie", &self.cookie)
    }

    /// Calls the callback, which must lead to this outcome.
    pub async fn arrive(&self, outcome: &str) -> ApiResponse {
        let answer = self.callback().expect(302).await;
        assert_eq!(outcome_of(&answer), outcome, "{}", answer.exchange);
        answer
    }
}

impl Entity {
    /// Asks for a connection, and returns the address that a person is to be sent to.
    pub async fn authorization_url(&self, provider: &str) -> String {
        let answer = self.post(&format!("/payment/provider/{provider}/connection")).expect(201).await;
        answer.json()["authorizationUrl"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// The same for an account that may take the place of the one that is connected.
    pub async fn replacing_url(&self, provider: &str) -> String {
        let request = self.post(&format!("/payment/provider/{provider}/connection")).json(&json!({ "replace": true }));
        request.expect(201).await.json()["authorizationUrl"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// Sends a person to a provider, where they choose.
    pub async fn visit(&self, provider: &str, choice: Choice<'_>) -> Visit {
        self.visit_from(&self.authorization_url(provider).await, &new_account(), choice).await
    }

    /// Sends a person to this address, who chooses this account.
    pub async fn visit_from(&self, authorization_url: &str, account: &str, choice: Choice<'_>) -> Visit {
        let Departure { cookie, address } = go_on(self.api(), authorization_url, None).await;
        let back = choose(&address, account, choice).await;
        let state = state_of(authorization_url);
        let account = account.to_owned();
        Visit { state, account, cookie, back, api: self.api().clone() }
    }

    /// Connects an account in the place of the one that is connected.
    pub async fn replace(&self, provider: &str, choice: Choice<'_>) -> Visit {
        let visit = self.visit_from(&self.replacing_url(provider).await, &new_account(), choice).await;
        visit.arrive("connected").await;
        visit
    }

    /// The same, with the callback: the connection is there afterwards.
    pub async fn link(&self, provider: &str, choice: Choice<'_>) -> Visit {
        let visit = self.visit(provider, choice).await;
        visit.arrive("connected").await;
        visit
    }

    /// All connections, as the list shows them.
    pub async fn connections(&self) -> Vec<Value> {
        let list = self.get("/payment/provider/list").expect(200).await.json();
        list.as_array().expect("openapi.yaml says so").clone()
    }

    /// The connection to a provider, if there is one.
    pub async fn connection(&self, provider: &str) -> Option<Value> {
        self.connections().await.into_iter().find(|connection| connection["provider"] == provider)
    }

    pub fn disconnect(&self, provider: &str) -> Call {
        self.call("DELETE", &format!("/payment/provider/{provider}/connection"))
    }
}

/// A new account, in no other test.
pub fn new_account() -> String {
    static ACCOUNTS: AtomicU32 = AtomicU32::new(1);
    format!("acct-{}", ACCOUNTS.fetch_add(1, Ordering::Relaxed))
}

/// The outcome with which a person is sent to the panel.
pub fn outcome_of(answer: &ApiResponse) -> String {
    let outcome = query(answer.header("location")).into_iter().find(|(name, _)| name == "outcome");
    outcome.map(|(_, outcome)| outcome).unwrap_or_default()
}

/// The state in an authorization address.
pub fn state_of(authorization_url: &str) -> String {
    let state = query(authorization_url).into_iter().find(|(name, _)| name == "state");
    state.expect("an authorization address has a state").1
}

/// The hash by which the table knows a state: SHA-256 in base64url.
pub fn hash_of(state: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, state.as_bytes()))
}
