//! The published set of keys: settling, revoking, and the item in the table.

use super::*;
use crate::signing::{SigningAlgorithm, SigningKey, SigningSecret};

const NOW: Time = Time::from_millis(1_795_167_900_123);

fn keys() -> SigningKeys {
    SigningSecret::fresh(SigningAlgorithm::EdDsa).keys().expect("keys")
}

#[test]
fn a_key_verifies_tokens_until_its_end_and_then_disappears() {
    let old = keys();
    let new = keys();
    let mut published = Published::default();
    published.settle(&old, 60, NOW).expect("none is revoked");
    published.settle(&new, 60, NOW).expect("none is revoked");
    let end = NOW + Duration::from_secs(7 * 60);
    let last = end - Duration::from_millis(1);
    assert_eq!(published.alive(last).keys.len(), 4);
    let left: Vec<_> = published.alive(end).keys.iter().map(|key| key.kid().to_owned()).collect();
    assert_eq!(left, [new.current.kid(), new.next.kid()]);

    let set = KeySet::published(published.keys.clone());
    assert!(set.get(old.current.kid(), last).is_some() && set.get(old.current.kid(), end).is_none());
    assert!(set.knows(old.current.kid()) && set.get(new.next.kid(), end).is_some());
    assert!(!set.knows("another"));

    published.settle(&new, 60, end).expect("none is revoked");
    assert_eq!(published.keys.len(), 2);
}

#[test]
fn the_end_of_a_key_is_never_postponed_and_a_key_used_again_has_none() {
    let old = keys();
    let new = keys();
    let mut published = Published::default();
    published.settle(&old, 60, NOW).expect("none is revoked");
    published.settle(&new, 60, NOW).expect("none is revoked");
    let end = |published: &Published, key: &SigningKey| published.get(key.kid(), NOW).expect("published").until;
    let first = end(&published, &old.current);
    published.settle(&new, 60, NOW + Duration::from_secs(60)).expect("none is revoked");
    assert_eq!(end(&published, &old.current), first);
    published.settle(&old, 60, NOW + Duration::from_secs(60)).expect("none is revoked");
    assert_eq!(end(&published, &old.current), None);
    assert!(end(&published, &new.current).is_some());
}

#[test]
fn a_key_is_published_in_the_form_of_its_rfc_and_can_be_read_back() {
    for (algorithm, members) in [
        (SigningAlgorithm::Es256, vec!["alg", "crv", "kid", "kty", "use", "x", "y"]),
        (SigningAlgorithm::EdDsa, vec!["alg", "crv", "kid", "kty", "use", "x"]),
    ] {
        let key = SigningKey::generate(algorithm).public_key();
        let jwk = serde_json::to_value(&key).expect("JSON");
        assert_eq!(jwk.as_object().expect("an object").keys().collect::<Vec<_>>(), members);
        let item = Put::item(&PublishedKey { key, published: NOW, until: Some(NOW) }, "a key").expect("an item");
        let read: PublishedKey = item.read_back("a key").expect("a key");
        assert_eq!(serde_json::to_value(&read.key).expect("JSON"), jwk);
        assert_eq!((read.published, read.until, read.key.algorithm()), (NOW, Some(NOW), algorithm));
    }
}

#[test]
fn publishing_a_revoked_key_fails_and_changes_nothing() {
    let old = keys();
    let new = keys();
    let unpublished = keys();
    let mut published = Published::default();
    published.settle(&old, 60, NOW).expect("none is revoked");
    published.settle(&new, 60, NOW).expect("none is revoked");
    // A rotation not yet aware of the emergency gives the new keys an end.
    published.settle(&old, 60, NOW).expect("not yet revoked");
    let others = [unpublished.next.kid(), new.next.kid()].map(str::to_owned);
    published.revoke_others(&new, &others, NOW).expect("the new ones are good");
    let is_as_it_should_be = |published: &Published| {
        let left: Vec<_> = published.keys.iter().map(|key| (key.key.kid(), key.until)).collect();
        assert_eq!(left, [(new.current.kid(), None), (new.next.kid(), None)]);
    };
    is_as_it_should_be(&published);

    // The item remembers revoked keys even if the revocation is repeated, and for longer than any function could use a
    // set that it has read.
    published.revoke_others(&new, &others, NOW).expect("again");
    let pk = PK.to_owned();
    let sk = SK.to_owned();
    let item = KeysItem { pk, sk, keys: published.keys, revoked: published.revoked, version: 1 };
    let item: KeysItem = Put::item(&item, "keys").expect("an item").read_back("keys").expect("keys");
    let mut published = Published::from(item);
    let later = NOW + REMEMBERED - Duration::from_millis(1);
    for revoked in [&old.current, &old.next, &unpublished.next] {
        let refused = published.add(revoked.public_key(), later).expect_err("revoked");
        assert_eq!(refused, RevokedKey(revoked.kid().to_owned()));
    }
    assert_eq!(published.settle(&old, 60, later), Err(RevokedKey(old.current.kid().to_owned())));
    assert!(published.revoke_others(&old, &[], later).is_err());
    is_as_it_should_be(&published);
    assert_eq!(published.revoked.len(), 3);
    published.settle(&new, 60, NOW + REMEMBERED).expect("the new ones are good");
    assert!(published.revoked.is_empty());
}
