//! The promise that one tenant's trouble delays another's deliveries by no more than a bound.

use super::{
    Promise,
    facts::{DeliveryFacts, Facts, text},
};
use crate::{bundle::entity_id, plan::apart::QUIET};

/// The longest time from a delivery's creation to its first request, in milliseconds: the sum of the steps that another
/// tenant's trouble can delay. docs/architecture.md has the steps ("One delivery, from publication to record"), and
/// shared/webhooks/README.md the limits ("Isolation").
///
/// - Publishing waits at most 2 s until its message is sent.
/// - The message waits for a run that receives. A run with five deliveries that lack a permit receives again after the
///   second for which they wait, and each run reserves 10 permits that the other tenant cannot take. Only a run that is
///   ending receives nothing, until its last exchange is recorded (within the lease of 45 s) and counted (a call to AWS
///   takes at most 10 s). In the worst case all runs are ending, and the first to end makes room for the message.
/// - Its claim takes at most 5 s.
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
