//! The tenants who request connections, and the people who follow the links.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base::pause;
use fastrand::Rng;
use payments::{
    ProviderName,
    browser::Browser,
    callback::CallbackError,
    callback_query::CallbackQuery,
    connect::NewConnection,
    start::{Opened, StartQuery},
};
use serde_json::json;
use storage::Once;
use url::Url;

use super::{Action, Provider};
use crate::{
    bundle::entity,
    plan::Step,
    records::Answer,
    sandbox::Function,
    tenants::{Tenants, done, once},
};

/// The maximum number of times that a person loads a page.
const LOADS: u32 = 4;

/// The facts that tenants remember about connections.
#[derive(Debug, Default)]
pub struct Records {
    /// The links, by tenant, provider and idempotency key.
    pub links: BTreeMap<(usize, Provider, String), BTreeSet<String>>,
    /// The number of requests for a link that could have created a state, by tenant and provider. All tries with the
    /// same key create a single state.
    pub asked: BTreeMap<(usize, Provider), u32>,
    /// The people who returned from a provider, each with the outcome.
    pub arrivals: Vec<Arrival>,
    /// The acknowledged disconnections.
    pub disconnected: Vec<Disconnection>,
}

/// A person who returned from a provider.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The code, if the provider gave one.
    pub code: Option<String>,
    /// The outcome of the return.
    pub outcome: &'static str,
}

/// An acknowledged disconnection.
#[derive(Debug, Clone, Copy)]
pub struct Disconnection {
    /// The tenant that disconnected.
    pub tenant: usize,
    /// The provider that was disconnected.
    pub provider: Provider,
    /// When the request began, in milliseconds.
    pub began: u64,
    /// When the response arrived.
    pub answered: u64,
}

/// A provider's name, as the use cases expect it.
pub fn name(provider: Provider) -> ProviderName {
    ProviderName::parse(provider.name()).expect("a valid name")
}

