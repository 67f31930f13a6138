//! Tests of the breaker: pauses, probes and consequences, one by one and in every order.

use super::*;
use crate::subscriptions::health::tally::AttemptOutcome;
use base::environment::read_from;
use proptest::prelude::*;

const NOW: Time = Time::from_millis(1_795_167_900_000);
const SETTINGS: BreakerSettings = BreakerSettings {
    threshold: 3,
    open_for: Duration::from_secs(30),
    longest: Duration::from_secs(600),
    disable_after: Duration::from_secs(5 * 24 * 60 * 60),
};

fn answered(status: u16) -> AttemptOutcome {
    AttemptOutcome {
        http_status: Some(status),
        confirmed: false,
        of_reader: false,
        interrupted: false,
        error: None,
        duration: Duration::from_millis(7),
    }
}

fn broken() -> AttemptOutcome {
    AttemptOutcome {
        http_status: None,
        confirmed: false,
        of_reader: false,
        interrupted: false,
        error: Some("connect: refused".into()),
        duration: Duration::from_millis(7),
    }
}

/// Mimics how the table applies the update of `Healths::add`.
fn counted(mut item: HealthItem, tally: &Tally, now: Time) -> HealthItem {
    if tally.succeeded {
        item = HealthItem::default();
    }
    if tally.completed {
        let HealthItem { failures_in_row, failing_since, streak_since, failing, announce_after, .. } = item;
        let kept = HealthItem { failures_in_row, failing_since, streak_since, ..HealthItem::default() };
        item = HealthItem { failing, announce_after, ..kept };
    }
    if !tally.is_clean() {
        item.failures_in_row += tally.failures;
        item.incomplete_in_row += tally.incomplete;
        item.failing_since = item.failing_since.or(Some(now));
        item.streak_since = item.streak_since.or(Some(now));
    }
    item
}

/// Mimics how the table applies a consequence. Returns whether its condition held.
fn applied(item: &mut HealthItem, consequence: Consequence, settings: &BreakerSettings) -> bool {
    let holds = match consequence {
        Consequence::Open { .. } => item.open_until.is_none() && item.incomplete_in_row >= settings.threshold,
        Consequence::Reopen { seen, .. } => item.open_until == Some(seen),
        Consequence::EndProbe { lease } => item.probe_until == Some(lease),
        Consequence::AnnounceFailing(FailureStreak { since, announce_after: None }) => {
            !item.failing && item.failing_since == Some(since)
        }
        Consequence::AnnounceFailing(FailureStreak { since, announce_after }) => {
            item.announce_after == announce_after && item.failing_since == Some(since)
        }
        Consequence::Disable { .. } => true,
    };
    match consequence {
        _ if !holds => {}
        Consequence::Open { until } => (item.open_until, item.opens) = (Some(until), 1),
        Consequence::Reopen { opens, until, .. } => {
            (item.open_until, item.opens, item.probe_until) = (Some(until), opens, None);
        }
        Consequence::EndProbe { .. } => item.probe_until = None,
        Consequence::AnnounceFailing(_) => (item.failing, item.announce_after) = (true, None),
        Consequence::Disable { .. } => {}
    }
    holds
}

/// Mimics how the table applies `Healths::take_probe`.
fn probe_taken(item: &mut HealthItem, seen: Option<Time>, now: Time) -> bool {
    let free = item.open_until == seen && item.probe_until.is_none_or(|end| end <= now);
    if free {
        item.probe_until = Some(now + PROBE_LEASE);
    }
    free
}

/// Makes an attempt as the only dispatcher, if the breaker admits it.
fn attempt(item: &mut HealthItem, outcome: AttemptOutcome, now: Time) -> BreakerDecision {
    let was = item.clone();
    let decision = was.decision(now);
    if decision == BreakerDecision::Probe {
        assert!(probe_taken(item, was.open_until, now), "no other dispatcher is there");
    }
    if !matches!(decision, BreakerDecision::Wait(_)) {
        let tally = Tally::of(&[outcome]);
        *item = counted(item.clone(), &tally, now);
        for consequence in item.consequences(Some(&was), &tally, &SETTINGS, now) {
            applied(item, consequence, &SETTINGS);
        }
    }
    decision
}

