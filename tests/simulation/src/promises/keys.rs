//! The promise that a repeated idempotency key has one effect and one answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Promise, facts::Facts};
use crate::{
    plan::Action,
    tenants::{Answer, Records},
};

/// Checks the requests with a key, and the events that endpoints saw.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
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
