//! Promises about the requests that endpoints received.

use std::collections::BTreeSet;

use super::{
    Promise,
    facts::{AttemptFacts, DeliveryFacts, Facts, millis, text},
};
use crate::{aws::table::Item, endpoints::SeenRequest};

/// The maximum difference between two clocks, plus a few milliseconds for the transfer.
pub(super) const SKEW: u64 = 1_100;
/// How long a lease protects an exchange, counted from the request. The lease lasts 45 s; the claim and the reads
/// before the request may take 8 s of them.
pub(super) const PROTECTED: u64 = 30_000;
const LEASE: u64 = 45_000;
/// The longest throttling that a record can outlast, minus the time between two of its tries.
const OUTLASTED: u64 = 18_000;
/// How long after a change to a webhook a claim may still use the previous state: an eventually consistent read may be
/// a second old, and is used for a quarter of a second.
pub(super) const OBEYED_WITHIN: u64 = 1_300;

/// Checks the requests for each delivery.
pub fn check(facts: &Facts<'_>, note: &mut impl FnMut(Promise, String)) {
    for (id, delivery) in &facts.deliveries {
        for lost in unrecorded(facts, id, delivery) {
            note(Promise::Recorded, format!("{id}: the history lacks the request of {}, or its outcome", at(lost)));
        }
        let interrupted = delivery.attempts.iter().find(|attempt| attempt.interrupted);
        if let Some(attempt) = interrupted.filter(|_| !had_faults(facts)) {
            note(Promise::Recorded, format!("{id}: attempt {} was interrupted without a fault", attempt.number));
        }
        for (one, other) in overlapping(delivery) {
            note(Promise::OneAtATime, format!("{id}: the requests of {} and {} overlap", at(one), at(other)));
        }
        for (seen, end) in unprotected(delivery) {
            let (at, end) = (at(seen), time(end));
            note(Promise::OneAtATime, format!("{id}: the claim for the request of {at} lasted only until {end}"));
        }
        for seen in &delivery.seen {
            if let Some(fault) = disobeyed(facts, delivery, seen) {
                note(Promise::Obeyed, format!("{id}: the request of {} came although {fault}", at(seen)));
            }
        }
    }
}

fn had_faults(facts: &Facts<'_>) -> bool {
    let state = facts.state;
    !(state.coverage.faults.is_empty() && state.interrupted.is_empty() && state.throttles.is_empty())
}

fn at(seen: &SeenRequest) -> String {
    time(seen.arrived)
}

/// A time in milliseconds, formatted for a message.
pub(super) fn time(millis: u64) -> String {
    base::Time::from_millis(i64::try_from(millis).unwrap_or_default()).to_string()
}

/// The requests that the history omits, or shows as interrupted without an excuse. A death excuses one of a delivery's
/// requests, as does a table that refuses all writes for longer than a record can wait.
fn unrecorded<'a>(facts: &Facts<'_>, id: &str, delivery: &DeliveryFacts<'a>) -> Vec<&'a SeenRequest> {
    let pushed = || delivery.attempts.iter().filter(|attempt| attempt.reader.is_none());
    let mut complete: Vec<_> = pushed().filter(|attempt| !attempt.interrupted).collect();
    let mut interrupted: Vec<_> = pushed().filter(|attempt| attempt.interrupted).collect();
    let mut left = delivery.seen.clone();
    left.retain(|seen| {
        let fits =
            |attempt: &&AttemptFacts| attempt.began <= seen.arrived + SKEW && seen.arrived <= attempt.ended + SKEW;
        take(&mut complete, fits).is_none()
    });
    let mut excused = Vec::new();
    left.retain(|seen| {
        // An attempt begins with its claim. A worker that is frozen between its last check and its request may send the
        // request later.
        let fits = |attempt: &&AttemptFacts| {
            attempt.began <= seen.arrived + SKEW
                && (seen.arrived <= attempt.began + LEASE || facts.state.interrupted.contains(&seen.invocation))
        };
        let is_shown = take(&mut interrupted, fits).is_some();
        let died = facts.state.interrupted.contains(&seen.invocation) && !excused.contains(&seen.invocation);
        excused.push(seen.invocation);
        !is_shown || !(died || throttled_after(facts, id, delivery, seen) >= OUTLASTED)
    });
    left
}