#[test]
fn incomplete_attempts_open_it_and_each_failed_probe_doubles_the_pause() {
    let mut item = HealthItem::default();
    let mut now = NOW;
    for _ in 0..3 {
        assert_eq!(item.health(), Health::Healthy);
        assert_eq!(attempt(&mut item, broken(), now), BreakerDecision::Go);
    }
    for seconds in [30, 60, 120, 240, 480, 600, 600] {
        assert_eq!(item.health(), Health::Open);
        let end = now + Duration::from_secs(seconds);
        assert_eq!(attempt(&mut item, broken(), now), BreakerDecision::Wait(end));
        now = end;
        assert_eq!(attempt(&mut item, broken(), now), BreakerDecision::Probe);
    }
    assert_eq!(item.failures_in_row, 10);
    now = now + Duration::from_secs(600);
    assert_eq!(attempt(&mut item, answered(200), now), BreakerDecision::Probe);
    assert_eq!(item, HealthItem::default());
}

#[test]
fn a_response_of_any_status_closes_the_breaker() {
    let mut item = HealthItem::default();
    for outcome in [broken(), broken(), answered(500), broken(), broken(), answered(302), broken()] {
        assert_eq!(attempt(&mut item, outcome, NOW), BreakerDecision::Go);
    }
    assert_eq!((item.incomplete_in_row, item.failures_in_row, item.health()), (1, 7, Health::Failing));
    attempt(&mut item, broken(), NOW);
    attempt(&mut item, broken(), NOW);
    assert_eq!(item.health(), Health::Open);
    let later = NOW + SETTINGS.open_for;
    assert_eq!(attempt(&mut item, answered(503), later), BreakerDecision::Probe);
    assert_eq!((item.health(), item.incomplete_in_row, item.opens), (Health::Failing, 0, 0));
    assert_eq!(attempt(&mut item, answered(200), later), BreakerDecision::Go);
    assert_eq!(item, HealthItem::default());
}

#[test]
fn attempts_wait_for_the_probe_and_a_dead_probe_does_not_block() {
    let mut item = HealthItem { open_until: Some(NOW), opens: 1, ..HealthItem::default() };
    let seen = item.clone();
    assert_eq!(seen.decision(NOW), BreakerDecision::Probe);
    assert!(probe_taken(&mut item, seen.open_until, NOW));
    assert!(!probe_taken(&mut item, seen.open_until, NOW), "two read the same, and one wins");
    assert_eq!(item.decision(NOW), BreakerDecision::Wait(NOW + FIRST_PROBE_WAIT));
    let silent = HealthItem { opens: 7, ..item.clone() };
    assert_eq!(silent.decision(NOW), BreakerDecision::Wait(NOW + PROBE_LEASE));
    let last = NOW + (PROBE_LEASE - Duration::from_secs(1));
    assert_eq!(item.decision(last), BreakerDecision::Wait(NOW + PROBE_LEASE));
    assert_eq!(item.decision(NOW + PROBE_LEASE), BreakerDecision::Probe);
    assert!(probe_taken(&mut item, seen.open_until, NOW + PROBE_LEASE));
}

#[test]
fn a_requested_attempt_probes_at_once_and_keeps_the_pause_if_it_fails() {
    let end = NOW + Duration::from_secs(600);
    let open = HealthItem { open_until: Some(end), opens: 6, incomplete_in_row: 25, ..HealthItem::default() };
    assert_eq!(open.decision(NOW), BreakerDecision::Wait(end));
    assert_eq!(open.decision_when_requested(NOW), BreakerDecision::Probe);
    let mut item = open.clone();
    assert!(probe_taken(&mut item, open.open_until, NOW));
    let was = item.clone();
    assert_eq!(item.decision_when_requested(NOW), BreakerDecision::Wait(NOW + PROBE_LEASE), "one at a time");
    assert_eq!(item.decision(NOW), BreakerDecision::Wait(end), "the others wait as before");
    let tally = Tally::of(&[broken()]);
    item = counted(item, &tally, NOW);
    let consequences = item.consequences(Some(&was), &tally, &SETTINGS, NOW);
    assert_eq!(consequences, [Consequence::EndProbe { lease: NOW + PROBE_LEASE }]);
    assert!(applied(&mut item, consequences[0], &SETTINGS));
    assert_eq!((item.open_until, item.opens, item.probe_until), (Some(end), 6, None));
    assert_eq!(item.decision_when_requested(NOW), BreakerDecision::Probe, "a person may ask again");
    // A completed probe, with any status, closes the breaker.
    assert_eq!(counted(was, &Tally::of(&[answered(500)]), NOW).health(), Health::Healthy);
    assert_eq!(HealthItem::default().decision_when_requested(NOW), BreakerDecision::Go);
}

