//! The promise that an ordered webhook gets a subject's deliveries one after another.
//!
//! Events are accepted in the order in which the table received them. A publish request that was acknowledged before
//! another one began comes first; concurrent ones have an arbitrary order, which their deliveries keep as well.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, WebhookFacts, text},
    replayed::is_replayed,
    requests::{OBEYED_WITHIN, time},
};
use crate::{
    aws::table::Item,
    plan::Action,
    records::{Answer, Records, Request},
    world::State,
};

/// An event that has a subject.
struct Accepted<'a> {
    event: &'a str,
    /// When the event's first publish request started, in milliseconds; if unknown, the beginning of the history.
    began: u64,
}

/// How long a delivery may wait for another one that is already final if no fault occurs, in milliseconds.
const WOKEN_WITHIN: u64 = 5_000;

/// Checks every subject of each ordered webhook.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
    check_wakes(facts, note);
    let mut deliveries: BTreeMap<_, Vec<(&str, &DeliveryFacts<'_>)>> = BTreeMap::new();
    for (id, delivery) in &facts.deliveries {
        // A delivery from a replay has no turn.
        if !is_replayed(delivery) {
            deliveries.entry(delivery.event.as_str()).or_default().push((id.as_str(), delivery));
        }
    }
    let erased = erased(facts);
    for line in lines(facts, records).values() {
        for (id, webhook) in &facts.webhooks {
            // The earlier deliveries, each with the earliest start of a publish request since then.
            let mut before: Vec<(&str, &DeliveryFacts<'_>, u64)> = Vec::new();
            for accepted in line {
                for (.., since) in &mut before {
                    *since = accepted.began.min(*since);
                }
                let of_event = deliveries.get(accepted.event).into_iter().flatten();
                let mut of_webhook = of_event.filter(|(_, delivery)| text(delivery.head, "webhookIdentifier") == id);
                let Some(next) = of_webhook.next().copied() else { continue };
                let overtaken = before.iter().find_map(|(id, before, since)| {
                    Some((id, overtakes(records, webhook, final_at(before, &erased), next, *since)?))
                });
                if let Some((before, at)) = overtaken {
                    note(Promise::Order, format!("{} was first sent at {at}, before {before} was final", next.0));
                }
                before.push((next.0, next.1, accepted.began));
            }
        }
    }
}

/// Checks that a waiting delivery is woken when the previous one is final. A fault may delay the wake-up, and a job
/// that cancels many deliveries wakes none.
fn check_wakes(facts: &Facts<'_>, note: &mut impl FnMut(Promise, String)) {
    let state = facts.state;
    if !(state.coverage.faults.is_empty() && state.interrupted.is_empty() && state.throttles.is_empty()) {
        return;
    }
    for (id, delivery) in &facts.deliveries {
        let Some(webhook) = facts.webhooks.get(text(delivery.head, "webhookIdentifier")) else { continue };
        for (from, until, head) in states(delivery) {
            let Some(before) = facts.deliveries.get(text(head, "heldBy")) else { continue };
            let ended = states(before).filter(|(.., head)| ["delivered", "failed"].contains(&text(head, "status")));
            for (final_from, final_until, _) in ended {
                let waits_from = from.max(final_from);
                let checked = (waits_from.saturating_sub(OBEYED_WITHIN), waits_from + WOKEN_WITHIN);
                let waits_long = until.min(final_until) > checked.1;
                let is_on = !webhook.was_off(checked.0, checked.1);
                if waits_long && is_on && webhook.is_ordered_between(checked.0, checked.1) {
                    let held_by = text(head, "heldBy");
                    note(
                        Promise::Order,
                        format!("{id} waits since {} for {held_by}, which is final", time(waits_from)),
                    );
                }
            }
        }
    }
}

/// A delivery's versions, each with the times in milliseconds when it became current and when it was replaced.
fn states<'a>(delivery: &'a DeliveryFacts<'_>) -> impl Iterator<Item = (u64, u64, &'a Item)> {
    let ends = delivery.versions.iter().skip(1).map(|version| version.at).chain([u64::MAX]);
    let states = delivery.versions.iter().zip(ends);
    states.filter_map(|(version, end)| Some((version.at, end, version.item.as_deref()?)))
}

/// The number of deliveries that were waiting for the previous one at some time in a history.
pub fn held(state: &State) -> usize {
    let versions = state.table.versions().iter();
    let held =
        versions.filter(|version| version.item.as_deref().is_some_and(|item| text(item, "waitingFor") == "order"));
    held.map(|version| &version.key).collect::<BTreeSet<_>>().len()
}

