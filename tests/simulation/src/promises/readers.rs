//! Promises about the deliveries that feed readers received.

use super::{
    Promise,
    facts::{AttemptFacts, DeliveryFacts, Facts, ReaderOutcome, text},
    requests::{OBEYED_WITHIN, PROTECTED, SKEW, time},
};
use crate::readers::{HandedOut, ReaderAnswer, Readers};

/// How long before the end of its visibility timeout a delivery may be claimed again: the difference between two
/// clocks, plus the second that a message may come early.
const EARLY: u64 = SKEW + 1_000;

/// Checks all deliveries that readers received, and all their answers.
pub fn check(facts: &Facts<'_>, readers: &Readers, note: &mut impl FnMut(Promise, String)) {
    for (position, held) in readers.handed_out.iter().enumerate() {
        let HandedOut { delivery: id, attempt, received, .. } = held;
        let which = format!("the attempt {attempt} of {id} that a reader got at {}", time(*received));
        let Some(delivery) = facts.deliveries.get(id) else {
            note(Promise::Recorded, format!("{which}: there is no such delivery"));
            continue;
        };
        let recorded = delivery.attempts.iter().find(|recorded| is_of(recorded, held));
        if recorded.is_none() {
            note(Promise::Recorded, format!("the history lacks {which}"));
        }
        if let Some(fault) = disobeyed(facts, delivery, held) {
            note(Promise::Obeyed, format!("{which} was given out although {fault}"));
        }
        let answers: Vec<_> = readers.answers.iter().filter(|answer| answer.receipt == held.receipt).collect();
        for (number, answer) in answers.iter().enumerate() {
            if let Some((promise, fault)) = unkept(held, answer, number == 0, recorded) {
                note(promise, format!("{which}: {fault}"));
            }
        }
        let until = answers.first().map_or(u64::MAX, |answer| answer.sent).min(held.visible_from - EARLY);
        let others = readers.handed_out.iter().enumerate().filter(|(other, _)| *other != position);
        let is_between = |at: u64| (*received..until).contains(&at);
        if let Some((_, other)) =
            others.into_iter().find(|(_, other)| other.delivery == *id && is_between(other.received))
        {
            let at = time(other.received);
            note(Promise::OneAtATime, format!("{which}, and holds, is given to another reader at {at}"));
        }
        let overlaps = delivery.seen.iter().find(|seen| {
            let ended = seen.ended.unwrap_or(u64::MAX).min(seen.arrived + PROTECTED);
            is_between(seen.arrived) || (seen.arrived..ended).contains(received)
        });
        if let Some(seen) = overlaps {
            note(Promise::OneAtATime, format!("{which}, and holds, is sent to an endpoint at {}", time(seen.arrived)));
        }
    }
}

/// Whether an attempt in the history is the one for which a reader received a delivery.
fn is_of(attempt: &AttemptFacts, held: &HandedOut) -> bool {
    attempt.number == held.attempt && attempt.began == held.claimed && attempt.reader.is_some()
}

/// Why a reader should not have received a delivery.
fn disobeyed(facts: &Facts<'_>, delivery: &DeliveryFacts<'_>, held: &HandedOut) -> Option<String> {
    let webhook = facts.webhooks.get(text(delivery.head, "webhookIdentifier"))?;
    let since = held.claimed.saturating_sub(OBEYED_WITHIN + SKEW / 2);
    let states: Vec<_> = webhook.between(since, held.received).collect();
    let allowed = states.iter().flatten().any(|state| state.enabled && state.pulled);
    (!allowed).then(|| format!("its webhook was {states:?} since 1.3 s before the claim"))
}

/// How an answer contradicts the history or the promises to its reader.
fn unkept(
    held: &HandedOut,
    answer: &ReaderAnswer,
    is_first: bool,
    recorded: Option<&AttemptFacts>,
) -> Option<(Promise, String)> {
    let (outcome, at) = answer.outcome.as_ref()?;
    let recorded = recorded.and_then(|recorded| recorded.reader);
    let expected = match outcome.as_str() {
        "confirmed" => Some(ReaderOutcome::Confirmed),
        "failed" => Some(ReaderOutcome::Reported),
        // An earlier try may have been recorded without a response.
        _ if answer.tries > 1 || !is_first => return None,
        _ if *at < held.visible_from - EARLY => {
            return Some((Promise::OneAtATime, format!("its answer had expired at {} already", time(*at))));
        }
        _ if recorded == Some(ReaderOutcome::Unconfirmed) => return None,
        _ => None,
    };
    (recorded != expected)
        .then(|| (Promise::Recorded, format!("its answer was {outcome}, and the history has {recorded:?}")))
}
