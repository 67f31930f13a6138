//! The promise that one tenant's trouble delays another tenant's deliveries only up to a bound.

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, text},
};
use crate::{bundle::entity_id, plan::apart::QUIET};

/// The maximum time from a delivery's creation to its first request, in milliseconds: the sum of the steps that another
/// tenant's trouble can delay. docs/architecture.md lists the steps ("One delivery, from publication to record"), and
/// shared/webhooks/README.md the limits ("Isolation").
///
/// - Publishing waits at most 2 s before its message is sent.
/// - The message waits for an invocation that is receiving. An invocation with five deliveries that lack a permit
///   receives again after the second for which they wait, and each invocation reserves 10 permits that the other tenant
///   cannot take. Only an invocation that is ending receives nothing, until its last exchange is recorded (within the
///   45-second lease) and counted (a call to AWS takes at most 10 s). In the worst case, all invocations are ending,
///   and the first to end makes room for the message.
/// - Claiming the delivery takes at most 5 s.
const BOUND: u64 = 2_000 + 1_000 + 45_000 + 10_000 + 5_000;

/// Checks the untroubled tenant's deliveries.
pub fn check(facts: &Facts<'_>, note: &mut impl FnMut(Promise, String)) {
    if facts.state.troubled.is_none() {
        return;
    }
    let entity = entity_id(QUIET);
    let of_tenant = |delivery: &&DeliveryFacts<'_>| text(delivery.head, "ownerIdentifier") == entity.as_str();
    for (id, delivery) in facts.deliveries.iter().filter(|(_, delivery)| of_tenant(delivery)) {
        let arrived = delivery.seen.first().map(|seen| seen.arrived);
        let delay = arrived.map(|arrived| arrived.saturating_sub(delivery.published));
        if delay.is_none_or(|delay| delay > BOUND) {
            note(Promise::Apart, format!("{id} of the tenant without trouble arrived after {delay:?} ms"));
        }
    }
}
