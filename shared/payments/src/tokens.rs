//! A provider's tokens: in memory during one request, and sealed in the table.
//!
//! They are sealed for one entity at one provider, so that a copied item cannot be opened. Only
//! [`ProviderTokens::seal`] writes them.

use serde::{Deserialize, Serialize};

use crate::{granted_tokens::GrantedTokens, provider::ProviderName};
use auth::EntityId;
use base::Random;
use storage::{KeyRing, SealError, SecretText};

/// A connection's tokens.
#[derive(Debug, Clone)]
pub struct ProviderTokens {
    /// The access token.
    pub access: SecretText,
    /// The refresh token, if the provider gives one.
    pub refresh: Option<SecretText>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exposed<'a> {
    access_token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
}

impl ProviderTokens {
    /// The tokens after a provider's response. A refresh token that the response does not replace stays valid (RFC 6749
    /// §6).
    pub fn after(granted: &GrantedTokens, before: Option<&SecretText>) -> Self {
        Self { access: granted.access_token.clone(), refresh: granted.refresh_token.as_ref().or(before).cloned() }
    }

    /// Seals the tokens for the table.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random, owner: &EntityId, provider: &ProviderName) -> String {
        let exposed = Exposed {
            access_token: self.access.expose(),
            refresh_token: self.refresh.as_ref().map(SecretText::expose),
        };
        let plain = serde_json::to_vec(&exposed).expect("texts can be written as JSON");
        ring.seal(random, &context(owner, provider), &plain)
    }

    /// Decrypts this entity's stored tokens for this provider.
    pub fn open(sealed: &str, ring: &KeyRing, owner: &EntityId, provider: &ProviderName) -> Result<Self, SealError> {
        let plain = ring.open(&context(owner, provider), sealed)?;
        // The text was sealed with our key, but not by this program.
        let kept: Kept = serde_json::from_slice(plain.expose()).map_err(|_| SealError::NotOurs)?;
        Ok(Self { access: SecretText::new(kept.access_token), refresh: kept.refresh_token.map(SecretText::new) })
    }
}

/// The context for which an entity's tokens at a provider are sealed.
pub fn context(owner: &EntityId, provider: &ProviderName) -> String {
    format!("provider-tokens/{owner}/{provider}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use storage::sealing;

    fn tokens() -> ProviderTokens {
        ProviderTokens { access: SecretText::new("at-1\""), refresh: Some(SecretText::new("rt-1")) }
    }

    fn place(entity: &str, provider: &str) -> (EntityId, ProviderName) {
        (EntityId::parse(entity).expect("an entity"), ProviderName::parse(provider).expect("a name"))
    }

    #[test]
    fn tokens_sealed_for_one_entity_and_provider_open_for_no_other() {
        let ring = sealing::ring("a");
        let random = CountingRandom::default();
        let (hotel, square) = place("demo-hotel", "square");
        let sealed = tokens().seal(&ring, &random, &hotel, &square);
        assert!(!sealed.contains("at-1") && !sealed.contains("rt-1"));
        let opened = ProviderTokens::open(&sealed, &ring, &hotel, &square).expect("opens");
        assert_eq!(opened.access.expose(), "at-1\"");
        assert_eq!(opened.refresh.expect("there").expose(), "rt-1");
        for (entity, provider) in [("other-hotel", "square"), ("demo-hotel", "stripe")] {
            let (entity, provider) = place(entity, provider);
            let copied = ProviderTokens::open(&sealed, &ring, &entity, &provider);
            assert!(matches!(copied, Err(SealError::NotOurs)), "{entity} {provider}");
        }
    }

    #[test]
    fn tokens_without_a_refresh_token_stay_without() {
        let ring = sealing::ring("a");
        let random = CountingRandom::default();
        let (hotel, square) = place("demo-hotel", "square");
        let sealed = ProviderTokens { refresh: None, ..tokens() }.seal(&ring, &random, &hotel, &square);
        assert!(ProviderTokens::open(&sealed, &ring, &hotel, &square).expect("opens").refresh.is_none());
    }

    #[test]
    fn tokens_are_not_printed() {
        let printed = format!("{:?}", tokens());
        assert!(!printed.contains("at-1") && !printed.contains("rt-1"));
    }

    #[test]
    fn a_refresh_token_that_was_not_replaced_stays() {
        let mut granted = GrantedTokens {
            access_token: SecretText::new("at-2"),
            refresh_token: None,
            expires: None,
            scopes: Vec::new(),
            account: None,
        };
        let after = |granted: &GrantedTokens| ProviderTokens::after(granted, tokens().refresh.as_ref());
        assert_eq!(after(&granted).refresh.expect("kept").expose(), "rt-1");
        granted.refresh_token = Some(SecretText::new("rt-2"));
        assert_eq!(after(&granted).refresh.expect("new").expose(), "rt-2");
        assert_eq!(after(&granted).access.expose(), "at-2");
    }
}
