//! A link's or a session's key: a secret, together with the entity and the link that it opens.
//!
//! A link's key is a code in its fragment, and a session's key is a cookie. The table stores only hashes, so that a
//! reader of the table cannot open the panel.

use aws_lc_rs::{constant_time, digest, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use auth::EntityId;
use base::{PanelLinkId, Random, random};
use storage::SecretText;

/// The number of characters for 256 bits, in Base64 or as letters and digits.
const LENGTH: usize = 43;

/// A key. Its text is `{entity}/{link}/{secret}`, in characters that need no encoding in a fragment or a cookie.
#[derive(Debug, Clone)]
pub struct PanelKey {
    /// The managing entity that the panel shows.
    pub entity: EntityId,
    /// The link, which also identifies a session, since a link opens exactly one.
    pub link: PanelLinkId,
    secret: SecretText,
}

impl PanelKey {
    /// A new key.
    pub fn new(entity: EntityId, link: PanelLinkId, random: &dyn Random) -> Self {
        Self { entity, link, secret: SecretText::new(random_secret(random)) }
    }

    /// Parses a key; `None` if the string has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let entity = parts.next()?;
        let link = parts.next()?;
        let secret = parts.next()?;
        let is_secret =
            secret.len() == LENGTH && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_secret || parts.next().is_some() {
            return None;
        }
        let entity = EntityId::parse(entity).ok()?;
        let link = PanelLinkId::parse(link)?;
        Some(Self { entity, link, secret: SecretText::new(secret) })
    }

    /// The text, for the holder of the key.
    pub fn expose(&self) -> String {
        format!("{}/{}/{}", self.entity, self.link, self.secret.expose())
    }

    /// The hash that the table stores.
    pub(super) fn hash(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.secret.expose().as_bytes()))
    }

    /// Whether the key has this hash. Compares in constant time.
    pub(super) fn has_hash(&self, hash: &str) -> bool {
        constant_time::verify_slices_are_equal(self.hash().as_bytes(), hash.as_bytes()).is_ok()
    }

    /// The key after this one. It is deterministic, so that concurrent and repeated requests get the same key. It
    /// depends on both the seed and this key, so neither the table nor an old key is enough to compute it.
    pub(super) fn next(&self, seed: &str) -> Self {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, seed.as_bytes()), self.secret.expose().as_bytes());
        Self { secret: SecretText::new(BASE64_URL_SAFE_NO_PAD.encode(tag)), ..self.clone() }
    }
}

/// A secret of 256 random bits.
pub(super) fn random_secret(random: &dyn Random) -> String {
    random::alphanumeric(random, LENGTH)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use base::{SystemRandom, Time};
    use proptest::prelude::*;

    pub fn key() -> PanelKey {
        let link = PanelLinkId::new(Time::from_millis(1_795_167_900_123), &SystemRandom);
        PanelKey::new(EntityId::parse("demo-hotel").expect("an entity"), link, &SystemRandom)
    }

    #[test]
    fn a_key_can_be_parsed_back_and_foreign_texts_are_refused() {
        for key in [key(), key().next("seed")] {
            let text = key.expose();
            let read = PanelKey::parse(&text).expect("a key");
            assert_eq!((read.expose(), read.hash()), (text.clone(), key.hash()));
            for foreign in
                ["", "/", "//", &text[1..], &text[..text.len() - 1], &format!("{text}A"), &format!("{text}/x")]
            {
                let known = PanelKey::parse(foreign).map(|key| key.expose());
                assert!(known.is_none() || foreign.ends_with(&text[1..]), "{foreign}: {known:?}");
            }
        }
    }

    #[test]
    fn the_next_key_depends_only_on_the_key_and_the_seed() {
        let key = key();
        assert_eq!(key.next("a").expose(), key.next("a").expose());
        assert!(key.next("a").hash() != key.next("b").hash() && key.next("a").hash() != key.hash());
    }

    #[test]
    fn a_key_is_not_printed_and_its_hash_does_not_contain_it() {
        let key = key();
        let secret = key.expose().rsplit('/').next().expect("a secret").to_owned();
        assert!(!format!("{key:?}").contains(&secret) && !key.hash().contains(&secret));
    }

    proptest! {
        #[test]
        fn any_text_is_either_refused_or_kept_unchanged(text in "\\PC{0,120}") {
            if let Some(key) = PanelKey::parse(&text) { prop_assert_eq!(key.expose(), text) }
        }
    }
}
