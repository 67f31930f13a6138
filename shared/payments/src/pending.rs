//! Pending authorizations in the table, each under the hash of its state.
//!
//! An authorization is bound to the entity that requested it, the provider, and the browser that continued from the
//! start page.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    browser::Browser,
    connection::ConnectionStatus,
    provider::ProviderName,
    state::{Ended, State, StateFault},
};
use auth::{AuthorizedEntity, EntityId};
use base::{ConnectionId, Time};
use storage::table::{Change, Put, Table, TableError, Transaction, Written, absent, is, more};
use storage::{IdempotencyError, Record};

/// How long the table keeps an authorization after its state has expired.
const KEPT_AFTER: Duration = Duration::from_secs(60 * 60);

/// An authorization that a managing entity has requested and to which the provider has not responded yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingAuthorization {
    /// The managing entity that requested the authorization.
    pub entity: EntityId,
    /// The requested provider.
    pub provider: ProviderName,
    /// The identifier that the connection will have; absent if release 1.0.0 handled the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// The sealed PKCE verifier; absent if the provider does not support PKCE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_verifier: Option<String>,
    /// The start page's content.
    pub onward: Onward,
    /// Whether the new connection may replace one to another account.
    pub replace: bool,
    /// When the state expires.
    pub expires_date: Time,
    /// The hash of the browser that continued from the start page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// The attempt that spent the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_by: Option<String>,
}

/// The start page's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Onward {
    /// The address at the provider, without the state.
    pub authorization_url: String,
    /// The scopes that are requested at the provider.
    pub scopes: Vec<String>,
    /// The entity's connection at the time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Predecessor>,
}

/// A connection that will be replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predecessor {
    /// The account, if the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether the connection works.
    pub status: ConnectionStatus,
}

impl PendingAuthorization {
    /// Why the authorization cannot continue; `None` while its state is valid.
    pub fn ended(&self, now: Time) -> Option<Ended> {
        if self.spent_by.is_some() {
            return Some(Ended::Spent);
        }
        (now >= self.expires_date).then_some(Ended::Expired)
    }

    /// Whether this browser continued from the start page.
    pub fn is_of(&self, browser: &Browser) -> bool {
        self.browser.as_ref().is_some_and(|hash| *hash == browser.hash())
    }

