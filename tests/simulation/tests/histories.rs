//! Histories with new seeds, a repeated one, and those that once broke a promise.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use simulation::{history, journal::Journal, plan::Plan};

/// How long new seeds are tried.
const TIME: Duration = Duration::from_secs(45);

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
        // The log for a reader changes nothing, and neither do the histories before.
        let journals = [Journal::brief(), Journal::readable(), Journal::brief()];
        let outcomes = journals.map(|journal| history::run(&Plan::draw(seed), journal));
        let numbers = outcomes.map(|outcome| (outcome.fingerprint, outcome.happened));
        assert!(numbers.iter().all(|other| *other == numbers[0]), "seed {seed}: {numbers:?}");
    }
}

/// The SDK repeated an addition whose answer was lost, and the statistics counted its attempts twice.
#[test]
fn no_attempt_counts_twice_in_the_statistics() {
    keeps_every_promise(&Plan::draw(94));
}

/// A permission was replaced after its refresh was claimed, and before the provider answered. The check took the tokens
/// of the former one as lost.
#[test]
fn a_permission_that_is_replaced_during_its_refresh_loses_nothing() {
    keeps_every_promise(&Plan::draw(9_001_144));
}
