//! The state of an authorization under way (RFC 6749 §10.12): what the provider's redirect has to bring back.
//!
//! It is random, lives for ten minutes, is used once, and is bound to the entity that asked, the provider that it asked for,
//! and the browser that went on from the start page. The table keeps a hash of it only: who reads the table cannot answer in a provider's name.

use std::{fmt, time::Duration};

use aws_lc_rs::digest;
use aws_sdk_dynamodb::{
    error::SdkError,
    operation::update_item::{UpdateItemError, UpdateItemOutput, builders::UpdateItemFluentBuilder},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{ConnectionStatus, ProviderName, authorization_url::Verifier, browser::Browser};
use auth::entity::{AuthorizedEntity, EntityId};
use base::{
    clock::Time,
    random::{self, Random},
};
use storage::{
    sealing::{KeyRing, SealError},
    table::{Table, TableError, text},
};

/// How long the person has at the provider.
pub const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How much longer the table keeps what nobody came back with.
const KEPT_AFTER: Duration = Duration::from_secs(60 * 60);
/// As many characters as carry 256 bits.
const LENGTH: usize = 43;

/// What the provider's redirect brings back.
#[derive(Clone, PartialEq, Eq)]
pub struct State(String);

impl State {
    /// A state that nobody can guess.
    pub fn new(random: &dyn Random) -> Self {
        Self(random::alphanumeric(random, LENGTH))
    }

    /// The state in a text; `None` when it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let ours = text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ours.then(|| Self(text.to_owned()))
    }

    /// The state, for the address that the person is sent to.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the table knows it by.
    fn hash(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.0.as_bytes()))
    }

    /// Seals the verifier of this state's authorization.
    pub fn seal(
        &self,
        verifier: &Verifier,
        ring: &KeyRing,
        random: &dyn Random,
        owner: &EntityId,
        provider: &ProviderName,
    ) -> String {
        ring.seal(random, &self.context(owner, provider), verifier.expose().as_bytes())
    }

    /// Opens the verifier of this state's authorization.
    pub fn open(
        &self,
        sealed: &str,
        ring: &KeyRing,
        owner: &EntityId,
        provider: &ProviderName,
    ) -> Result<Verifier, SealError> {
        let plain = ring.open(&self.context(owner, provider), sealed)?;
        let verifier = std::str::from_utf8(plain.expose()).map_err(|_| SealError::NotOurs)?;
        Ok(Verifier::from_stored(verifier.to_owned()))
    }

    fn context(&self, owner: &EntityId, provider: &ProviderName) -> String {
        format!("oauth-verifier/{owner}/{provider}/{}", self.hash())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State(…)")
    }
}

/// An authorization that somebody asked for and that the provider has not answered yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingAuthorization {
    /// Who asked.
    pub entity: EntityId,
    /// The provider that was asked for.
    pub provider: ProviderName,
    /// The PKCE verifier, sealed; absent where the provider has no PKCE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_verifier: Option<String>,
    /// Where the person goes on to, and what they are told before. Absent from authorizations of former versions, which
    /// had no start page and end within ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onward: Option<Onward>,
    /// Whether the connection may take the place of one to another account.
    #[serde(default)]
    pub replace: bool,
    /// Until when the state is good.
    pub expires_date: Time,
    /// The hash of the browser that went on from the start page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// By which try it was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_by: Option<String>,
}

/// What the start page needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Onward {
    /// The address at the provider, without the state.
    pub authorization_url: String,
    /// What is asked for there.
    pub scopes: Vec<String>,
    /// What the entity was connected to when it asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Predecessor>,
}

/// A connection whose place another is to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predecessor {
    /// Its account, where the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether it works.
    pub status: ConnectionStatus,
}

