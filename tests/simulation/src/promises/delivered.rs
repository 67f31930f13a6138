//! The promise that every acknowledged event reaches every webhook that subscribes to it.

use std::collections::BTreeSet;

use base::{DeliveryId, EventId};
use serde_json::Value;

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, ReaderOutcome, number, text},
};
use crate::{
    bundle::{SCHEDULE, entity_id},
    plan::Action,
    records::{Answer, Records, Request},
};

/// Checks all acknowledged publish requests, and all deliveries at the end.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
    for request in &records.requests {
        if let Some((Answer::Done(answer), at)) = &request.answer {
            let step = request.step.number;
            for missing in missing(facts, records, request, answer, *at) {
                note(Promise::Delivered, format!("the event of step {step} was acknowledged: {missing}"));
            }
        }
    }
    for missing in missing_of_outbox(facts) {
        note(Promise::Delivered, missing);
    }
    for (id, delivery) in &facts.deliveries {
        if let Some(fault) = unexplained(facts, records, id, delivery) {
            note(Promise::Delivered, format!("{id} is {}, but {fault}", text(delivery.head, "status")));
        }
        if let Some(fault) = retried_without_retries(facts, delivery) {
            note(Promise::Delivered, format!("{id}: {fault}"));
        }
    }
}

/// The parts that an acknowledged publish request lacks.
fn missing(facts: &Facts<'_>, records: &Records, request: &Request, answer: &Value, at: u64) -> Vec<String> {
    let (tenant, kind) = match (request.step.action, &request.key) {
        // With a key, the key determines the event's type.
        (Action::Publish(tenant, kind, None) | Action::PutOnBus(tenant, kind), _) => (tenant, kind.name()),
        (Action::Publish(tenant, _, Some(key)), _) => {
            (tenant, if key % 2 == 0 { "booking.created" } else { "booking.cancelled" })
        }
        _ => return Vec::new(),
    };
    let planned: Vec<_> = answer["deliveries"].as_array().into_iter().flatten().collect();
    let of = |name: &str| planned.iter().filter_map(|planned| planned[name].as_str()).collect::<Vec<_>>();
    let mut faults = Vec::new();
    for delivery in of("deliveryIdentifier") {
        if !facts.deliveries.contains_key(delivery) {
            faults.push(format!("there is no delivery {delivery}"));
        }
    }
    // The first try with a key creates the plan.
    let is_same = |other: &&Request| match request.step.action {
        Action::Publish(..) => other.key.is_some() && other.key == request.key && same_tenant(other, tenant),
        _ => false,
    };
    let began = records.requests.iter().filter(is_same).map(|other| other.began).min();
    let began = began.unwrap_or(request.began).min(request.began);
    let webhooks = of("webhookIdentifier");
    for (id, webhook) in &facts.webhooks {
        if webhook.slot.0 == tenant && webhook.wanted(kind, began, at) && !webhooks.contains(&id.as_str()) {
            faults.push(format!("the webhook {id} wanted it and has no delivery"));
        }
    }
    faults
}

/// The missing deliveries of events in the outbox, for webhooks that subscribed to the event for as long as it was
/// there.
fn missing_of_outbox(facts: &Facts<'_>) -> Vec<String> {
    let opened: BTreeSet<_> = facts
        .deliveries
        .values()
        .map(|delivery| (delivery.event.as_str(), text(delivery.head, "webhookIdentifier")))
        .collect();
    let versions = || facts.state.table.versions().iter().filter(|version| version.key.0.starts_with("OUTBOX#"));
    let mut faults = Vec::new();
    for version in versions() {
        let Some(item) = version.item.as_deref() else { continue };
        let taken_out = versions().find(|later| later.key == version.key && later.item.is_none());
        let until = taken_out.map_or(u64::MAX, |taken_out| taken_out.at);
        let (event, kind) = (text(item, "event"), text(item, "type"));
        let about: Vec<_> = item.get("about").and_then(|about| about["L"].as_array()).into_iter().flatten().collect();
        for (id, webhook) in &facts.webhooks {
            let is_owner = text(item, "ownerIdentifier") == entity_id(webhook.slot.0).as_str();
            let is_about = about.iter().any(|about| about["S"] == id.as_str());
            let wanted = is_owner && !is_about && webhook.wanted(kind, version.at, until);
            if wanted && !opened.contains(&(event, id.as_str())) {
                faults.push(format!("the webhook {id} wanted {kind} {event} of the outbox and has no delivery"));
            }
        }
    }
    faults
}

