//! The list in memory: when it is read, which calls wait, and which revocations apply in the meantime.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use futures::FutureExt;

use super::{
    testing::{START, after, claims},
    *,
};
use base::{Time, testing::FixedClock};

/// A list that can fail or hang, and that counts its reads and records their start times.
#[derive(Default)]
struct List {
    made: std::sync::Mutex<Vec<Revocation>>,
    reads: AtomicU32,
    last_from: std::sync::Mutex<Option<Time>>,
    last_consistency: std::sync::Mutex<Option<Consistency>>,
    fails: AtomicBool,
    hangs: AtomicBool,
    /// Fails after the first page, which is one revocation.
    breaks: AtomicBool,
}

impl List {
    fn make(&self, at: Time, kind: Kind, id: &str, until: Time) {
        self.made.lock().expect("no panic").push(Revocation::new(kind, id, at, until));
    }

    fn reads(&self) -> u32 {
        self.reads.load(Ordering::SeqCst)
    }

    fn last_from(&self) -> Option<Time> {
        *self.last_from.lock().expect("no panic")
    }

    fn last_consistency(&self) -> Option<Consistency> {
        *self.last_consistency.lock().expect("no panic")
    }
}

impl RevocationSource for Arc<List> {
    async fn made_since(
        &self,
        from: Time,
        consistency: Consistency,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        *self.last_from.lock().expect("no panic") = Some(from);
        *self.last_consistency.lock().expect("no panic") = Some(consistency);
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.fails.load(Ordering::SeqCst) {
            return Err(TableError::Missing("the list"));
        }
        let made = self.made.lock().expect("no panic");
        for revocation in made.iter().filter(|one| one.made >= from) {
            page(vec![revocation.clone()]);
            if self.breaks.load(Ordering::SeqCst) {
                return Err(TableError::Missing("the next page"));
            }
        }
        Ok(())
    }
}

fn stand() -> (Arc<List>, FixedClock, Revocations<Arc<List>>) {
    let list = Arc::new(List::default());
    let clock = FixedClock::at(START);
    let revocations = Revocations::new(list.clone(), Arc::new(clock.clone()));
    (list, clock, revocations)
}

/// A revocation of each kind that applies to this token.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Token, "token"),
    (Kind::Client, "app"),
    (Kind::Key, "kid"),
    (Kind::Credential, "app#sec_1"),
    (Kind::Issued, "app"),
];

#[tokio::test]
async fn a_token_is_revoked_by_itself_its_application_its_credential_or_its_key() {
    for (kind, id) in KINDS {
        let (list, _, revocations) = stand();
        assert!(!revocations.revoked(&claims("token")).await.expect("read"));
        list.make(START, kind, id, after(100));
        assert!(revocations.revoked_by_fresh_list(&claims("token")).await.expect("read"), "{kind:?}");
        let (list, _, revocations) = stand();
        list.make(START, kind, id, after(100));
        assert!(revocations.revoked(&claims("token")).await.expect("read"), "{kind:?}");
        for (other, others) in KINDS.into_iter().filter(|(_, others)| *others != id) {
            let (list, _, revocations) = stand();
            list.make(START, other, id, after(100));
            assert!(!revocations.revoked(&claims("token")).await.expect("read"), "{id} as {other:?}, not {others}");
        }
    }
}

#[tokio::test]
async fn credentials_of_other_applications_are_distinct() {
    let (list, _, revocations) = stand();
    for id in ["other#sec_1", "app#sec_2", "app#", "#sec_1"] {
        list.make(START, Kind::Credential, id, after(100));
    }
    assert!(!revocations.revoked(&claims("token")).await.expect("read"));
}

#[tokio::test]
async fn a_session_of_the_operator_works_without_a_credential() {
    let of_operator = || Claims { credential_id: None, session_id: Some("plk_1".into()), ..claims("token") };
    let (list, _, revocations) = stand();
    list.make(START, Kind::Credential, "app#sec_2", after(90_000));
    assert!(!revocations.revoked(&of_operator()).await.expect("read"));
    for (kind, id) in [(Kind::Session, "plk_1"), (Kind::Client, "app")] {
        let (list, _, revocations) = stand();
        list.make(START, kind, id, after(90_000));
        assert!(revocations.revoked(&of_operator()).await.expect("read"), "{kind:?}");
    }
}

#[tokio::test]
async fn revoking_up_to_a_token_spares_later_ones() {
    let (list, _, revocations) = stand();
    let up_to = |seconds| Revocation {
        issued_until: after(seconds),
        ..Revocation::new(Kind::Issued, "app", START, after(90_000))
    };
    list.made.lock().expect("no panic").extend([up_to(10), up_to(5)]);
    let issued = |seconds| Claims { issued: after(seconds), ..claims("token") };
    assert!(revocations.revoked(&issued(10)).await.expect("read"));
    assert!(!revocations.revoked(&issued(11)).await.expect("read"));
}