#[test]
fn a_requested_probe_that_ends_after_the_pause_counts_like_any_other() {
    let open = HealthItem { open_until: Some(NOW), opens: 1, incomplete_in_row: 20, ..HealthItem::default() };
    let was = HealthItem { probe_until: Some(NOW + PROBE_LEASE), ..open };
    let consequences = was.consequences(Some(&was), &Tally::of(&[broken()]), &SETTINGS, NOW);
    let until = NOW + Duration::from_secs(60);
    assert_eq!(consequences, [Consequence::Reopen { seen: NOW, opens: 2, until }]);
}

#[test]
fn a_streak_of_failures_is_announced_once_and_disables_after_its_time() {
    let tally = Tally::of(&[answered(500)]);
    let failing = |failures_in_row, failing| HealthItem {
        failures_in_row,
        failing,
        failing_since: Some(NOW),
        streak_since: Some(NOW),
        ..HealthItem::default()
    };
    let follows = |item: &HealthItem, now| item.consequences(Some(item), &tally, &SETTINGS, now);
    assert_eq!(follows(&failing(4, false), NOW), []);
    let announced = |announce_after| [Consequence::AnnounceFailing(FailureStreak { since: NOW, announce_after })];
    assert_eq!(follows(&failing(5, false), NOW), announced(None));
    assert_eq!(follows(&failing(6, true), NOW), []);
    let soon = NOW + Duration::from_secs(60);
    let put_off = HealthItem { announce_after: Some(soon), ..failing(6, true) };
    assert_eq!(follows(&put_off, NOW), []);
    assert_eq!(follows(&put_off, soon), announced(Some(soon)), "a streak that lasts is announced in the end");
    let late = NOW + SETTINGS.disable_after;
    assert_eq!(follows(&failing(6, true), late), [Consequence::Disable { since: NOW }]);
    let after_silence = HealthItem { streak_since: Some(late), ..failing(6, true) };
    assert_eq!(follows(&after_silence, late), [], "a long silence begins another streak");
    assert_eq!(failing(6, true).consequences(None, &Tally::of(&[answered(200)]), &SETTINGS, late), []);
}

#[test]
fn the_longest_opening_is_a_limit_from_the_start() {
    let settings = BreakerSettings { longest: Duration::from_secs(10), ..SETTINGS };
    assert_eq!(settings.opening(1), Duration::from_secs(10));
    assert_eq!(settings.opening(u32::MAX), Duration::from_secs(10));
}

