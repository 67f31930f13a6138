//! The promise that every request is signed according to Standard Webhooks, with secrets that its tenant received.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

use super::{
    Promise,
    facts::{Facts, text},
    requests::OBEYED_WITHIN,
};
use crate::{
    endpoints::{SeenRequest, Slot},
    plan::Action,
    records::{Answer, Records, Request},
};

/// The maximum difference between the time in the signature and the arrival: the difference between clocks, plus the
/// limit on an exchange.
const TIME_AROUND: u64 = 16_000;
/// The maximum number of secrets that sign: the newest and, during the overlap, the one before it.
const MOST: usize = 2;

/// Checks all requests that endpoints received.
pub fn check(facts: &Facts<'_>, records: &Records, note: &mut impl FnMut(Promise, String)) {
    for seen in &facts.state.endpoints.seen {
        let known = Known::by(records, seen.slot, seen.arrived);
        // The tenant cannot verify a signature that uses a secret whose response was lost.
        let Some(known) = known else { continue };
        if let Some(fault) = fault(facts, &known, seen) {
            note(Promise::Signed, format!("the request for {} to {:?} {fault}", seen.event, seen.slot));
        }
    }
}

/// The facts that a tenant knows about a webhook's secrets.
struct Known<'a> {
    secrets: &'a [String],
    /// The secret from the last rotation, and when that rotation was acknowledged; `None` if its outcome is uncertain.
    newest: Option<(&'a str, u64)>,
    /// Whether the tenant received every secret.
    all: bool,
}

impl<'a> Known<'a> {
    /// The tenant's knowledge about the requests to this slot at this time; `None` if the tenant knows no secret.
    fn by(records: &'a Records, slot: Slot, until: u64) -> Option<Self> {
        let secrets = records.secrets.get(&slot).filter(|secrets| !secrets.is_empty())?;
        let is_rotation = |request: &&Request| matches!(request.step.action, Action::Rotate(of) if of == slot);
        let rotations: Vec<_> = records.requests.iter().filter(is_rotation).collect();
        let done = |request: &Request| match &request.answer {
            Some((Answer::Done(_), at)) => Some(*at),
            _ => None,
        };
        // A refusal may be the response to a repetition of a request that was carried out.
        let all = rotations.iter().all(|request| request.began > until || done(request).is_some());
        let last = rotations.iter().rev().find(|request| request.began <= until);
        let newest = last.and_then(|last| {
            let (Answer::Done(answer), at) = last.answer.as_ref()? else { return None };
            let overlaps = rotations.iter().filter(|other| other.step != last.step).any(|other| {
                let ended = other.answer.as_ref().map_or(u64::MAX, |(_, ended)| *ended);
                other.began <= *at && last.began <= ended
            });
            (!overlaps).then_some((answer["signingSecret"].as_str()?, *at))
        });
        Some(Self { secrets, newest, all })
    }
}

/// Why a tenant would refuse a request, or why its signatures differ from those promised.
fn fault(facts: &Facts<'_>, known: &Known<'_>, seen: &SeenRequest) -> Option<String> {
    let [time, signatures] = &seen.signed;
    let Ok(signed_at) = time.parse::<u64>() else { return Some(format!("has the time {time:?}")) };
    let is_interrupted = facts.state.interrupted.contains(&seen.invocation);
    if (signed_at * 1_000).abs_diff(seen.arrived) > TIME_AROUND && !is_interrupted {
        return Some(format!("arrived at {} and is signed at {signed_at}", seen.arrived));
    }
    let signatures: Vec<_> = signatures.split(' ').collect();
    if signatures.len() > MOST {
        return Some(format!("has {} signatures", signatures.len()));
    }
    let is_by = |secret: &str, signature: &str| verify(secret, &seen.event, time, &seen.body, signature);
    let is_known = |signature: &&str| known.secrets.iter().any(|secret| is_by(secret, signature));
    if known.all && !signatures.iter().all(is_known) {
        return Some(format!("is signed by a secret that its tenant never got: {signatures:?}"));
    }
    let (newest, since) = known.newest?;
    let by_newest = signatures.iter().any(|signature| is_by(newest, signature));
    (!by_newest && claimed(facts, seen) > since + OBEYED_WITHIN)
        .then(|| "is not signed by the secret of the last rotation, which was acknowledged before".to_owned())
}

/// When a request's delivery was claimed, or the earliest time when it could have been.
fn claimed(facts: &Facts<'_>, seen: &SeenRequest) -> u64 {
    let deliveries =
        facts.deliveries.values().filter(|delivery| delivery.seen.iter().any(|other| std::ptr::eq(*other, seen)));
    let claims = deliveries.filter_map(|delivery| {
        let before = delivery.versions.iter().rev().filter(|version| version.at <= seen.arrived);
        let mut claims =
            before.filter(|version| version.item.as_deref().is_some_and(|head| !text(head, "lease").is_empty()));
        claims.next().map(|version| version.at)
    });
    claims.min().unwrap_or_default()
}

/// Whether this secret was used for a signature.
fn verify(secret: &str, event: &str, time: &str, body: &[u8], signature: &str) -> bool {
    let key = secret.strip_prefix("whsec_").and_then(|key| BASE64_STANDARD.decode(key).ok());
    let tag = signature.strip_prefix("v1,").and_then(|tag| BASE64_STANDARD.decode(tag).ok());
    let Some((key, tag)) = key.zip(tag) else { return false };
    let signed = [event.as_bytes(), b".", time.as_bytes(), b".", body].concat();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), &signed, &tag).is_ok()
}