#[tokio::test]
async fn every_half_minute_only_new_revocations_are_read() {
    let (list, clock, revocations) = stand();
    assert!(!revocations.revoked(&claims("token")).await.expect("read"));
    list.make(after(1), Kind::Token, "token", after(1000));
    clock.set(after(29));
    assert!(!revocations.revoked(&claims("token")).await.expect("known"));
    assert_eq!(list.reads(), 1);
    clock.set(after(30));
    assert!(revocations.revoked(&claims("token")).await.expect("read again"));
    assert_eq!((list.reads(), list.last_from()), (2, Some(START - OVERLAP)));
    clock.set(after(60));
    assert!(revocations.revoked(&claims("token")).await.expect("still"));
    assert_eq!(list.last_from(), Some(after(30) - OVERLAP));
}

#[tokio::test]
async fn while_one_call_reads_others_continue_until_the_list_is_old() {
    let (list, clock, revocations) = stand();
    revocations.warm_up().await;
    list.hangs.store(true, Ordering::SeqCst);
    clock.set(after(44));
    let first = claims("first");
    let mut first = std::pin::pin!(revocations.revoked(&first));
    assert!((&mut first).now_or_never().is_none(), "the first reads");
    assert!(revocations.revoked(&claims("second")).now_or_never().is_some(), "the second continues");
    clock.set(after(45));
    assert!(revocations.revoked(&claims("third")).now_or_never().is_none(), "the third waits");
    assert_eq!(list.reads(), 2);
}

#[tokio::test]
async fn when_a_read_fails_calls_use_the_list_in_memory() {
    let (list, clock, revocations) = stand();
    list.make(START, Kind::Token, "token", after(1000));
    revocations.warm_up().await;
    list.fails.store(true, Ordering::SeqCst);
    clock.set(after(100));
    assert!(revocations.revoked(&claims("token")).await.expect("known"));
    assert!(!revocations.revoked(&claims("other")).await.expect("known"));
    assert_eq!(list.reads(), 2);
    list.fails.store(false, Ordering::SeqCst);
    list.hangs.store(true, Ordering::SeqCst);
    clock.set(after(105));
    assert!(revocations.revoked(&claims("token")).await.expect("after two seconds"));
    assert_eq!(list.reads(), 3);
}

#[tokio::test]
async fn a_list_of_five_minutes_ago_is_not_enough() {
    let (list, clock, revocations) = stand();
    revocations.warm_up().await;
    list.make(after(1), Kind::Token, "token", after(7200));
    list.fails.store(true, Ordering::SeqCst);
    clock.set(after(299));
    assert!(!revocations.revoked(&claims("token")).await.expect("known"));
    clock.set(after(300));
    assert!(revocations.revoked(&claims("token")).await.is_err(), "although the list is not read again for a while");
    list.fails.store(false, Ordering::SeqCst);
    clock.set(after(3600));
    assert!(revocations.revoked(&claims("token")).await.expect("read"));
}

#[tokio::test]
async fn without_a_recent_list_a_call_waits_for_the_read() {
    let (list, clock, revocations) = stand();
    revocations.warm_up().await;
    list.hangs.store(true, Ordering::SeqCst);
    clock.set(after(3600));
    assert!(timeout(READING_LIMIT + Duration::from_secs(1), revocations.revoked(&claims("token"))).await.is_err());
}

#[tokio::test]
async fn pages_before_a_failure_count_and_the_next_read_skips_none() {
    let (list, clock, revocations) = stand();
    revocations.warm_up().await;
    list.make(after(1200), Kind::Token, "first", after(7200));
    list.make(after(2400), Kind::Token, "second", after(7200));
    list.breaks.store(true, Ordering::SeqCst);
    clock.set(after(3000));
    assert!(revocations.revoked(&claims("first")).await.is_err());
    assert!(revocations.with_known(|known| known.revokes(&claims("first"))));
    list.breaks.store(false, Ordering::SeqCst);
    assert!(revocations.revoked(&claims("second")).await.expect("read"));
    assert_eq!(list.last_from(), Some(START - OVERLAP));
}

#[tokio::test]
async fn the_revocation_of_a_slow_clock_is_read() {
    let (list, clock, revocations) = stand();
    clock.set(after(600));
    revocations.warm_up().await;
    list.make(after(600 - 590), Kind::Token, "token", after(7200));
    clock.set(after(630));
    assert!(revocations.revoked(&claims("token")).await.expect("read"));
}