#[derive(Debug, Clone)]
enum Move {
    /// Time passes, in seconds.
    Pass(u16),
    /// A dispatcher reads the health and makes an attempt if the breaker admits it; the flag says whether a person
    /// requested it.
    Begin(bool),
    /// An attempt under way ends, with this status or none.
    End(usize, Option<u16>),
    /// A dispatcher that has counted carries out the consequences.
    Follow(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let status = proptest::option::weighted(0.2, proptest::sample::select(vec![200u16, 204, 302, 410, 500, 503]));
    let one = prop_oneof![
        (0u16..70).prop_map(Move::Pass),
        Just(Move::Begin(false)),
        proptest::bool::weighted(0.3).prop_map(Move::Begin),
        (0usize..8, status).prop_map(|(which, status)| Move::End(which, status)),
        (0usize..8).prop_map(Move::Follow),
    ];
    proptest::collection::vec(one, 1..200)
}

fn outcome(status: Option<u16>) -> impl Strategy<Value = AttemptOutcome> {
    Just(status.map_or_else(broken, answered))
}

proptest! {
    #[test]
    fn concurrent_dispatchers_make_one_probe_at_a_time_and_pauses_double(moves in moves()) {
        let mut item = HealthItem::default();
        let mut now = NOW;
        let mut under_way = Vec::<(HealthItem, Time, Option<usize>)>::new();
        let mut counting = Vec::new();
        // Two pauses may end at the same time: a response closes the breaker, and it opens again before time passes.
        let mut openings = 0;
        for step in moves {
            match step {
                Move::Pass(seconds) => now = now + Duration::from_secs(seconds.into()),
                Move::Begin(asked_for) => {
                    let mut was = item.clone();
                    let decision = if asked_for { was.decision_when_requested(now) } else { was.decision(now) };
                    let probes = decision == BreakerDecision::Probe && probe_taken(&mut item, was.open_until, now);
                    if probes {
                        let others = under_way.iter().filter(|(_, began, probed)| {
                            *probed == Some(openings) && now < *began + PROBE_LEASE
                        });
                        prop_assert_eq!(others.count(), 0, "two probes of one opening");
                    }
                    if probes {
                        was.probe_until = item.probe_until;
                    }
                    if probes || decision == BreakerDecision::Go {
                        under_way.push((was, now, probes.then_some(openings)));
                    }
                }
                Move::End(which, status) if which < under_way.len() => {
                    let (was, _, _) = under_way.swap_remove(which);
                    let tally = Tally::of(&[status.map_or_else(broken, answered)]);
                    item = counted(item, &tally, now);
                    prop_assert!(!tally.completed || item.health() != Health::Open, "an answer closes it");
                    prop_assert!(!tally.succeeded || item == HealthItem::default(), "a success heals it");
                    counting.push((was, tally, item.clone()));
                }
                Move::Follow(which) if which < counting.len() => {
                    let (was, tally, left) = counting.swap_remove(which);
                    for consequence in left.consequences(Some(&was), &tally, &SETTINGS, now) {
                        let before = item.clone();
                        if !applied(&mut item, consequence, &SETTINGS) {
                            continue;
                        }
                        if let Consequence::Open { until } | Consequence::Reopen { until, .. } = consequence {
                            openings += 1;
                            prop_assert_eq!(item.opens, before.opens + 1);
                            let expected = (30u64 << (item.opens - 1).min(16)).min(600);
                            prop_assert_eq!(until, now + Duration::from_secs(expected));
                            prop_assert!(item.incomplete_in_row >= SETTINGS.threshold);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_batch_counts_like_its_attempts_one_by_one(
        before in 0u32..4,
        statuses in proptest::collection::vec(proptest::option::of(proptest::sample::select(vec![200u16, 500])), 1..20),
    ) {
        let start = HealthItem {
            failures_in_row: before, incomplete_in_row: before, failing_since: (before > 0).then_some(NOW), streak_since: (before > 0).then_some(NOW), ..HealthItem::default()
        };
        let outcomes: Vec<_> = statuses.iter().map(|status| status.map_or_else(broken, answered)).collect();
        let together = counted(start.clone(), &Tally::of(&outcomes), NOW);
        let apart = outcomes.iter().fold(start, |item, outcome| {
            counted(item, &Tally::of(std::slice::from_ref(outcome)), NOW)
        });
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn only_2xx_is_a_success_and_any_status_completes(outcome in proptest::option::of(100u16..1000).prop_flat_map(outcome)) {
        let status = outcome.http_status;
        prop_assert_eq!(outcome.succeeded(), status.is_some_and(|status| status / 100 == 2));
        prop_assert_eq!(outcome.completed(), status.is_some());
    }
}

#[test]
fn the_settings_of_the_breaker_are_written_like_the_schedule() {
    let settings = read_from::<BreakerSettings>(|name| match name {
        "BREAKER_THRESHOLD" => Some("3".into()),
        "BREAKER_OPEN" => Some("500ms".into()),
        "DISABLE_AFTER" => Some("2h".into()),
        _ => None,
    });
    let expected = BreakerSettings {
        threshold: 3,
        open_for: Duration::from_millis(500),
        disable_after: Duration::from_secs(2 * 60 * 60),
        ..BreakerSettings::default()
    };
    assert_eq!(settings.expect("readable"), expected);
    let error = read_from::<BreakerSettings>(|name| (name == "BREAKER_OPEN").then(|| "1h".to_owned()));
    let [fault] = &error.expect_err("longer than the longest").0[..] else { panic!("there is one fault") };
    assert!(fault.contains("BREAKER_OPEN") && fault.contains("1h") && fault.contains("BREAKER_MAX"), "{fault}");
    let error = read_from::<BreakerSettings>(|name| Some(if name == "BREAKER_OPEN" { "soon" } else { "0" }.to_owned()));
    let faults = error.expect_err("refused").0;
    let about = |name: &str| faults.iter().any(|fault| fault.starts_with(name));
    for name in ["BREAKER_THRESHOLD", "BREAKER_OPEN", "BREAKER_MAX", "DISABLE_AFTER"] {
        assert!(about(name), "{name}: {faults:?}");
    }
}
