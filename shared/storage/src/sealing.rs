//! Sealing: encrypts customers' secrets in the table, and binds them to their items.
//!
//! AES-256-GCM with a random nonce. The context (kind of item, entity, identifier) is authenticated with the text, so a
//! copy in another item cannot be opened. The data key's name precedes the sealed bytes, so that keys can be rotated:
//! new keys seal, old ones still open.

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use serde::Deserialize;
use tokio::time::timeout;

use crate::secrets::{SecretBytes, SecretError, Secrets};
use base::refreshed::{Reading, Refreshed, Source};
use base::{Random, SharedClock, random};
use problem::Problem;

/// The secret with the key ring.
pub const SECRET: &str = "data-keys";

/// Minimum time between two reads of the ring that happen because a key is missing from it. A key is in the secret
/// before it seals anything, so only text sealed with a removed key is affected.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(5);
/// How long sealed text may wait for its key: shorter than the lease of a delivery waiting for the text.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// The keys that seal and open.
#[derive(Debug)]
pub struct KeyRing {
    current: String,
    keys: HashMap<String, LessSafeKey>,
}

/// The `data-keys` secret in Secrets Manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataKeys {
    current: String,
    keys: HashMap<String, SecretBytes>,
}

/// Text could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key ring could not be read.
    #[error("the key ring could not be read")]
    Ring(#[from] SecretError),
    /// The key ring lacks its current key, or a key does not have 256 bits.
    #[error("the key ring has no usable key `{0}`")]
    Key(String),
    /// The sealed text was changed, was copied from another item, or is not sealed text.
    #[error("a sealed value cannot be opened with this deployment's keys")]
    NotOurs,
}

impl SealError {
    /// The key ring's secret is malformed.
    pub fn malformed_ring(source: serde_json::Error) -> Self {
        Self::Ring(SecretError::Malformed { name: SECRET.to_owned(), source })
    }
}

/// The key ring in memory. Clones share it.
#[derive(Clone)]
pub struct KeyRings(Arc<Refreshed<RingSource>>);

struct RingSource(Secrets);

impl Source for RingSource {
    type Value = KeyRing;
    type Error = SealError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async {
            let DataKeys { current, keys } = self.0.read(SECRET).await?;
            KeyRing::new(current, keys)
        })
    }
}

impl KeyRings {
    /// The ring in these secrets. The first request reads it.
    pub fn new(secrets: Secrets, clock: SharedClock) -> Self {
        Self(Arc::new(Refreshed::new(RingSource(secrets), clock)))
    }

    /// The ring in these secrets, read now. A failure is logged, and the first request reads again.
    pub async fn warm(secrets: Secrets, clock: SharedClock) -> Self {
        Self(Arc::new(Refreshed::warm(RingSource(secrets), clock).await))
    }

    /// The ring for sealing.
    pub async fn get(&self) -> Result<Arc<KeyRing>, SealError> {
        self.0.get().await
    }

    /// The ring for opening this text. If it lacks the text's key, the ring is read again, so that a rotation never
    /// makes sealed text unreadable.
    pub async fn for_text(&self, sealed: &str) -> Result<Arc<KeyRing>, SealError> {
        let read = self.0.suitable(UNKNOWN_KEY_PAUSE, |ring| ring.knows_key_of(sealed));
        timeout(READ_LIMIT, read).await.unwrap_or_else(|late| {
            Err(SealError::Ring(SecretError::Unavailable { name: SECRET.to_owned(), reason: late.to_string() }))
        })
    }
}

impl KeyRing {
    /// The ring of a secret's value.
    pub fn from_secret(secret: &serde_json::Value) -> Result<Self, SealError> {
        let DataKeys { current, keys } = DataKeys::deserialize(secret).map_err(SealError::malformed_ring)?;
        Self::new(current, keys)
    }

    fn new(current: String, keys: HashMap<String, SecretBytes>) -> Result<Self, SealError> {
        let keys = keys
            .into_iter()
            .map(|(name, key)| match UnboundKey::new(&AES_256_GCM, key.expose()) {
                Ok(key) => Ok((name, LessSafeKey::new(key))),
                Err(_) => Err(SealError::Key(name)),
            })
            .collect::<Result<HashMap<_, _>, _>>()?;
        if keys.contains_key(&current) { Ok(Self { current, keys }) } else { Err(SealError::Key(current)) }
    }