impl PendingAuthorization {
    /// Whether this is the browser that went on from the start page.
    pub fn is_of(&self, browser: &Browser) -> bool {
        self.browser.as_ref().is_some_and(|hash| *hash == browser.hash())
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

/// The authorizations under way, in the table.
#[derive(Debug, Clone)]
pub struct PendingAuthorizations(Table);

impl PendingAuthorizations {
    /// The authorizations in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Keeps an authorization for as long as its state is good.
    pub async fn keep(
        &self,
        entity: &AuthorizedEntity,
        state: &State,
        pending: &PendingAuthorization,
    ) -> Result<(), TableError> {
        debug_assert_eq!(entity.id(), &pending.entity);
        self.0.put(&PendingItem::new(state, pending), "keeping an authorization").await
    }

    /// The authorization of a state that is good for this provider now. The state stays as it is.
    pub async fn find(
        &self,
        state: &State,
        provider: &ProviderName,
        now: Time,
    ) -> Result<Option<PendingAuthorization>, TableError> {
        let item: Option<PendingItem> = self.0.get(key(state), true, "reading an authorization").await?;
        let pending = item.map(|item| item.pending);
        let good = |pending: &PendingAuthorization| {
            pending.provider == *provider && now < pending.expires_date && pending.spent_by.is_none()
        };
        Ok(pending.filter(good))
    }

    /// Binds a state to a browser, in the place of one that it was bound to before; false when the state is not good any
    /// more.
    pub async fn bind(
        &self,
        state: &State,
        provider: &ProviderName,
        browser: &Browser,
        now: Time,
    ) -> Result<bool, TableError> {
        let change = self.change(state, provider, now, "SET browser = :browser", "attribute_not_exists(spentBy)");
        done(change.expression_attribute_values(":browser", text(browser.hash())).send().await, "binding a state")
    }

    /// Spends a state by a try of this name: true for one try, and for no other. The same try may ask again, as the SDK does
    /// when an answer was lost on its way.
    pub async fn consume(
        &self,
        state: &State,
        provider: &ProviderName,
        by: &str,
        now: Time,
    ) -> Result<bool, TableError> {
        let (update, unspent) =
            ("SET spentBy = :try REMOVE sealedVerifier", "(attribute_not_exists(spentBy) OR spentBy = :try)");
        let change = self.change(state, provider, now, update, unspent);
        done(change.expression_attribute_values(":try", text(by)).send().await, "spending a state")
    }

    /// A change of a state that is good for this provider now.
    fn change(
        &self,
        state: &State,
        provider: &ProviderName,
        now: Time,
        update: &str,
        unspent: &str,
    ) -> UpdateItemFluentBuilder {
        let (pk, sk) = key(state);
        let change = self.0.client.update_item().table_name(&self.0.name).key("pk", text(pk)).key("sk", text(sk));
        change
            .update_expression(update)
            .condition_expression(format!("provider = :provider AND expiresDate > :now AND {unspent}"))
            .expression_attribute_values(":provider", text(provider))
            .expression_attribute_values(":now", text(now))
    }
}

/// Whether a change was made, or its condition did not hold.
fn done(answer: Result<UpdateItemOutput, SdkError<UpdateItemError>>, doing: &'static str) -> Result<bool, TableError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.as_service_error(), Some(UpdateItemError::ConditionalCheckFailedException(_))) => {
            Ok(false)
        }
        Err(error) => Err(TableError::sdk(doing)(error)),
    }
}

fn key(state: &State) -> (String, String) {
    (format!("STATE#{}", state.hash()), "STATE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{random::SystemRandom, testing::CountingRandom};
    use storage::{sealing, table::write_item};

    fn name(text: &str) -> ProviderName {
        ProviderName::parse(text).expect("a name")
    }

    fn entity(text: &str) -> EntityId {
        EntityId::parse(text).expect("an entity")
    }

    #[test]
    fn a_state_is_43_characters_that_come_back_as_they_are() {
        let state = State::new(&SystemRandom);
        assert_eq!(state.expose().len(), 43);
        assert_eq!(State::parse(state.expose()), Some(state.clone()));
        assert_ne!(state, State::new(&SystemRandom));
        let longer = format!("{}x", state.expose());
        let spaced = format!("{} ", &state.expose()[..42]);
        for text in ["", &state.expose()[..42], &longer, &spaced, &"-".repeat(43), &"ä".repeat(43)] {
            assert_eq!(State::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_the_table_keeps_does_not_contain_the_state() {
        let state = State::new(&SystemRandom);
        let now = Time::from_millis(1_795_167_900_123);
        let pending = PendingAuthorization {
            entity: entity("demo-hotel"),
            provider: name("square"),
            sealed_verifier: None,
            onward: None,
            replace: false,
            expires_date: now + LIFETIME,
            browser: None,
            spent_by: None,
        };
        let item = format!("{:?}", write_item(&PendingItem::new(&state, &pending), "test").expect("an item"));
        assert!(!item.contains(state.expose()) && item.contains(&state.hash()));
        assert!(item.contains("1795172100"), "ten minutes and an hour: {item}");
        assert!(!format!("{state:?}").contains(state.expose()));
    }

    #[test]
    fn an_authorization_is_of_the_browser_that_went_on_and_of_no_other() {
        let (one, other) = (Browser::new(&SystemRandom), Browser::new(&SystemRandom));
        let item = serde_json::json!({
            "entity": "demo-hotel", "provider": "square", "expiresDate": "2026-11-20T09:55:00.123Z",
        });
        let mut pending: PendingAuthorization = serde_json::from_value(item).expect("one of a former version");
        assert!(pending.onward.is_none() && !pending.replace);
        assert!(!pending.is_of(&one), "one that went on from no page is nobody's");
        pending.browser = Some(one.hash());
        assert!(pending.is_of(&one) && !pending.is_of(&other));
    }

    #[test]
    fn a_verifier_opens_for_its_own_state_entity_and_provider_only() {
        let random = CountingRandom::default();
        let ring = sealing::ring("a");
        let (state, other) = (State::new(&random), State::new(&random));
        let (hotel, square) = (entity("demo-hotel"), name("square"));
        let verifier = Verifier::new(&random);
        let sealed = state.seal(&verifier, &ring, &random, &hotel, &square);
        let opened = state.open(&sealed, &ring, &hotel, &square).expect("opens");
        assert_eq!(opened.expose(), verifier.expose());
        assert!(other.open(&sealed, &ring, &hotel, &square).is_err());
        assert!(state.open(&sealed, &ring, &entity("other"), &square).is_err());
        assert!(state.open(&sealed, &ring, &hotel, &name("stripe")).is_err());
    }
}
