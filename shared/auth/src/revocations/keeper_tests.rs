//! Snapshots that are made while revocations come, in every order: none that was acknowledged is missed by a start.

use std::sync::{Arc, Mutex as StdMutex};

use proptest::{collection::vec, prelude::*};

use super::{
    super::{
        testing::{START, after, claims},
        *,
    },
    *,
};
use base::{SystemRandom, Time, testing::FixedClock};

const MINUTE: u64 = 60;

/// A list in which an entry is seen from when it was committed until TTL removes it.
#[derive(Default)]
struct List {
    entries: StdMutex<Vec<(Time, Revocation)>>,
    /// By the time from which a start reads it.
    snapshots: StdMutex<Vec<(Time, Snapshot)>>,
    /// What is seen is of this time, whatever the clock of the reader says.
    real: StdMutex<Option<Time>>,
}

impl List {
    fn add(&self, committed: Time, revocation: Revocation) {
        self.entries.lock().expect("no panic").push((committed, revocation));
    }
}

impl RevocationSource for Arc<List> {
    async fn last_snapshot(&self, now: Time) -> Result<Option<Snapshot>, SnapshotError> {
        let snapshots = self.snapshots.lock().expect("no panic");
        Ok(snapshots.iter().rev().find(|(written, _)| *written <= now).map(|(_, snapshot)| snapshot.clone()))
    }

    /// As late as it has to be, and no later.
    async fn horizon(&self, _: Seen) -> Result<Option<Time>, TableError> {
        let real = self.real.lock().expect("no panic").expect("it is set");
        let entries = self.entries.lock().expect("no panic");
        let made = entries.iter().filter(|(committed, _)| *committed <= real).map(|(_, one)| one.made);
        Ok(Some(made.max().unwrap_or(Time::from_millis(0))))
    }

    async fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        let real = self.real.lock().expect("no panic").unwrap_or(now);
        let entries = self.entries.lock().expect("no panic");
        let seen = |(committed, one): &&(Time, Revocation)| {
            *committed <= real && one.until > real && from.is_none_or(|from| one.made >= from)
        };
        page(entries.iter().filter(seen).map(|(_, one)| one.clone()).collect());
        Ok(())
    }
}

/// A token that is good for a day.
fn token(number: usize) -> Claims {
    Claims { expires: after(86_400), ..claims(number.to_string()) }
}

/// The clock is right, and it is this time.
fn it_is(time: Time, list: &List, clock: &FixedClock) {
    clock.set(time);
    *list.real.lock().expect("no panic") = Some(time);
}

fn keeper(list: &Arc<List>, clock: &FixedClock) -> SnapshotKeeper<Arc<List>> {
    SnapshotKeeper::new(list.clone(), Arc::new(clock.clone()), &SystemRandom)
}

/// The snapshot that the keeper writes at this time, if any, written or not.
async fn wanted(keeper: &SnapshotKeeper<Arc<List>>, is_written: bool) -> Option<Snapshot> {
    let mut kept = keeper.kept.lock().await;
    if !keeper.is_due(&kept) {
        return None;
    }
    let horizon = keeper.source.horizon(Seen::Now).await.expect("read");
    let snapshot = keeper.wanted(&mut kept, horizon).await.expect("read")?;
    if is_written {
        kept.note_written(&snapshot);
    }
    Some(snapshot)
}

/// A snapshot of the list by now, however little has changed.
async fn snapshot_by(keeper: &SnapshotKeeper<Arc<List>>) -> Snapshot {
    let (mut kept, now) = (keeper.kept.lock().await, keeper.surely_past());
    keeper.read(&mut kept, now).await.expect("read");
    kept.known.snapshot(now)
}

fn tokens(list: &Arc<List>, numbers: std::ops::Range<usize>, made: Time, until: Time) {
    for number in numbers {
        list.add(made, Revocation::new(Kind::Token, &number.to_string(), made, until));
    }
}

#[tokio::test]
async fn a_snapshot_is_made_at_first_and_when_much_of_the_list_has_come_or_ended() {
    let (list, clock) = (Arc::new(List::default()), FixedClock::at(START));
    let keeper = keeper(&list, &clock);
    let at_minute = async |minute: u64| {
        it_is(after(minute * MINUTE), &list, &clock);
        wanted(&keeper, true).await.map(|snapshot| snapshot.count())
    };
    assert_eq!(at_minute(0).await, Some(0), "that nothing is revoked is worth knowing");
    assert_eq!(at_minute(5).await, None, "nothing is new");
    tokens(&list, 0..1, after(5 * MINUTE), after(86_000));
    assert_eq!(at_minute(10).await, Some(1), "each counts in a short list");
    tokens(&list, 1..4_000, after(10 * MINUTE), after(3900));
    assert_eq!(at_minute(15).await, Some(4_000));
    tokens(&list, 4_000..4_249, after(15 * MINUTE), after(86_000));
    assert_eq!(at_minute(20).await, None, "less than a sixteenth");
    tokens(&list, 4_249..4_300, after(20 * MINUTE), after(86_000));
    assert_eq!(at_minute(25).await, Some(4_300));
    assert_eq!(at_minute(75).await, Some(301), "most have ended");
}