/// Whether a delivery's webhook had no retries at some time.
fn may_lack_retries(facts: &Facts<'_>, delivery: &DeliveryFacts<'_>) -> bool {
    let Some(webhook) = facts.webhooks.get(text(delivery.head, "webhookIdentifier")) else { return false };
    webhook.between(0, u64::MAX).flatten().any(|state| !state.has_retries)
}

/// The fault if a delivery has more scheduled attempts than a webhook without retries makes.
fn retried_without_retries(facts: &Facts<'_>, delivery: &DeliveryFacts<'_>) -> Option<String> {
    let webhook = facts.webhooks.get(text(delivery.head, "webhookIdentifier"))?;
    let mut states = webhook.between(0, u64::MAX).flatten();
    let in_schedule = number(delivery.head, "attemptCount").saturating_sub(number(delivery.head, "scheduleBase"));
    let never_has_retries = states.all(|state| !state.has_retries);
    (never_has_retries && in_schedule > 1)
        .then(|| format!("its webhook has no retries, and {in_schedule} attempts of its schedule were made"))
}

fn same_tenant(request: &Request, tenant: usize) -> bool {
    matches!(request.step.action, Action::Publish(of, ..) if of == tenant)
}

/// Why the facts do not explain a delivery's final state.
fn unexplained(facts: &Facts<'_>, records: &Records, id: &str, delivery: &DeliveryFacts<'_>) -> Option<String> {
    let last = delivery.attempts.last();
    let is_good = |status: u64| (200..300).contains(&status);
    match text(delivery.head, "status") {
        "delivered" if last.is_some_and(|last| last.reader == Some(ReaderOutcome::Confirmed)) => {
            let attempt = last.map(|last| last.number).unwrap_or_default();
            (!records.readers.confirmed(id, attempt)).then(|| "no reader confirmed its last attempt".to_owned())
        }
        "delivered" => {
            let seen = delivery.seen.iter().any(|seen| seen.answered.is_some_and(|(status, _)| is_good(status.into())));
            if !seen {
                return Some("its endpoint answered no request with 2xx".to_owned());
            }
            let recorded = last.and_then(|last| last.status).is_some_and(is_good);
            (!recorded).then(|| "its last attempt has no 2xx".to_owned())
        }
        "failed" => {
            let in_schedule = number(delivery.head, "attemptCount") - number(delivery.head, "scheduleBase");
            let is_gone = last.and_then(|last| last.status) == Some(410);
            let attempts = if may_lack_retries(facts, delivery) { 1 } else { SCHEDULE.split(',').count() as u64 };
            (!is_gone && in_schedule < attempts)
                .then(|| format!("only {in_schedule} attempts of its schedule were made"))
        }
        "cancelled" => {
            let webhook = facts.webhooks.get(text(delivery.head, "webhookIdentifier"))?;
            let times = || delivery.versions.iter().map(|version| version.at);
            // A late publish request opens its deliveries before writing the event.
            let opened = times().next().map_or(delivery.published, |opened| opened.min(delivery.published));
            let ended = times().next_back().unwrap_or(u64::MAX);
            let requested = match text(delivery.head, "cancelReason") {
                "owner" => DeliveryId::parse(id).is_some_and(|id| records.cancelled.contains(&id)),
                "erased" => EventId::parse(&delivery.event).is_some_and(|event| records.erased.contains(&event)),
                _ => false,
            };
            (!requested && !webhook.was_off(opened, ended))
                .then(|| "its webhook was neither removed nor disabled".to_owned())
        }
        open => Some(format!("a delivery at rest may not be {open}")),
    }
}
