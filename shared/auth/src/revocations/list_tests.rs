//! The items of revocations in the table.

use super::{super::testing, *};
use base::logging;

const NOW: Time = Time::from_millis(1_795_167_900_123);

fn after(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// The item of a revocation, and the revocation that is read from it.
fn written(revocation: &Revocation) -> (serde_json::Value, Revocation) {
    let put = RevocationItem::put(revocation, Reached(revocation.made), "").expect("an item");
    (put.read_back("").expect("an item"), put.read_back::<Entry>("").expect("an entry").0)
}

#[test]
fn an_item_stands_at_its_time_and_comes_back_as_it_was() {
    let ids = [
        (Kind::Token, "a#b", "1795167900123#token#a#b"),
        (Kind::Client, "app1", "1795167900123#client#app1"),
        (Kind::Key, "key", "1795167900123#key#key"),
        (Kind::Credential, "app1#sec_1", "1795167900123#credential#app1#sec_1"),
    ];
    for (kind, id, sk) in ids {
        let revocation = Revocation::new(kind, id, NOW, after(3600));
        let (item, read) = written(&revocation);
        assert_eq!((&item["sk"], &item["pk"]), (&sk.into(), &"REVOKED#HOUR".into()));
        assert_eq!(item["expiresAt"], 1_795_171_501);
        assert_eq!(read, revocation);
    }
}

#[test]
fn long_revocations_stand_apart_from_short_ones() {
    for (seconds, pk) in [(1, "REVOKED#HOUR"), (3900, "REVOKED#HOUR"), (3901, "REVOKED#DAY"), (86_400, "REVOKED#DAY")] {
        assert_eq!(Revocation::new(Kind::Token, "t", NOW, after(seconds)).shelf().pk, pk, "{seconds}");
    }
    assert!(TOKENS_REVOKED <= DAY.life);
}

#[test]
fn an_entry_that_cannot_be_read_is_named_by_its_sort_key() {
    for sk in ["1795167900123#planet#mars", "1795167900123#token", "now#token#t", ""] {
        let item = Put::item(&serde_json::json!({ "sk": sk, "until": 1 }), "").expect("an item");
        let error = logging::chain(&item.read_back::<Entry>("").expect_err("no revocation"));
        assert!(error.contains(&format!("`{sk}`")), "{error}");
    }
}

#[test]
fn the_tokens_of_an_application_that_go_together_share_an_entry_for_five_minutes() {
    let claims = |issued: Time| Claims { credential_id: None, issued, expires: after(3600), ..testing::claims("t") };
    let (first, second) = (shared(&claims(NOW), NOW), shared(&claims(after(1)), after(299)));
    assert_eq!((first.sk(), first.shelf().pk), (second.sk(), "REVOKED#DAY"));
    assert_eq!((first.issued_until, second.issued_until), (NOW, after(1)));
    assert_ne!(shared(&claims(NOW), after(300)).sk(), first.sk());
    assert_eq!(written(&second).1, second);
}

#[test]
fn sort_keys_are_in_the_order_of_time() {
    let times = [0, 999, 1000, 1_795_167_900_123, 9_999_999_999_999].map(Time::from_millis);
    assert!(times.map(since).is_sorted());
}