#[tokio::test]
async fn a_snapshot_is_made_once_more_when_a_start_need_not_look_for_what_is_in_it() {
    let (list, clock) = (Arc::new(List::default()), FixedClock::at(START));
    let keeper = keeper(&list, &clock);
    let at_minute = async |minute: u64| {
        it_is(after(minute * MINUTE), &list, &clock);
        wanted(&keeper, true).await.map(|snapshot| snapshot.count())
    };
    tokens(&list, 0..1, after(5 * MINUTE), after(86_000));
    assert_eq!(at_minute(5).await, Some(1));
    for minute in [10, 15, 20] {
        assert_eq!(at_minute(minute).await, None, "{minute}");
    }
    assert_eq!(at_minute(25).await, Some(1), "the list is read from ten minutes after the revocation on");
    for minute in [30, 35, 100] {
        assert_eq!(at_minute(minute).await, None, "{minute}");
    }
}

#[tokio::test]
async fn the_list_is_read_once_in_five_sweeps() {
    let (list, clock) = (Arc::new(List::default()), FixedClock::at(START));
    let keeper = keeper(&list, &clock);
    it_is(START, &list, &clock);
    assert!(wanted(&keeper, true).await.is_some());
    tokens(&list, 0..200, after(1), after(86_000));
    for minute in 1..=4 {
        it_is(after(minute * MINUTE), &list, &clock);
        assert!(wanted(&keeper, true).await.is_none(), "{minute}");
    }
    it_is(after(5 * MINUTE), &list, &clock);
    assert_eq!(wanted(&keeper, true).await.map(|snapshot| snapshot.count()), Some(200));
}

#[tokio::test]
async fn a_snapshot_that_could_not_be_written_is_made_again() {
    for entries in [0, 200] {
        let (list, clock) = (Arc::new(List::default()), FixedClock::at(START));
        let keeper = keeper(&list, &clock);
        tokens(&list, 0..entries, START, after(86_000));
        it_is(START, &list, &clock);
        assert!(wanted(&keeper, false).await.is_some());
        it_is(after(5 * MINUTE), &list, &clock);
        assert!(wanted(&keeper, false).await.is_some(), "nothing said that it was written");
    }
}

#[tokio::test]
async fn the_newest_revocation_is_known_whatever_the_horizon_says() {
    let (list, clock) = (Arc::new(List::default()), FixedClock::at(START));
    let keeper = keeper(&list, &clock);
    it_is(START, &list, &clock);
    snapshot_by(&keeper).await;
    assert_eq!(keeper.kept.lock().await.newest, None);
    tokens(&list, 0..1, after(2 * MINUTE), after(86_000));
    tokens(&list, 1..2, after(MINUTE), after(86_000));
    it_is(after(5 * MINUTE), &list, &clock);
    snapshot_by(&keeper).await;
    assert_eq!(keeper.kept.lock().await.newest, Some(after(2 * MINUTE)));
}

/// Seconds of an hour and a half, in which all of it happens.
const TIMES: std::ops::Range<u64> = 0..5_400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Revocations whose makers' clocks are up to five minutes off; several keepers, whose clocks are off as well and
    /// each of which may take long to write, so that an older snapshot replaces a newer one; and a start at any time.
    #[test]
    fn a_start_misses_no_revocation_that_was_acknowledged_before_it(
        revocations in vec((TIMES, 0..600_u64, 1..4_000_u64), 100..200),
        keepers in vec((TIMES, 0..600_u64, 0..900_u64), 0..12),
        start in TIMES,
    ) {
        const OFF: u64 = 300;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let list = Arc::new(List::default());
        for (number, (committed, off, life)) in revocations.iter().enumerate() {
            let committed = after(OFF + committed);
            let made = committed + Duration::from_secs(*off) - Duration::from_secs(OFF);
            let until = committed + Duration::from_secs(*life);
            list.add(committed, Revocation::new(Kind::Token, &number.to_string(), made, until));
        }
        for (read, off, delay) in &keepers {
            let read = after(OFF + read);
            let clock = FixedClock::at(read + Duration::from_secs(*off) - Duration::from_secs(OFF));
            *list.real.lock().expect("no panic") = Some(read);
            let snapshot = runtime.block_on(snapshot_by(&keeper(&list, &clock)));
            list.snapshots.lock().expect("no panic").push((read + Duration::from_secs(*delay), snapshot));
        }
        let now = after(OFF + start);
        *list.real.lock().expect("no panic") = Some(now);
        let known = Revocations::new(list.clone(), Arc::new(FixedClock::at(now)), &SystemRandom);
        let entries = list.entries.lock().expect("no panic").clone();
        for (number, (committed, one)) in entries.iter().enumerate() {
            let counts = *committed <= now && one.until > now;
            if counts {
                prop_assert!(runtime.block_on(known.revoked(&token(number))).expect("read"), "{one:?}");
            } else if *committed > now {
                prop_assert!(!runtime.block_on(known.revoked(&token(number))).expect("read"), "{one:?}");
            }
        }
    }
}