/// The events of each entity and subject, in the order in which they were written. Test events have no order.
fn lines<'a>(facts: &Facts<'a>, records: &Records) -> BTreeMap<(&'a str, &'a str), Vec<Accepted<'a>>> {
    let began = began(records);
    let mut lines: BTreeMap<_, Vec<Accepted<'a>>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for version in facts.state.table.versions() {
        let (partition, event) = &version.key;
        let Some(item) = version.item.as_deref().filter(|_| partition.starts_with("EVENTS#")) else { continue };
        let subject = text(item, "subject");
        let is_test = item.get("askedFor").is_some();
        if known.insert(event) && !subject.is_empty() && !is_test {
            let accepted = Accepted { event, began: began.get(event.as_str()).copied().unwrap_or_default() };
            lines.entry((text(item, "ownerIdentifier"), subject)).or_default().push(accepted);
        }
    }
    lines
}

/// The tenant that this request publishes for.
fn publisher(request: &Request) -> Option<usize> {
    match request.step.action {
        Action::Publish(tenant, ..) => Some(tenant),
        _ => None,
    }
}

/// When each acknowledged event's publish request started. Several requests may have used the same key.
fn began(records: &Records) -> BTreeMap<&str, u64> {
    let mut began: BTreeMap<_, u64> = BTreeMap::new();
    for request in &records.requests {
        let Some((Answer::Done(answer), _)) = &request.answer else { continue };
        let Some(event) = answer["eventIdentifier"].as_str() else { continue };
        let is_same = |other: &&Request| {
            other.key.is_some() && other.key == request.key && publisher(other) == publisher(request)
        };
        let same = records.requests.iter().filter(is_same);
        let first = same.map(|other| other.began).min().unwrap_or(request.began);
        let began = began.entry(event).or_insert(first);
        *began = first.min(*began);
    }
    began
}

/// When a delivery's first attempt was seen, if an earlier delivery became final only later and nothing permitted this.
fn overtakes(
    records: &Records,
    webhook: &WebhookFacts<'_>,
    final_at: u64,
    (id, next): (&str, &DeliveryFacts<'_>),
    since: u64,
) -> Option<String> {
    let sent = next.seen.iter().map(|seen| seen.arrived);
    let read = records.readers.handed_out.iter().filter(|held| held.delivery == id).map(|held| held.received);
    let first = sent.chain(read).min()?;
    if first >= final_at {
        return None;
    }
    // A delivery that is resent, or recovered after it was cancelled, is sent immediately.
    let is_asked = next.versions.iter().any(|version| {
        version.at <= first && version.item.as_deref().is_some_and(|head| !text(head, "askedAt").is_empty())
    });
    let was_final = finals(next).any(|at| at <= first);
    let was_ordered = webhook.is_ordered_between(since.saturating_sub(OBEYED_WITHIN), first);
    (!is_asked && !was_final && was_ordered).then(|| time(first))
}

/// When the tenants erased events.
fn erased<'a>(facts: &Facts<'a>) -> BTreeMap<&'a str, u64> {
    let mut erased = BTreeMap::new();
    for version in facts.state.table.versions() {
        let (partition, event) = &version.key;
        let is_erased = version.item.as_deref().is_some_and(|item| item.get("erasedDate").is_some());
        if partition.starts_with("EVENTS#") && is_erased {
            erased.entry(event.as_str()).or_insert(version.at);
        }
    }
    erased
}

/// When a delivery first became final. A delivery without a head is final once its event is erased.
fn final_at(delivery: &DeliveryFacts<'_>, erased: &BTreeMap<&str, u64>) -> u64 {
    let erased = erased.get(delivery.event.as_str()).copied();
    let without_head = erased.filter(|at| delivery.versions.first().is_none_or(|first| first.at > *at));
    finals(delivery).next().into_iter().chain(without_head).min().unwrap_or(u64::MAX)
}

/// The times of the versions that show a delivery as final.
fn finals<'a>(delivery: &'a DeliveryFacts<'_>) -> impl Iterator<Item = u64> + 'a {
    let finals = delivery.versions.iter().filter(|version| {
        let head = version.item.as_deref();
        head.is_some_and(|head| ["delivered", "failed", "cancelled"].contains(&text(head, "status")))
    });
    finals.map(|version| version.at)
}
