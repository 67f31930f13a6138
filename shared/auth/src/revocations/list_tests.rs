//! Revocation items in the table.

use super::{
    super::{revocation::LONGEST_LIFE, testing},
    *,
};
use base::logging;

const NOW: Time = Time::from_millis(1_795_167_900_123);

fn after(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// A revocation's item, and the revocation read from it.
fn written(revocation: &Revocation) -> (serde_json::Value, Revocation) {
    let put = RevocationItem::put(revocation, "").expect("an item");
    (put.read_back("").expect("an item"), put.read_back::<Entry>("").expect("an entry").0)
}

#[test]
fn an_item_sorts_by_its_time_and_keeps_its_end_in_whole_seconds() {
    let ids = [
        (Kind::Token, "a#b", "1795167900123#token#a#b"),
        (Kind::Client, "app1", "1795167900123#client#app1"),
        (Kind::Key, "key", "1795167900123#key#key"),
        (Kind::Credential, "app1#sec_1", "1795167900123#credential#app1#sec_1"),
        (Kind::Issued, "app1", "1795167900123#issued#app1"),
        (Kind::Session, "plk_1", "1795167900123#session#plk_1"),
    ];
    for (kind, id, sk) in ids {
        let revocation = Revocation { issued_until: after(5), ..Revocation::new(kind, id, NOW, after(3600)) };
        let (item, read) = written(&revocation);
        assert_eq!((&item["sk"], &item["pk"]), (&sk.into(), &"REVOKED".into()));
        assert_eq!(item["expiresAt"], 1_795_171_501);
        let expected = Revocation::new(kind, id, NOW, Time::from_millis(1_795_171_501_000));
        assert_eq!(read, Revocation { issued_until: after(5), ..expected });
    }
}

#[test]
fn the_latest_issue_time_is_stored_only_if_it_is_not_the_usual_one() {
    for kind in Kind::ALL {
        let (item, _) = written(&Revocation::new(kind, "id", NOW, after(3600)));
        assert_eq!(item.get("issuedUntil"), None, "{kind:?}");
    }
}

#[test]
fn a_start_reads_far_enough_back_for_every_revocation_that_applies() {
    let key = crate::keys::last_token_of_a_retired_key(crate::token::LONGEST_LIFETIME, NOW);
    assert!(TOKENS_REVOKED < LONGEST_LIFE && key < NOW + LONGEST_LIFE);
}

#[test]
fn an_unreadable_entry_is_named_by_its_sort_key() {
    for sk in ["1795167900123#planet#mars", "1795167900123#token", "now#token#t", ""] {
        let item = Put::item(&serde_json::json!({ "sk": sk, "expiresAt": 1 }), "").expect("an item");
        let error = logging::chain(&item.read_back::<Entry>("").expect_err("no revocation"));
        assert!(error.contains(&format!("`{sk}`")), "{error}");
    }
}

#[test]
fn revocations_of_one_applications_tokens_share_an_entry_for_five_minutes() {
    let claims = |issued: Time| Claims { issued, expires: after(3600), ..testing::claims("t") };
    let first = shared(&claims(NOW), NOW);
    let second = shared(&claims(after(1)), after(299));
    assert_eq!(sort_key(&first), sort_key(&second));
    assert_eq!((first.issued_until, second.issued_until), (NOW, after(1)));
    assert_ne!(sort_key(&shared(&claims(NOW), after(300))), sort_key(&first));
    assert_eq!(written(&second).1.issued_until, second.issued_until);
}

#[test]
fn sort_keys_are_in_the_order_of_time() {
    let times = [0, 999, 1000, 1_795_167_900_123, 9_999_999_999_999].map(Time::from_millis);
    assert!(times.map(since).is_sorted());
}
