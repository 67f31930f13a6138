//! A cache of recently verified tokens. A client sends the same token for the token's whole lifetime. Verifying its
//! signature takes a hundred times as long as hashing it.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lc_rs::digest::{SHA256, digest};

use crate::{keys::KeySet, token::Claims};
use base::Time;

/// Number of tokens in each of the two generations: at most about 2 MB, since a token has at most 8 KB.
const GENERATION: usize = 128;

/// A token's hash. The token itself is not kept in memory.
type Hash = [u8; 32];

/// The claims of tokens whose form, signature and claims were verified with one set of keys. Revocation is not cached.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    /// The keys that verified the tokens. A different set invalidates the cache, because a key may have been withdrawn.
    keys: Option<Arc<KeySet>>,
    young: HashMap<Hash, Arc<Claims>>,
    old: HashMap<Hash, Arc<Claims>>,
}

/// A cached token, and the set of keys that verified it.
pub(crate) struct Found {
    by: Arc<KeySet>,
    claims: Arc<Claims>,
}

pub(crate) fn hash(token: &str) -> Hash {
    let digest = digest(&SHA256, token.as_bytes());
    *digest.as_ref().first_chunk().expect("a digest of SHA-256 has 32 bytes")
}

impl Remembered {
    /// Looks up a verified token.
    pub(crate) fn get(&self, hash: &Hash) -> Option<Found> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = generations.old.remove(hash) {
            generations.add(*hash, claims);
        }
        let by = generations.keys.as_ref()?;
        let claims = generations.young.get(hash)?;
        Some(Found { by: Arc::clone(by), claims: Arc::clone(claims) })
    }

    /// Caches a token that these keys verified.
    pub(crate) fn keep(&self, hash: Hash, keys: &Arc<KeySet>, claims: &Claims) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !generations.keys.as_ref().is_some_and(|present| Arc::ptr_eq(present, keys)) {
            *generations = Generations { keys: Some(Arc::clone(keys)), ..Generations::default() };
        }
        generations.add(hash, Arc::new(claims.clone()));
    }
}

impl Found {
    /// The token's claims, if these keys verified it and it has not expired.
    pub(crate) fn still_good(&self, keys: &Arc<KeySet>, now: Time) -> Option<Claims> {
        let claims = &*self.claims;
        let good = Arc::ptr_eq(&self.by, keys) && now < claims.expires && keys.get(&claims.key_id, now).is_some();
        good.then(|| claims.clone())
    }

    /// The name of the key that verified the token.
    pub(crate) fn kid(&self) -> &str {
        &self.claims.key_id
    }
}

impl Generations {
    /// Adds a token to the young generation. A full young generation replaces the old one, so tokens that were not used
    /// recently are dropped.
    fn add(&mut self, hash: Hash, claims: Arc<Claims>) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash, claims);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        entity::Entities,
        resource::Resource,
        scope::Scopes,
        signing::{SigningAlgorithm, SigningSecret},
    };

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn keys() -> (Arc<KeySet>, String) {
        let keys = SigningSecret::fresh(SigningAlgorithm::EdDsa).keys().expect("keys");
        (Arc::new(KeySet::of([keys.current.public_key()])), keys.current.kid().to_owned())
    }

    fn claims(kid: &str) -> Claims {
        Claims {
            client_id: "app".into(),
            credential_id: None,
            session_id: None,
            token_id: "t".into(),
            key_id: kid.into(),
            resource: Resource::Api,
            scopes: Scopes::ALL,
            entities: Entities::new([]),
            may_publish: false,
            issued: NOW,
            expires: NOW + Duration::from_secs(60),
        }
    }

    fn is_good(remembered: &Remembered, token: &str, keys: &Arc<KeySet>, now: Time) -> bool {
        remembered.get(&hash(token)).is_some_and(|found| found.still_good(keys, now).is_some())
    }

    #[test]
    fn a_token_is_cached_until_it_expires_and_by_its_whole_text() {
        let remembered = Remembered::default();
        let (keys, kid) = keys();
        remembered.keep(hash("a.b.c"), &keys, &claims(&kid));
        let found = |token, seconds| is_good(&remembered, token, &keys, NOW + Duration::from_secs(seconds));
        assert!(found("a.b.c", 0) && found("a.b.c", 59));
        assert!(!found("a.b.c", 60), "it has ended");
        assert!(!found("a.b.d", 0), "another signature");
    }

    #[test]
    fn the_cache_is_empty_after_a_new_read_of_the_keys_or_without_the_key() {
        let remembered = Remembered::default();
        let (keys, kid) = keys();
        remembered.keep(hash("a"), &keys, &claims(&kid));
        let again = Arc::new(KeySet::default());
        assert!(!is_good(&remembered, "a", &again, NOW));
        remembered.keep(hash("b"), &again, &claims(&kid));
        assert!(!is_good(&remembered, "b", &again, NOW), "the key is not among them");
        assert!(!is_good(&remembered, "a", &again, NOW), "it was good by other keys");
    }

    #[test]
    fn a_token_in_use_stays_cached_and_the_cache_is_bounded() {
        let remembered = Remembered::default();
        let (keys, kid) = keys();
        let keep = |number: usize| remembered.keep(hash(&number.to_string()), &keys, &claims(&kid));
        let knows = |number: usize| is_good(&remembered, &number.to_string(), &keys, NOW);
        for number in 0..1_000 {
            keep(number);
            assert!(knows(0), "{number}");
        }
        assert!(!knows(1));
        assert!((1..1_000).filter(|number| knows(*number)).count() <= 2 * GENERATION);
    }
}
