//! Promises about the end of a history: nothing is open without a due time, no job is endless, and counters are
//! correct.

use super::{
    Promise,
    facts::{Facts, number, text},
};

/// Whether a sweep or a refresh queries this shard of the index of due work.
fn is_queried(shard: &str) -> bool {
    let numbered = |prefix: &str, count: usize| {
        shard.strip_prefix(prefix).and_then(|number| number.parse().ok()).is_some_and(|number: usize| number < count)
    };
    numbered("DUE#", 8) || numbered("OUTBOX#", 4) || shard == "JOBS" || shard.starts_with("JOBS#") || shard == "REFRESH"
}

/// How long a delivery may wait after its owner's pause: the job searches the deliveries again after some minutes, and
/// faults may delay it.
const RESUMED_WITHIN: u64 = 600_000;
/// How much longer a delivery may wait for each sweep that is interrupted in this period: the next sweep, a minute
/// later, continues the job. In one history, eleven of twelve sweeps were interrupted.
const UNTIL_NEXT_SWEEP: u64 = 60_000;

/// Checks the items that remain in the table.
pub fn check(facts: &Facts<'_>, rested: bool, note: &mut impl FnMut(Promise, String)) {
    for ((partition, sort), item) in facts.state.table.items() {
        if ["JOB#", "TURN#"].iter().any(|prefix| partition.starts_with(prefix)) {
            note(Promise::Ended, format!("{partition} {sort} is left"));
        }
        if partition.starts_with("OUTBOX#") {
            note(Promise::Delivered, format!("{partition} is left in the outbox"));
        }
        let shard = text(item, "dueShard");
        if !shard.is_empty() && (!is_queried(shard) || text(item, "dueAt").is_empty()) {
            note(Promise::Swept, format!("{partition} is due at {:?} in the shard {shard:?}", item.get("dueAt")));
        }
    }
    if !rested {
        note(Promise::Swept, "work was still due after the longest time".to_owned());
    }
    for ((partition, event), item) in facts.state.table.items().filter(|((key, _), _)| key.starts_with("EVENTS#")) {
        let targets = item.get("targets").and_then(|targets| targets["L"].as_array()).map_or(0, Vec::len);
        let heads = facts.deliveries.keys().filter(|id| id[4..].starts_with(&event[4..event.len() - 2])).count();
        // This applies even if the publisher received an error.
        if heads < targets {
            note(Promise::Swept, format!("{partition} {event} has {targets} deliveries, of which {heads} were opened"));
        }
    }
    for (id, delivery) in &facts.deliveries {
        let opened = opened(facts, &delivery.event);
        let ends = delivery.versions.iter().skip(1).map(|version| version.at).chain([u64::MAX]);
        for (version, end) in delivery.versions.iter().zip(ends) {
            let Some(head) = version.item.as_deref() else { continue };
            let is_open = ["pending", "retrying"].contains(&text(head, "status"));
            let is_due = !text(head, "dueShard").is_empty() && !text(head, "dueAt").is_empty();
            // The sweep gives the delivery a due time when it opens the event's deliveries.
            let may_lack = is_open && end <= opened;
            if (is_open != is_due && !may_lack) || is_open == text(head, "claimableAt").is_empty() {
                let status = text(head, "status");
                note(Promise::Swept, format!("{id} is {status} with the due time {:?}", text(head, "dueAt")));
            }
        }
        let ends = delivery.versions.iter().skip(1).map(|version| version.at).chain([u64::MAX]);
        for (version, end) in delivery.versions.iter().zip(ends) {
            let head = version.item.as_deref().filter(|head| text(head, "waitingFor") == "pause");
            let Some(webhook) = head.and_then(|head| facts.webhooks.get(text(head, "webhookIdentifier"))) else {
                continue;
            };
            let paused = webhook.last_paused(end).max(version.at);
            let sweeps = facts.state.interrupted_sweeps.iter();
            let interrupted: u64 = sweeps.filter(|at| (paused..end).contains(*at)).map(|_| UNTIL_NEXT_SWEEP).sum();
            if end - paused > RESUMED_WITHIN + interrupted && !webhook.was_off(paused, end) {
                note(Promise::Swept, format!("{id} waited for the end of a pause that was over"));
            }
        }
        let count = number(delivery.head, "attemptCount");
        let numbers: Vec<_> = delivery.attempts.iter().map(|attempt| attempt.number).collect();
        if numbers != (1..=count).collect::<Vec<_>>() {
            note(Promise::Counted, format!("{id} counts {count} attempts, and its history has {numbers:?}"));
        }
    }
}

/// When the sweep stored a position beyond an event, in milliseconds: after that, no sweep examines the event.
fn opened(facts: &Facts<'_>, event: &str) -> u64 {
    let of_event =
        facts.state.table.items().find(|((partition, sort), _)| partition.starts_with("EVENTS#") && sort == event);
    let shard = of_event.and_then(|((partition, _), _)| partition.strip_prefix("EVENTS#")?.parse::<usize>().ok());
    let body = event.trim_start_matches("evt_");
    let mut positions = facts.state.table.versions().iter().filter(|version| version.key.0 == "SWEEP");
    let passed = positions.find(|version| {
        let bodies =
            version.item.as_deref().and_then(|item| item.get("bodies")).and_then(|bodies| bodies["L"].as_array());
        let position = shard.and_then(|shard| bodies?.get(shard)?["S"].as_str());
        position.is_some_and(|position| body <= position)
    });
    passed.map_or(u64::MAX, |passed| passed.at)
}