fn parameter(url: &Url, name: &str) -> String {
    url.query_pairs().find(|(given, _)| given == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
}

impl Tenants {
    /// Performs a step about payment providers.
    pub async fn act_on_providers(&self, step: Step, action: Action) {
        let world = &self.cloud.world;
        match action {
            Action::Connect(tenant, provider, key) => self.connect(step, tenant, provider, key).await,
            Action::Disconnect(tenant, provider) => {
                let began = world.clock.millis();
                let answer = self
                    .request(step, None, None, Function::DisconnectProvider, move |bundle| async move {
                        done(bundle.disconnecting().disconnect(&entity(tenant), &name(provider), Once::NO_KEY).await)
                    })
                    .await;
                if matches!(&answer, Some(Answer::Done(_))) {
                    let answered = world.clock.millis();
                    let disconnected = Disconnection { tenant, provider, began, answered };
                    self.records().providers.disconnected.push(disconnected);
                }
            }
            Action::Withdraw(tenant, provider) => {
                let now = world.clock.millis();
                world.state().providers.withdraw(provider, tenant, now);
            }
            Action::React(provider, mood) => {
                world.state().providers.moods.insert(provider, mood);
            }
            Action::Shorten(provider, life) => {
                world.state().providers.lives.insert(provider, life);
            }
        }
    }

    /// A tenant requests a link, and a person follows it.
    async fn connect(&self, step: Step, tenant: usize, provider: Provider, key: Option<u8>) {
        // The same key always has the same body.
        let replace = key.map_or(!step.number.is_multiple_of(3), |key| key % 3 > 0);
        let body = json!({ "replace": replace }).to_string();
        let key = key.map(|key| format!("connect-{key}"));
        let again = key.clone();
        let path = format!("payment/provider/{}/connection", provider.name());
        let answer = self
            .request(step, None, key.clone(), Function::ConnectProvider, move |bundle| {
                let (body, key, path) = (body.clone(), again.clone(), path.clone());
                async move {
                    let once = key.map(|key| once(tenant, &path, &key, body.as_bytes()));
                    let new = NewConnection::read(body.as_bytes())?;
                    done(bundle.connecting().ask(&entity(tenant), &name(provider), new, once.as_ref()).await)
                }
            })
            .await;
        let link = match &answer {
            Some(Answer::Done(link)) => link["authorizationUrl"].as_str().map(str::to_owned),
            _ => None,
        };
        {
            let mut records = self.records();
            let tries = records.requests.iter().rfind(|request| request.step == step).map_or(0, |made| made.tries);
            let records = &mut records.providers;
            let known = key.as_ref().is_some_and(|key| records.links.contains_key(&(tenant, provider, key.clone())));
            let states = if known { 0 } else { key.as_ref().map_or(tries, |_| 1) };
            *records.asked.entry((tenant, provider)).or_default() += states;
            if let Some(key) = key {
                records.links.entry((tenant, provider, key)).or_default().extend(link.clone());
            }
        }
        let Some(link) = link.and_then(|link| Url::parse(&link).ok()) else { return };
        let mut rng = self.cloud.world.draws.about(&("person", step.number));
        // Some links are used twice, by two people or in two browsers.
        let people = if rng.u8(0..6) == 0 { 2 } else { 1 };
        for _ in 0..people {
            pause(Duration::from_secs_f64(20.0 * rng.f64())).await;
            self.follow(tenant, provider, &link, &mut rng).await;
        }
    }

    /// A person opens the start page, continues to the provider, and returns.
    async fn follow(&self, tenant: usize, provider: Provider, link: &Url, rng: &mut Rng) {
        let world = &self.cloud.world;
        let state = parameter(link, "state");
        let Some((Opened::Page(page), _)) = self.open(provider, &state, None, None, rng).await else { return };
        let Some(tag) = page.link.split("&go=").nth(1).map(str::to_owned) else { return };
        let browser = page.browser.clone();
        pause(Duration::from_secs_f64(5.0 * rng.f64())).await;
        let opened = self.open(provider, &state, Some(tag), Some(browser.clone()), rng).await;
        let Some((Opened::Redirect(address), _)) = opened else { return };
        let Ok(address) = Url::parse(&address) else { return };
        // The person usually takes seconds; a state is valid for ten minutes.
        pause(Duration::from_secs_f64(700.0 * rng.f64().powi(8))).await;
        let came = parameter(&address, "state");
        let account = format!("account-{tenant}-{}", rng.u8(0..3) / 2);
        let code = (rng.u8(0..8) > 0).then(|| {
            let mut world_state = world.state();
            world_state.providers.permit(provider, tenant, account.clone(), came.clone())
        });
        let reloads = rng.u8(0..5) == 0;
        let twice = rng.u8(0..6) == 0;
        if twice {
            let both = (
                self.come_back(provider, &came, code.clone(), &browser, world.draws.about(&("one", &came))),
                self.come_back(provider, &came, code.clone(), &browser, world.draws.about(&("other", &came))),
            );
            tokio::join!(both.0, both.1);
        } else {
            self.come_back(provider, &came, code.clone(), &browser, world.draws.about(&("one", &came))).await;
        }
        if reloads {
            pause(Duration::from_secs_f64(20.0 * rng.f64())).await;
            // Some people go back to the provider, and get another code for the same state.
            let again = rng.bool().then(|| world.state().providers.permit(provider, tenant, account, came.clone()));
            let code = again.or(code);
            self.come_back(provider, &came, code, &browser, world.draws.about(&("reload", &came))).await;
        }
    }

    async fn open(
        &self,
        provider: Provider,
        state: &str,
        tag: Option<String>,
        browser: Option<Browser>,
        rng: &mut Rng,
    ) -> Option<(Opened, u32)> {
        for load in 0..LOADS {
            let (state, tag, browser) = (state.to_owned(), tag.clone(), browser.clone());
            let opened = self
                .cloud
                .invoke(Function::ProviderStart, move |bundle| async move {
                    let query = StartQuery::read(|name| match name {
                        "state" => vec![state.as_str()],
                        _ => tag.iter().map(String::as_str).collect(),
                    });
                    let query = query.map_err(|_| false)?;
                    let opened = bundle.start_page().open(&name(provider), &query, browser).await;
                    opened.map_err(|error| problem::Problem::from(error).kind.status().as_u16() >= 500)
                })
                .await;
            match opened {
                Some(Ok(opened)) => return Some((opened, load)),
                Some(Err(false)) => return None,
                Some(Err(true)) | None => pause(Duration::from_secs_f64(10.0 * rng.f64())).await,
            }
        }
        None
    }

    /// A person returns from the provider, and reloads the page if it does not load.
    async fn come_back(&self, provider: Provider, state: &str, code: Option<String>, browser: &Browser, mut rng: Rng) {
        for _ in 0..LOADS {
            let (state, code, browser) = (state.to_owned(), code.clone(), browser.clone());
            let sent = code.clone();
            let came = self
                .cloud
                .invoke(Function::ProviderCallback, move |bundle| async move {
                    let query = CallbackQuery::read(|name| match name {
                        "state" => vec![state.as_str()],
                        "code" => sent.iter().map(String::as_str).collect(),
                        "error" if sent.is_none() => vec!["access_denied"],
                        _ => Vec::new(),
                    });
                    let Ok(query) = query else { return ("malformed", false) };
                    match bundle.callback().await.take(&name(provider), &query, Some(browser), None).await {
                        Ok(answered) => (answered.outcome.as_str(), false),
                        Err(failure) => outcome(&failure.error),
                    }
                })
                .await;
            let (outcome, load_again) = came.unwrap_or(("no answer", true));
            self.cloud.world.note(|| format!("a person comes back with {code:?}: {outcome}"));
            self.records().providers.arrivals.push(Arrival { code: code.clone(), outcome });
            if !load_again {
                return;
            }
            pause(Duration::from_secs_f64(1.0 + 10.0 * rng.f64())).await;
        }
    }
}

/// The name of a failure, and whether its page asks the person to reload.
fn outcome(error: &CallbackError) -> (&'static str, bool) {
    match error {
        CallbackError::InvalidState(_) => ("invalid state", false),
        CallbackError::Ended(_) => ("ended", false),
        CallbackError::EntityNotCovered => ("not covered", false),
        CallbackError::Read(_) => ("not read", true),
        CallbackError::Provider(_) => ("no provider", true),
        CallbackError::Seal(_) => ("no key", true),
        CallbackError::TooSlow => ("too slow", true),
        CallbackError::Spend(_) => ("not spent", false),
        CallbackError::Exchange(_) => ("not exchanged", false),
        CallbackError::Keep(_) => ("not kept", false),
        CallbackError::Late => ("late", false),
    }
}