    /// The browser that returned, if it is the one that continued from the start page; otherwise, why it is not.
    pub fn returned(&self, browser: Option<Browser>) -> Result<Browser, StateFault> {
        match browser {
            _ if self.browser.is_none() => Err(StateFault::NotBegun),
            None => Err(StateFault::NoCookie),
            Some(browser) if self.is_of(&browser) => Ok(browser),
            Some(_) => Err(StateFault::OtherBrowser),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingItem {
    pk: String,
    sk: String,
    #[serde(flatten)]
    pending: PendingAuthorization,
    expires_at: i64,
}

impl PendingItem {
    fn new(state: &State, pending: &PendingAuthorization) -> Self {
        let (pk, sk) = key(state);
        let expires_at = (pending.expires_date + KEPT_AFTER).as_seconds();
        Self { pk, sk, pending: pending.clone(), expires_at }
    }
}

/// The pending authorizations in the table.
#[derive(Debug, Clone)]
pub struct PendingAuthorizations(Table);

impl PendingAuthorizations {
    /// Creates the store in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Stores an authorization, with the request's idempotency record, if any. It is kept until an hour after its state
    /// expires.
    pub async fn keep(
        &self,
        entity: &AuthorizedEntity,
        state: &State,
        pending: &PendingAuthorization,
        record: Option<Record>,
    ) -> Result<(), IdempotencyError> {
        const DOING: &str = "storing an authorization";
        debug_assert_eq!(entity.id(), &pending.entity);
        let put = Put::item(&PendingItem::new(state, pending), DOING)?;
        self.0.write_recorded(Transaction::new().with(put), record, DOING).await.map(drop)
    }

    /// A state's stored authorization for this provider. It may have [ended](PendingAuthorization::ended).
    pub async fn find(
        &self,
        state: &State,
        provider: &ProviderName,
    ) -> Result<Result<PendingAuthorization, StateFault>, TableError> {
        let item: Option<PendingItem> = self.0.get(key(state), true, "reading an authorization").await?;
        Ok(match item {
            None => Err(StateFault::Unknown),
            Some(PendingItem { pending, .. }) if pending.provider == *provider => Ok(pending),
            Some(_) => Err(StateFault::OtherProvider),
        })
    }

    /// Binds a state to a browser, replacing any earlier binding. Returns `Lost` if the state is no longer valid.
    pub async fn bind(
        &self,
        state: &State,
        provider: &ProviderName,
        browser: &Browser,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let change = while_good(state, provider, now).set("browser", browser.hash()).only_if(absent("spentBy"));
        self.0.write(change, "binding a state").await
    }

    /// Spends a state on behalf of one attempt; all other attempts lose. The winner may repeat the write, as the SDK
    /// does if a response is lost.
    pub async fn spend(
        &self,
        state: &State,
        provider: &ProviderName,
        by: &str,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let change = while_good(state, provider, now)
            .set("spentBy", by)
            .remove("sealedVerifier")
            .only_if(absent("spentBy").or(is("spentBy", by)));
        self.0.write(change, "marking a state as used").await
    }
}

/// A change to an authorization whose state has not expired and is for this provider.
fn while_good(state: &State, provider: &ProviderName, now: Time) -> Change {
    Change::of(key(state)).only_if(is("provider", provider.as_str())).only_if(more("expiresDate", now))
}

fn key(state: &State) -> (String, String) {
    (format!("STATE#{}", state.hash()), "STATE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::LIFETIME;
    use base::SystemRandom;

    fn pending() -> PendingAuthorization {
        PendingAuthorization {
            entity: EntityId::parse("demo-hotel").expect("an entity"),
            provider: ProviderName::parse("square").expect("a name"),
            connection: None,
            sealed_verifier: None,
            onward: Onward {
                authorization_url: "https://pay.example.com/authorize".to_owned(),
                scopes: Vec::new(),
                predecessor: None,
            },
            replace: false,
            expires_date: Time::from_millis(1_795_167_900_123) + LIFETIME,
            browser: None,
            spent_by: None,
        }
    }

    #[test]
    fn the_table_keeps_the_hash_of_a_state_and_not_the_state() {
        let state = State::new(&SystemRandom);
        let item = serde_json::to_string(&PendingItem::new(&state, &pending())).expect("an item");
        assert!(!item.contains(state.expose()) && item.contains(&state.hash()));
        assert!(item.contains("1795172100"), "ten minutes and an hour: {item}");
        assert!(!format!("{state:?}").contains(state.expose()));
    }

    #[test]
    fn an_authorization_ends_when_its_state_is_spent_or_expires() {
        let mut pending = pending();
        let end = pending.expires_date;
        let before = Time::from_millis(end.as_millis() - 1);
        assert_eq!((pending.ended(before), pending.ended(end)), (None, Some(Ended::Expired)));
        pending.spent_by = Some("try".into());
        assert_eq!((pending.ended(before), pending.ended(end)), (Some(Ended::Spent), Some(Ended::Spent)));
    }

    #[test]
    fn an_authorization_belongs_only_to_the_browser_that_continued() {
        let one = Browser::new(&SystemRandom);
        let other = Browser::new(&SystemRandom);
        let mut pending = pending();
        assert!(!pending.is_of(&one), "without a start page it belongs to no browser");
        pending.browser = Some(one.hash());
        assert!(pending.is_of(&one) && !pending.is_of(&other));
    }

    #[test]
    fn the_log_distinguishes_why_a_browser_is_not_accepted() {
        let one = Browser::new(&SystemRandom);
        let other = Browser::new(&SystemRandom);
        let mut pending = pending();
        assert_eq!(pending.returned(Some(one.clone())).err(), Some(StateFault::NotBegun));
        pending.browser = Some(one.hash());
        assert!(pending.returned(Some(one)).is_ok());
        assert_eq!(pending.returned(Some(other)).err(), Some(StateFault::OtherBrowser));
        assert_eq!(pending.returned(None).err(), Some(StateFault::NoCookie));
    }
}
