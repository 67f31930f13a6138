//! Histories with new seeds, a repeated history, and those that once broke a promise.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use simulation::{
    faults::Fault,
    history,
    journal::Journal,
    plan::{Plan, PlanKind},
};

/// How long to try new seeds.
const TIME: Duration = Duration::from_secs(45);

/// The kinds of requests that tenants, clients and operators make.
const REQUESTS: [&str; 28] = [
    "Register",
    "RegisterPulled",
    "Publish",
    "PutOnBus",
    "Enable",
    "Move",
    "Pull",
    "Order",
    "Read",
    "Remove",
    "Rotate",
    "Test",
    "Pause",
    "Resume",
    "Resend",
    "Cancel",
    "Erase",
    "Recover",
    "Replay",
    "OAuth Create",
    "OAuth AddSecret",
    "OAuth GetToken",
    "OAuth Revoke",
    "OAuth RemoveSecret",
    "OAuth RemoveApplication",
    "Providers Connect",
    "Providers Disconnect",
    "a return from a provider",
];

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn keeps_every_promise(plan: &Plan) {
    let broken: Vec<_> = history::run(plan, Journal::brief()).broken.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{}: {broken:#?}", plan.command());
}

#[test]
fn new_histories_keep_every_promise() {
    let first = RandomState::new().hash_one("the first seed") >> 16;
    let next = AtomicU64::new(first);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while began.elapsed() < TIME {
                    keeps_every_promise(&Plan::draw(next.fetch_add(1, Relaxed)));
                }
            });
        }
    });
    println!("kept every promise: make simulate FIRST={first} SEEDS={}", next.into_inner() - first);
}

#[test]
fn a_history_is_repeated_exactly() {
    for seed in 1..=12 {
        // Neither a log for readers nor earlier histories change the outcome.
        let journals = [Journal::brief(), Journal::readable(), Journal::brief()];
        let outcomes = journals.map(|journal| history::run(&Plan::draw(seed), journal));
        let numbers = outcomes.map(|outcome| (outcome.fingerprint, outcome.happened));
        assert!(numbers.iter().all(|other| *other == numbers[0]), "seed {seed}: {numbers:?}");
    }
}

/// If a kind of fault never occurred, for example because the calls that it affects have other names now, its
/// consequences would never be tested. Nor would those of requests that are always refused.
#[test]
fn every_kind_of_fault_occurs_and_every_kind_of_request_succeeds() {
    let mut missing: BTreeSet<_> = Fault::ALL.iter().copied().collect();
    let mut refused: BTreeSet<_> = REQUESTS.into_iter().collect();
    for seed in 1..=200 {
        let plan = Plan::draw(seed);
        let outcome = history::run(&plan, Journal::brief());
        assert!(outcome.broken.is_empty(), "{}: {:#?}", plan.command(), outcome.broken);
        for (_, _, fault) in outcome.coverage.faults.keys() {
            missing.remove(fault);
        }
        for (kind, _) in outcome.carried_out.iter().filter(|(_, is_done)| **is_done) {
            refused.remove(kind.as_str());
        }
        if missing.is_empty() && refused.is_empty() {
            return;
        }
    }
    panic!("no history has these faults: {missing:?}; these requests never succeed: {refused:?}");
}

/// If no history tested a promise about readers, the promise would always seem to be kept. Few of a history's answers
/// fail or come late, so the test runs histories until there are enough of them.
#[test]
fn readers_of_feeds_confirm_fail_and_answer_too_late() {
    let plans = (1..).map(Plan::draw).filter(|plan| plan.kind == PlanKind::Feeds);
    let mut answers = BTreeMap::<_, usize>::new();
    for plan in plans.take(60) {
        let outcome = history::run(&plan, Journal::brief());
        assert!(outcome.broken.is_empty(), "{}: {:#?}", plan.command(), outcome.broken);
        for (outcome, count) in outcome.answers {
            *answers.entry(outcome).or_default() += count;
        }
        let of = |outcome: &str| answers.get(outcome).copied().unwrap_or_default();
        if of("confirmed") > 20 && of("failed") > 3 && of("expired") > 0 {
            return;
        }
    }
    panic!("{answers:?}");
}

/// The promise about a subject's order is tested only if deliveries wait for each other. In many histories, none waits,
/// so the test runs histories until enough have waited.
#[test]
fn deliveries_of_a_subject_wait_for_the_one_before() {
    let plans = (1..).map(Plan::draw).filter(|plan| plan.order.is_some());
    let mut held = 0;
    for plan in plans.take(60) {
        let outcome = history::run(&plan, Journal::brief());
        assert!(outcome.broken.is_empty(), "{}: {:#?}", plan.command(), outcome.broken);
        held += outcome.held;
        if held > 20 {
            return;
        }
    }
    panic!("only {held} deliveries waited");
}

/// Regression test: a reader received a delivery seconds after its webhook was removed, since the webhook was read
/// before the delivery's event, and reading the event took seconds.
#[test]
fn a_removed_webhook_gives_nothing_to_a_waiting_reader() {
    let steps = [2, 4, 5, 8, 11, 40_000, 40_001, 40_002];
    keeps_every_promise(&Plan::draw(6_930).only(&steps).with_faults(&[Fault::AnswerLost, Fault::OldRead]));
}

/// Regression test: the SDK repeated an addition whose response was lost, and the statistics counted its attempts
/// twice.
#[test]
fn no_attempt_counts_twice_in_the_statistics() {
    keeps_every_promise(&Plan::draw(94));
}

/// Regression test: a permission was replaced after its refresh was claimed but before the provider responded. The
/// check considered the previous permission's tokens lost.
#[test]
fn a_permission_that_is_replaced_during_its_refresh_loses_nothing() {
    keeps_every_promise(&Plan::draw(9_001_144));
}

/// Regression test: an attempt was counted only when all of its message's attempts had ended. If the endpoint of
/// another attempt was silent, a failure was counted after a later success, and the webhook seemed to be failing.
#[test]
fn an_attempt_beside_a_silent_one_is_counted_within_a_second() {
    let plan = Plan { speed: 4, ..Plan::draw(6_003_496).only(&[0, 1, 4, 5, 29, 30]).with_faults(&[]) };
    keeps_every_promise(&plan);
}

/// Regression test: a publish request was frozen for minutes, wrote its event after the sweep had passed it, and died
/// before opening the deliveries. The next delivery about the subject waited for a delivery that was never sent.
#[test]
fn an_unopened_delivery_does_not_hold_its_line() {
    keeps_every_promise(&Plan::draw(702_645));
}
