//! The promise that repeating an idempotency key has one effect and returns one response.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, text},
};
use crate::{
    plan::Action,
    records::{Answer, Records},
};

/// Checks the requests with a key, and the events that endpoints received.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
    for id in records.deliveries.values().flatten() {
        let requested = records.resends.get(id).copied().unwrap_or_default();
        let resent = facts.deliveries.get(id.as_str()).map(resends).unwrap_or_default();
        if resent > requested {
            note(Promise::Once, format!("{id} was resent {resent} times for {requested} requests"));
        }
    }
    let mut answers: BTreeMap<(usize, &str), BTreeSet<String>> = BTreeMap::new();
    for request in &records.requests {
        let (Some(key), Action::Publish(tenant, ..)) = (&request.key, request.step.action) else { continue };
        if let Some((Answer::Done(answer), _)) = &request.answer {
            answers.entry((tenant, key)).or_default().insert(answer.to_string());
        }
    }
    for ((tenant, key), answers) in answers {
        if answers.len() > 1 {
            note(Promise::Once, format!("tenant {tenant} got different answers for {key}: {answers:?}"));
        }
    }
    let keyed: BTreeSet<u64> = records
        .requests
        .iter()
        .filter(|request| matches!(request.step.action, Action::PutOnBus(..)))
        .map(|request| request.step.number as u64)
        .collect();
    let mut events: BTreeMap<(usize, u64), BTreeSet<&str>> = BTreeMap::new();
    for seen in &facts.state.endpoints.seen {
        let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let Some(number) = body["data"]["number"].as_u64() else { continue };
        if number >= 1_000 || keyed.contains(&number) {
            events.entry((seen.slot.0, number)).or_default().insert(&seen.event);
        }
    }
    for ((tenant, number), events) in events {
        if events.len() > 1 {
            note(Promise::Once, format!("tenant {tenant} got {number} as several events: {events:?}"));
        }
    }
}

/// How often a person's request made a delivery due.
fn resends(delivery: &DeliveryFacts<'_>) -> usize {
    let heads = delivery.versions.iter().filter_map(|version| version.item.as_deref());
    let times: BTreeSet<_> = heads.map(|head| text(head, "askedAt")).filter(|time| !time.is_empty()).collect();
    times.len()
}
