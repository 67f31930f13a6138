//! Applications: clients of the token issuer, with their rights and credentials.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{client_key::ClientKey, client_secret::ClientSecret};
use auth::{Entities, EntityId, Scopes};
use base::Time;
use problem::Metadata;
use storage::SecretBytes;

/// An application, as stored in the table. `view` defines how its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// The client identifier: `app` and 22 letters and digits.
    pub client_id: String,
    /// The name shown to people.
    pub name: String,
    /// The managing entity that manages the application over HTTP; without one, only the operator's command does.
    #[serde(rename = "ownerIdentifier", default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<EntityId>,
    /// The scopes that the application may request.
    pub scopes: Scopes,
    /// The managing entities that the application may act for.
    #[serde(rename = "managingEntities")]
    pub entities: Entities,
    /// Whether the application may publish events.
    pub may_publish: bool,
    /// The metadata that the owner stores with the application. Applications from release 1.0 have none.
    #[serde(default)]
    pub metadata: Metadata,
    /// The secrets, newest first: the live ones, and recently ended ones whose tokens may still be valid.
    pub secrets: Vec<ClientSecret>,
    /// The public keys, oldest first.
    pub keys: Vec<ClientKey>,
    /// The day (UTC, `2026-11-20`) on which each credential was last used, by the secret's identifier or the key's
    /// name. Written even when empty, so that an update can set an entry in it.
    pub last_used: BTreeMap<String, String>,
    /// The version, which starts at 1 and increases with each change. Using a credential is not a change.
    pub version: u64,
    /// When the application was created.
    pub created_date: Time,
    /// When the application was last changed.
    pub last_update: Time,
}

impl Application {
    /// The account that the application's actions count towards: its owner, or the application itself if it has no
    /// owner.
    pub fn accountable(&self) -> &str {
        self.owner.as_ref().map_or(&self.client_id, EntityId::as_str)
    }

    /// Whether the application has lost scopes that it had in `earlier`.
    pub fn lacks_scopes_of(&self, earlier: &Self) -> bool {
        !earlier.scopes.without(self.scopes).is_empty()
    }

    /// The secrets that are accepted at this time, newest first.
    pub fn live_secrets(&self, now: Time) -> impl Iterator<Item = &ClientSecret> {
        self.secrets.iter().filter(move |secret| secret.is_live(now))
    }

    /// The secrets whose tokens may be valid at this time, newest first: the live ones, and recently ended ones.
    pub fn kept_secrets(&self, now: Time) -> impl Iterator<Item = &ClientSecret> {
        self.secrets.iter().filter(move |secret| secret.is_kept(now))
    }

    /// The live secret with this value. Every live secret is compared, in constant time. Ended ones are not, so that
    /// the time does not reveal how often the secret was replaced.
    pub fn secret(&self, presented: &str, pepper: &SecretBytes, now: Time) -> Option<&ClientSecret> {
        let presented = ClientSecret::hash_of(presented, pepper);
        let mut found = None;
        for secret in self.live_secrets(now) {
            if secret.has_hash(&presented) {
                found = Some(secret);
            }
        }
        found
    }
}

/// An application's credentials after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingCredentials {
    /// The remaining secrets.
    pub secrets: Vec<ClientSecret>,
    /// The remaining keys.
    pub keys: Vec<ClientKey>,
    /// The removed credentials, by their identifiers in tokens. Tokens obtained with them are revoked.
    pub gone: Vec<String>,
}

impl RemainingCredentials {
    /// Whether the application will get no more tokens once all its secrets with an end have ended.
    pub fn will_give_no_tokens(&self) -> bool {
        self.keys.is_empty() && self.secrets.iter().all(|secret| secret.expires_date.is_some())
    }

    /// Whether the application gets no more tokens.
    pub fn gives_no_tokens(&self, now: Time) -> bool {
        self.keys.is_empty() && !self.secrets.iter().any(|secret| secret.is_live(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::new_application::NewApplication;
    use base::testing::CountingRandom;
    use storage::SecretText;

    #[test]
    fn only_a_live_secret_under_the_right_pepper_is_accepted() {
        let pepper = SecretBytes::new(vec![1; 32]);
        let other = SecretBytes::new(vec![2; 32]);
        let start = Time::from_millis(0);
        let before = Time::from_millis(999);
        let end = Time::from_millis(1000);
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
    fn an_ended_secret_is_listed_while_its_tokens_may_be_valid() {
        let minutes = |minutes: u64| Time::from_millis(0) + std::time::Duration::from_secs(minutes * 60);
        let secret = |text: &str| {
            let pepper = SecretBytes::new(vec![1; 32]);
            let random = CountingRandom::default();
            ClientSecret::of(&SecretText::new(text), &pepper, minutes(0), &random)
        };
        let ended = ClientSecret { expires_date: Some(minutes(60)), ..secret("old") };
        let new = NewApplication::of_operator("n".into(), Scopes::ALL, Entities::new([]));
        let application =
            Application { secrets: vec![secret("new"), ended], ..new.with("app".into(), None, minutes(0)) };
        let listed = |now| {
            let shown = serde_json::to_value(application.view(now, None)).expect("JSON");
            shown["secrets"].as_array().map(|secrets| secrets.iter().map(|one| one["expiresDate"].clone()).collect())
        };
        let both = vec![serde_json::Value::Null, serde_json::json!("1970-01-01T01:00:00.000Z")];
        for now in [0, 59, 60, 60 + 60 + 4] {
            assert_eq!(listed(minutes(now)), Some(both.clone()), "{now}");
        }
        assert_eq!(listed(minutes(60 + 60 + 5)), Some(both[..1].to_vec()));
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
