//! An entity's connections to payment providers, made as a person makes them.

use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{Answer, Api, Call, Choice, Entity, Return, choose, query};

/// A person's way through a provider, up to the callback.
#[derive(Clone)]
pub struct Visit {
    /// The state in the address that the service sent them to.
    pub state: String,
    /// Their account at the provider, which is nobody else's.
    pub account: String,
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
        self.api.get(self.back.path(self.api.base_url()))
    }

    /// Calls the callback, which must lead to this outcome.
    pub async fn arrive(&self, outcome: &str) -> Answer {
        let answer = self.callback().expect(302).await;
        assert!(answer.header("location").ends_with(&format!("?outcome={outcome}")), "{}", answer.exchange);
        answer
    }
}

impl Entity {
    /// Asks for a connection, and returns the address that a person is to be sent to.
    pub async fn authorization_url(&self, provider: &str) -> String {
        let answer = self.post(&format!("/payment/provider/{provider}/connection")).expect(201).await;
        answer.json()["authorizationUrl"].as_str().expect("openapi.yaml says so").to_owned()
    }

    /// Sends a person to a provider, where they choose.
    pub async fn visit(&self, provider: &str, choice: Choice<'_>) -> Visit {
        static ACCOUNTS: AtomicU32 = AtomicU32::new(1);
        let account = format!("acct-{}", ACCOUNTS.fetch_add(1, Ordering::Relaxed));
        let authorization_url = self.authorization_url(provider).await;
        let back = choose(&authorization_url, &account, choice).await;
        let state = state_of(&authorization_url);
        Visit { state, account, back, api: self.api().clone() }
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

    /// Disconnects a provider.
    pub fn disconnect(&self, provider: &str) -> Call {
        self.call("DELETE", &format!("/payment/provider/{provider}/connection"))
    }
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
