//! The promise that a replay delivers every stored event in its range that matches the webhook, but no event twice.

use std::collections::{BTreeMap, BTreeSet};

use base::EventId;

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, text},
    requests::SKEW,
};
use crate::{
    aws::table::{Item, Version},
    bundle::entity_id,
    plan::Action,
    records::{Answer, Records, Request},
};

/// Checks all events, and all acknowledged replays.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
    let events = events(facts);
    for (id, versions) in &events {
        let targets = versions.last().map(|(_, item)| targets(item)).unwrap_or_default();
        let webhooks: BTreeSet<_> = targets.iter().collect();
        if webhooks.len() < targets.len() {
            note(Promise::Replayed, format!("{id} has two deliveries to a webhook: {targets:?}"));
        }
        for pair in versions.windows(2) {
            let [(_, before), (_, after)] = pair else { continue };
            if !self::targets(after).starts_with(&self::targets(before)) {
                note(Promise::Replayed, format!("the targets of {id} are not those before with others at the end"));
            }
        }
    }
    for request in &records.requests {
        for missing in missing(facts, &events, request) {
            note(Promise::Replayed, format!("step {} was acknowledged: {missing}", request.step.number));
        }
    }
}

/// Whether a replay added the delivery: no person requested its first attempt, and it has no turn.
pub(super) fn is_replayed(delivery: &DeliveryFacts<'_>) -> bool {
    let first = delivery.versions.first().and_then(|version| version.item.as_deref());
    first.is_some_and(|head| head.get("outOfTurn").is_some() && text(head, "askedAt").is_empty())
}

/// Each event's versions, with the times when they were written.
fn events<'a>(facts: &Facts<'a>) -> BTreeMap<&'a str, Vec<(u64, &'a Item)>> {
    let mut events: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for Version { key: (partition, event), item, at, .. } in facts.state.table.versions() {
        if let Some(item) = item.as_deref().filter(|_| partition.starts_with("EVENTS#")) {
            events.entry(event.as_str()).or_default().push((*at, item));
        }
    }
    events
}

fn targets(event: &Item) -> Vec<&str> {
    let targets = event.get("targets").and_then(|targets| targets["L"].as_array());
    targets.into_iter().flatten().filter_map(|target| target["M"]["webhook"]["S"].as_str()).collect()
}

/// The events that an acknowledged replay should have delivered but did not.
fn missing(facts: &Facts<'_>, events: &BTreeMap<&str, Vec<(u64, &Item)>>, request: &Request) -> Vec<String> {
    let (Action::Replay(slot, minutes), Some(id), Some((Answer::Done(_), _))) =
        (request.step.action, &request.webhook, &request.answer)
    else {
        return Vec::new();
    };
    let Some(webhook) = facts.webhooks.get(id.as_str()) else { return Vec::new() };
    let ended = ended(facts, id.as_str(), request);
    // A replay ends when its webhook is removed or disabled, and the job may still see a webhook as disabled that was
    // enabled a moment ago.
    if webhook.was_off(request.began.saturating_sub(SKEW), ended) {
        return Vec::new();
    }
    // The end of the range depends on the clock of the sandbox.
    let range = request.began - u64::from(minutes) * 60_000..request.began - SKEW;
    let wants = |kind: &str| webhook.wanted(kind, request.began, ended);
    let mut missing = Vec::new();
    for (event, versions) in events {
        let published = EventId::parse(event).and_then(|event| u64::try_from(event.time().as_millis()).ok());
        let (Some((written, first)), Some((_, last))) = (versions.first(), versions.last()) else { continue };
        let is_wanted = text(first, "ownerIdentifier") == entity_id(slot.0).as_str()
            && text(first, "type").starts_with("booking.")
            && first.get("askedFor").is_none()
            && last.get("erasedDate").is_none()
            && wants(text(first, "type"));
        let is_in_range = *written < request.began && published.is_some_and(|published| range.contains(&published));
        if is_wanted && is_in_range && !targets(last).contains(&id.as_str()) {
            missing.push(format!("{event} has no delivery to {id}"));
        }
    }
    missing
}

/// When the webhook's last replay job after this request was removed.
fn ended(facts: &Facts<'_>, webhook: &str, request: &Request) -> u64 {
    let mut versions = facts.state.table.versions().iter().rev();
    let removed = versions.find(|version| {
        let is_job = version.key.0.strip_prefix("JOB#") == Some(webhook) && version.key.1 == "REPLAY";
        is_job && version.item.is_none() && version.at > request.began
    });
    removed.map_or(u64::MAX, |removed| removed.at)
}
