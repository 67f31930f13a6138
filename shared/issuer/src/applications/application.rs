//! An application: a client of the token issuer, what it may do, and what proves that it is itself.

use std::collections::BTreeMap;

use super::{ClientKey, ClientSecret};
use auth::{
    entity::{Entities, EntityId},
    scope::Scopes,
};
use base::clock::Time;
use storage::secrets::SecretBytes;

/// An application.
#[derive(Debug, Clone)]
pub struct Application {
    /// The client identifier: `app` and 22 letters and digits.
    pub client_id: String,
    /// What people call it.
    pub name: String,
    /// The managing entity that manages it over HTTP; without one, only the operator's command does.
    pub owner: Option<EntityId>,
    /// What it may ask for.
    pub scopes: Scopes,
    /// For whom.
    pub entities: Entities,
    /// Its secrets, the newest first, and perhaps some that have ended.
    pub secrets: Vec<ClientSecret>,
    /// Its public keys, the oldest first.
    pub keys: Vec<ClientKey>,
    /// The day (UTC, `2026-11-20`) on which each credential was last used, by the secret's identifier or the key's.
    pub last_used: BTreeMap<String, String>,
    /// Counts its changes, from 1. That a credential was used is none.
    pub version: u64,
    /// When it was made.
    pub created_date: Time,
    /// When it was last changed.
    pub last_update: Time,
}

impl Application {
    /// On whom it is counted what the application does: its owner, and itself where it has none.
    pub fn accountable(&self) -> &str {
        self.owner.as_ref().map_or(&self.client_id, EntityId::as_str)
    }

    /// The secrets that are accepted at this moment, the newest first.
    pub fn live_secrets(&self, now: Time) -> impl Iterator<Item = &ClientSecret> {
        self.secrets.iter().filter(move |secret| secret.is_live(now))
    }

    /// The secret that this text is, if it is one that is still good. Compares with every one, in constant time.
    pub fn secret(&self, presented: &str, pepper: &SecretBytes, now: Time) -> Option<&ClientSecret> {
        let presented = ClientSecret::hash_of(presented, pepper);
        let mut found = None;
        for secret in &self.secrets {
            if secret.has_hash(&presented) && secret.is_live(now) {
                found = Some(secret);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::new_application::NewApplication;
    use base::testing::CountingRandom;
    use storage::secrets::SecretText;

    #[test]
    fn only_a_live_secret_under_the_right_pepper_is_accepted() {
        let (pepper, other) = (SecretBytes::new(vec![1; 32]), SecretBytes::new(vec![2; 32]));
        let (start, before, end) = (Time::from_millis(0), Time::from_millis(999), Time::from_millis(1000));
        let random = CountingRandom::default();
        let kept = |text: &str| ClientSecret::of(&SecretText::new(text), &pepper, start, &random);
        let old = ClientSecret { expires_date: Some(end), ..kept("old") };
        let new = NewApplication::of_operator("n".into(), Scopes::ALL, Entities::new([]));
        let application = Application { secrets: vec![kept("new"), old], ..new.with("app".into(), None, start) };
        let accepted = |text: &str, pepper: &SecretBytes, now| {
            application.secret(text, pepper, now).map(|secret| secret.id.clone())
        };
        assert_eq!(accepted("old", &pepper, before).as_ref(), Some(&application.secrets[1].id));
        assert_eq!(accepted("new", &pepper, before).as_ref(), Some(&application.secrets[0].id));
        assert_eq!(accepted("old", &pepper, end), None);
        assert!(accepted("new", &pepper, end).is_some());
        assert!(accepted("new", &other, before).is_none() && accepted("", &pepper, before).is_none());
    }

    #[test]
    fn an_application_is_counted_on_its_owner_or_on_itself() {
        let new = NewApplication::of_operator("n".into(), Scopes::ALL, Entities::new([]));
        let alone = new.with("app".into(), None, Time::from_millis(0));
        assert_eq!(alone.accountable(), "app");
        let owner = EntityId::parse("hotel").ok();
        assert_eq!(Application { owner, ..alone }.accountable(), "hotel");
    }
}