    /// Seals these bytes for one context: `{key}.{Base64 of nonce, ciphertext and tag}`.
    pub fn seal(&self, random: &dyn Random, context: &str, plain: &[u8]) -> String {
        let nonce: [u8; NONCE_LEN] = random::bytes(random);
        let mut sealed = plain.to_vec();
        self.keys[&self.current]
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed)
            .expect("AES-GCM seals anything shorter than 64 GiB");
        format!("{}.{}", self.current, BASE64_STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Reseals text that an older key sealed for the same context; `None` if the current key sealed it.
    pub fn reseal(&self, random: &dyn Random, context: &str, sealed: &str) -> Result<Option<String>, SealError> {
        if key_of(sealed) == Some(&self.current) {
            return Ok(None);
        }
        let plain = self.open(context, sealed)?;
        Ok(Some(self.seal(random, context, plain.expose())))
    }

    fn knows_key_of(&self, sealed: &str) -> bool {
        // Text without a key's name is not sealed; another ring would not help.
        key_of(sealed).is_none_or(|key| self.keys.contains_key(key))
    }

    /// Opens text that was sealed for this context.
    pub fn open(&self, context: &str, sealed: &str) -> Result<SecretBytes, SealError> {
        let (key, bytes) = sealed.split_once('.').ok_or(SealError::NotOurs)?;
        let key = self.keys.get(key).ok_or_else(|| SealError::Key(key.to_owned()))?;
        let mut bytes = BASE64_STANDARD_NO_PAD.decode(bytes).map_err(|_| SealError::NotOurs)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(SealError::NotOurs)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::NotOurs)?;
        let plain = key.open_in_place(nonce, Aad::from(context), sealed).map_err(|_| SealError::NotOurs)?;
        Ok(SecretBytes::new(plain.to_vec()))
    }
}

/// Whether a string has the format of sealed text. Whether it can be opened depends on the key ring.
pub fn is_sealed(text: &str) -> bool {
    let bytes = text.split_once('.').and_then(|(_, bytes)| BASE64_STANDARD_NO_PAD.decode(bytes).ok());
    bytes.is_some_and(|bytes| bytes.len() >= NONCE_LEN + AES_256_GCM.tag_len())
}

/// The name of the key that sealed this text.
pub fn key_of(sealed: &str) -> Option<&str> {
    sealed.split_once('.').map(|(key, _)| key)
}

impl From<SealError> for Problem {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Ring(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

/// A ring of two keys, `a` and `b`, with this current key.
#[cfg(any(test, feature = "testing"))]
pub fn ring(current: &str) -> KeyRing {
    let keys = [("a", 1), ("b", 2)].map(|(name, byte)| (name.to_owned(), SecretBytes::new(vec![byte; 32])));
    KeyRing::new(current.into(), keys.into()).expect("both keys have 32 bytes, and the current one is a or b")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    #[test]
    fn a_sealed_text_opens_only_in_its_context() {
        let sealed = ring("a").seal(&SystemRandom, "webhook/hotel/1", b"plain");
        assert_eq!(ring("a").open("webhook/hotel/1", &sealed).expect("opens").expose(), b"plain");
        assert!(matches!(ring("a").open("webhook/other/1", &sealed), Err(SealError::NotOurs)));
    }

    #[test]
    fn a_sealed_text_is_recognized_by_its_format() {
        let sealed = ring("a").seal(&SystemRandom, "here", b"");
        assert!(is_sealed(&sealed));
        for text in ["", ".", "a", "a.", "a.AAAA", "a.!", &sealed[2..], &sealed[..sealed.len() - 2]] {
            assert!(!is_sealed(text), "{text}");
        }
    }

    #[test]
    fn an_older_key_still_opens_after_a_new_one_seals() {
        let sealed = ring("a").seal(&SystemRandom, "here", b"plain");
        assert_eq!(ring("b").open("here", &sealed).expect("opens").expose(), b"plain");
    }

    #[test]
    fn only_a_text_of_an_older_key_is_sealed_again() {
        let old = ring("a").seal(&SystemRandom, "here", b"plain");
        let new = ring("b").reseal(&SystemRandom, "here", &old).expect("opens").expect("sealed again");
        assert_eq!(key_of(&new), Some("b"));
        assert_eq!(ring("b").open("here", &new).expect("opens").expose(), b"plain");
        assert_eq!(ring("b").reseal(&SystemRandom, "here", &new).expect("nothing to do"), None);
        assert!(ring("b").reseal(&SystemRandom, "there", &old).is_err());
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_detected() {
        let ring = ring("a");
        let sealed = ring.seal(&SystemRandom, "here", b"plain");
        let bytes = BASE64_STANDARD_NO_PAD.decode(&sealed[2..]).expect("base 64");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(ring.open("here", &format!("a.{}", BASE64_STANDARD_NO_PAD.encode(changed))).is_err(), "bit {bit}");
        }
        for end in 0..sealed.len() {
            assert!(ring.open("here", &sealed[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_ring_without_current_key_or_with_a_short_key_is_refused() {
        assert!(matches!(KeyRing::new("x".into(), HashMap::new()), Err(SealError::Key(_))));
        let short = [("a".to_owned(), SecretBytes::new(vec![1; 16]))].into();
        assert!(matches!(KeyRing::new("a".into(), short), Err(SealError::Key(_))));
    }
}
