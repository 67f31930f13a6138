//! The promise that statistics and health agree with the history: statistics count no attempt twice, and miss one only
//! because of a fault.

use std::collections::BTreeMap;

use super::{
    Promise,
    facts::{AttemptFacts, DeliveryFacts, Facts, number, text},
};
use crate::{
    aws::table::Item,
    faults::Fault::{self, *},
    sandbox::Function,
};

/// When the next claim is certain to see a failure's count: after the counting interval, a slow call, a read that is a
/// second old, and the difference between two clocks.
const COUNTED_WITHIN: u64 = 12_000;

/// The functions that record attempts, and count them afterwards.
const COUNTING: [Function; 3] = [Function::DispatchDeliveries, Function::ReadFeed, Function::AcknowledgeFeed];

/// The faults in these functions that may keep attempts from being counted. docs/crashes.md describes the first of them
/// ("recorded, not counted"). A count that the table refuses is only logged, as is a breaker that a requested probe
/// could not close.
const EXCUSES: [Fault; 9] =
    [KilledBefore, KilledAfter, FrozenBefore, FrozenAfter, Throttled, Refused, Unreached, AnswerLost, Conflict];

/// One in this many attempts may be lost with a sandbox that is frozen while writing the counts that it holds; with
/// fewer attempts, none may be lost.
const HELD_SHARE: u64 = 20;

/// The number of attempts, and how many of them succeeded.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    attempts: u64,
    succeeded: u64,
}

/// Checks each webhook's statistics and health.
pub fn check(facts: &Facts<'_>, note: &mut impl FnMut(Promise, String)) {
    let is_excused = is_excused(facts);
    let recorded = recorded(facts);
    let shown = shown(facts);
    for id in facts.webhooks.keys() {
        let recorded = recorded.get(id.as_str()).copied().unwrap_or_default();
        let shown = shown.get(id.as_str()).copied().unwrap_or_default();
        let is_more = shown.attempts > recorded.attempts || shown.succeeded > recorded.succeeded;
        let lacks_more = shown.attempts + recorded.attempts / HELD_SHARE < recorded.attempts;
        if is_more || (!is_excused && lacks_more) {
            note(Promise::Counted, format!("{id} has {recorded:?} in its history, and its statistics have {shown:?}"));
        }
    }
    for ((_, sort), health) in facts.state.table.items() {
        let Some(id) = sort.strip_prefix("HLT#") else { continue };
        if let Some(fault) = wrong_health(facts, id, health, is_excused) {
            note(Promise::Counted, format!("the health of {id} {fault}"));
        }
    }
}

/// Whether a fault may have kept an attempt from being counted.
fn is_excused(facts: &Facts<'_>) -> bool {
    let mut faults = facts.state.coverage.faults.keys();
    faults.any(|(function, _, fault)| COUNTING.contains(function) && EXCUSES.contains(fault))
        || !facts.state.interrupted.is_empty()
}

/// The attempts recorded in the histories of each webhook's deliveries.
fn recorded<'a>(facts: &'a Facts<'_>) -> BTreeMap<&'a str, Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for delivery in facts.deliveries.values() {
        let count = counts.entry(text(delivery.head, "webhookIdentifier")).or_default();
        count.attempts += delivery.attempts.len() as u64;
        count.succeeded += delivery.attempts.iter().filter(|attempt| attempt.succeeded()).count() as u64;
    }
    counts
}

/// The attempts in each webhook's statistics, over all hours. Single hours cannot be compared, since an attempt belongs
/// to the hour when it was counted.
fn shown<'a>(facts: &'a Facts<'_>) -> BTreeMap<&'a str, Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for ((_, sort), hour) in facts.state.table.items() {
        let Some((id, _)) = sort.strip_prefix("STA#").and_then(|rest| rest.split_once('#')) else { continue };
        let count = counts.entry(id).or_default();
        count.attempts += number(hour, "attempts");
        count.succeeded += number(hour, "succeeded");
    }
    counts
}

/// How a webhook's stored health contradicts its deliveries' histories.
fn wrong_health(facts: &Facts<'_>, id: &str, health: &Item, is_excused: bool) -> Option<String> {
    // Attempts that send an operational event do not change the health.
    let is_operational = |delivery: &&DeliveryFacts<'_>| {
        let kind = text(delivery.head, "type");
        kind.starts_with("webhook.") && delivery.head.get("test").is_none()
    };
    let of_webhook = |delivery: &&DeliveryFacts<'_>| text(delivery.head, "webhookIdentifier") == id;
    let deliveries = facts.deliveries.values().filter(of_webhook).filter(|delivery| !is_operational(delivery));
    let attempts: Vec<_> = deliveries.flat_map(|delivery| &delivery.attempts).collect();
    let failures = || attempts.iter().filter(|attempt| !attempt.succeeded());
    let in_row = number(health, "failuresInRow");
    let failed = failures().count() as u64;
    if in_row > failed && !is_excused {
        return Some(format!("has {in_row} failures, and the history has {failed}"));
    }
    let last_failure = failures().map(|attempt| attempt.ended).max().unwrap_or_default();
    let is_later = |attempt: &&&AttemptFacts| attempt.succeeded() && attempt.began > last_failure + COUNTED_WITHIN;
    let success = attempts.iter().find(is_later)?;
    (!is_excused && in_row > 0)
        .then(|| format!("has {in_row} failures, although its last attempts succeeded from {} on", success.began))
}