#[tokio::test]
async fn a_shared_entry_is_read_again_while_it_changes() {
    let (list, clock, revocations) = stand();
    let up_to = |seconds| Revocation {
        issued_until: after(seconds),
        ..Revocation::new(Kind::Issued, "app", START, after(90_000))
    };
    list.made.lock().expect("no panic").push(up_to(0));
    // The entry is first made by a clock that is five minutes slow, and changes for five more minutes.
    clock.set(after(599));
    let claims = Claims { issued: after(590), ..claims("token") };
    assert!(!revocations.revoked(&claims).await.expect("read"));
    list.made.lock().expect("no panic")[0] = up_to(590);
    clock.set(after(629));
    assert!(revocations.revoked(&claims).await.expect("read again"));
}

#[tokio::test]
async fn an_application_that_is_registered_again_has_valid_tokens() {
    let (list, _, revocations) = stand();
    list.make(START, Kind::Client, "app", after(90_000));
    let issued = |seconds| Claims { issued: after(seconds), ..claims("token") };
    assert!(revocations.revoked(&issued(300)).await.expect("read"));
    assert!(!revocations.revoked(&issued(301)).await.expect("known"));
    list.make(after(400), Kind::Client, "app", after(90_400));
    assert!(revocations.revoked_by_fresh_list(&issued(700)).await.expect("removed again"));
}

#[tokio::test]
async fn before_the_first_reading_a_check_fails() {
    let (list, _, revocations) = stand();
    list.fails.store(true, Ordering::SeqCst);
    revocations.warm_up().await;
    assert!(revocations.revoked(&claims("token")).await.is_err());
    list.fails.store(false, Ordering::SeqCst);
    assert!(!revocations.revoked(&claims("token")).await.expect("read"));
}

#[tokio::test]
async fn a_check_of_this_moment_reads_at_once_or_fails() {
    let (list, clock, revocations) = stand();
    revocations.warm_up().await;
    clock.set(after(1));
    list.make(after(1), Kind::Token, "token", after(1000));
    assert!(!revocations.revoked(&claims("token")).await.expect("known"));
    assert!(revocations.revoked_by_fresh_list(&claims("token")).await.expect("read"));
    list.fails.store(true, Ordering::SeqCst);
    assert!(revocations.revoked_by_fresh_list(&claims("token")).await.is_err());
    assert!(revocations.revoked(&claims("token")).await.expect("known"));
}

#[tokio::test]
async fn a_check_of_this_moment_reads_after_the_clock_was_set_back() {
    let (list, clock, revocations) = stand();
    clock.set(after(1));
    assert!(!revocations.revoked_by_fresh_list(&claims("token")).await.expect("read"));
    clock.set(START);
    list.make(START, Kind::Token, "token", after(1000));
    assert!(revocations.revoked_by_fresh_list(&claims("token")).await.expect("read again"));
}

#[tokio::test]
async fn calls_that_wait_for_a_read_share_the_next_one() {
    let (list, clock, revocations) = stand();
    list.hangs.store(true, Ordering::SeqCst);
    let one = claims("token");
    let mut reader = Box::pin(revocations.revoked_by_fresh_list(&one));
    assert!((&mut reader).now_or_never().is_none());
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(revocations.revoked_by_fresh_list(&one))).collect();
    assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
    drop(reader);
    list.hangs.store(false, Ordering::SeqCst);
    clock.set(after(1));
    for one in waiting {
        assert!(!one.await.expect("read"));
    }
    assert_eq!(list.reads(), 2);
}

#[tokio::test]
async fn ended_revocations_are_dropped_or_not_stored() {
    let (list, clock, revocations) = stand();
    list.make(START, Kind::Token, "ended", START);
    list.make(START, Kind::Token, "short", after(40));
    list.make(START, Kind::Token, "long", after(4000));
    list.make(START, Kind::Token, "long", after(50));
    revocations.warm_up().await;
    assert_eq!(revocations.with_known(Known::len), 2);
    clock.set(after(200));
    assert!(revocations.revoked(&claims("long")).await.expect("read"));
    assert_eq!(revocations.with_known(Known::len), 1);
}

#[tokio::test]
async fn a_start_reads_all_revocations_that_apply_and_later_reads_new_ones() {
    let (list, clock, revocations) = stand();
    list.make(START - LONGEST_LIFE, Kind::Token, "token", after(1));
    revocations.warm_up().await;
    assert_eq!((list.last_from(), list.last_consistency()), (Some(START - LONGEST_LIFE), Some(Consistency::Eventual)));
    assert!(revocations.revoked(&claims("token")).await.expect("known"));
    clock.set(after(30));
    assert!(!revocations.revoked(&claims("token")).await.expect("it has ended"));
    assert_eq!((list.last_from(), list.last_consistency()), (Some(START - OVERLAP), Some(Consistency::Strong)));
    clock.set(after(24 * 3600));
    assert!(!revocations.revoked(&claims("token")).await.expect("read"));
    assert_eq!(list.last_from(), Some(after(24 * 3600) - LONGEST_LIFE), "nothing older can count");
}