/// Removes and returns the first attempt that fits.
fn take<'a>(
    attempts: &mut Vec<&'a AttemptFacts>,
    fits: impl Fn(&&'a AttemptFacts) -> bool,
) -> Option<&'a AttemptFacts> {
    let position = attempts.iter().position(fits)?;
    Some(attempts.remove(position))
}

/// How long the table accepted no record after a request, within its lease, in milliseconds.
fn throttled_after(facts: &Facts<'_>, id: &str, delivery: &DeliveryFacts<'_>, seen: &SeenRequest) -> u64 {
    let versions = delivery.versions.iter().filter_map(|version| version.item.as_deref());
    let shards = versions.map(|head| format!("byDue/{}", text(head, "dueShard")));
    let webhook = text(delivery.head, "webhookIdentifier");
    let groups = ["OPEN", "WAITING", "UNREAD", "RECOVERABLE", "UNRECOVERABLE", "DELIVERED"]
        .map(|group| format!("byWebhook/{group}#{webhook}"));
    let undelivered = format!("byEntity/UNDELIVERED#{}", text(delivery.head, "ownerIdentifier"));
    let items = [undelivered, format!("EVT#{}", delivery.event), format!("DLV#{id}")];
    let partitions: BTreeSet<_> = shards.chain(groups).chain(items).collect();
    let lease = (seen.arrived, seen.arrived + LEASE);
    let times = facts.state.throttles.iter().filter(|(partition, ..)| partitions.contains(partition));
    times.map(|(_, from, until)| (*until).min(lease.1).saturating_sub((*from).max(lease.0))).sum()
}

/// Pairs of requests that were in progress at the same time while the first one's lease lasted.
fn overlapping<'a>(delivery: &DeliveryFacts<'a>) -> Vec<(&'a SeenRequest, &'a SeenRequest)> {
    let pairs = delivery.seen.windows(2).filter(|pair| {
        let [one, other] = pair else { return false };
        let ended = one.ended.unwrap_or(u64::MAX).min(one.arrived + PROTECTED);
        other.arrived < ended
    });
    pairs.map(|pair| (pair[0], pair[1])).collect()
}

/// Requests whose claims ended too soon to protect them, each with the end of its claim: a second request was possible,
/// even if none was sent.
///
/// The times of a signature and of its claim come from the same clock, since a clock jumps only between invocations. A
/// request that arrives long after it was signed, because its sandbox was frozen in between, counts as sent when it was
/// signed.
fn unprotected<'a>(delivery: &DeliveryFacts<'a>) -> impl Iterator<Item = (&'a SeenRequest, u64)> {
    delivery.seen.iter().filter_map(|seen| {
        let signed = seen.signed[0].parse::<u64>().ok()?.saturating_mul(1_000);
        let (_, head) = last_claim(delivery, seen)?;
        let end = millis(text(head, "claimableAt"))?;
        (end < signed + PROTECTED).then_some((*seen, end))
    })
}

/// The last version of a delivery before a request that has a claim, and when this version was written.
fn last_claim<'a>(delivery: &DeliveryFacts<'a>, seen: &SeenRequest) -> Option<(u64, &'a Item)> {
    delivery.versions.iter().rev().filter(|version| version.at <= seen.arrived).find_map(|version| {
        let head = version.item.as_deref()?;
        (!text(head, "lease").is_empty()).then_some((version.at, head))
    })
}

/// Why an endpoint should not have received a request.
fn disobeyed(facts: &Facts<'_>, delivery: &DeliveryFacts<'_>, seen: &SeenRequest) -> Option<String> {
    let webhook = facts.webhooks.get(text(delivery.head, "webhookIdentifier"))?;
    let claim = last_claim(delivery, seen);
    let claimed = claim.map_or(seen.arrived, |(at, _)| at);
    // A person may request an attempt during a pause.
    let was_requested = claim.is_some_and(|(_, head)| !text(head, "askedAt").is_empty());
    let states: Vec<_> = webhook.between(claimed.saturating_sub(OBEYED_WITHIN), seen.arrived).collect();
    let address = crate::endpoints::address(seen.slot, seen.address);
    let may_go = |pause: u64| was_requested || pause <= seen.arrived + SKEW;
    let allowed =
        states.iter().flatten().any(|state| state.enabled && state.url == address && may_go(state.paused_until));
    (!allowed).then(|| format!("its webhook was {states:?} since 1.3 s before the claim"))
}
