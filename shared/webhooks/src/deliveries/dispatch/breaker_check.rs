//! The breaker's decision on a claimed attempt.

use crate::{
    deliveries::dispatch::claim::Claimed,
    subscriptions::{
        breaker::{BreakerDecision, HealthItem, PROBE_LEASE},
        health::Healths,
    },
};
use auth::AuthorizedEntity;
use base::{Random, Time, random};
use storage::TableError;

/// The decision on an attempt.
pub(crate) enum AttemptDecision {
    /// The attempt is made, possibly as the probe. Holds the health of its webhook before the attempt.
    Go(Option<HealthItem>),
    /// The attempt waits until this time.
    Wait(Time),
}

/// Decides whether a claimed attempt may be made on a webhook with this health, and takes the probe of an open breaker
/// if it is free.
pub(crate) async fn admit(
    entity: &AuthorizedEntity,
    claimed: &Claimed,
    health: Option<HealthItem>,
    healths: &Healths,
    random: &dyn Random,
    now: Time,
) -> Result<AttemptDecision, TableError> {
    let Some(health) = health else { return Ok(AttemptDecision::Go(None)) };
    let decision =
        if claimed.was_requested_recently(now) { health.decision_when_requested(now) } else { health.decision(now) };
    Ok(match decision {
        BreakerDecision::Go => AttemptDecision::Go(Some(health)),
        // Random, so that the waiting deliveries do not all come at once.
        BreakerDecision::Wait(until) => {
            AttemptDecision::Wait(until + until.since(now).mul_f64(0.1 * random::unit(random)))
        }
        // An operational event is never the probe, since its outcome is not counted. It does not wait for another
        // delivery to become the probe, since the webhook may get no other events.
        BreakerDecision::Probe if claimed.is_operational() => AttemptDecision::Go(Some(health)),
        BreakerDecision::Probe => {
            let webhook = &claimed.delivery().webhook_identifier;
            let lease = now + PROBE_LEASE;
            if healths.take_probe(entity, webhook, &health, lease, now).await?.is_done() {
                AttemptDecision::Go(Some(HealthItem { probe_until: Some(lease), ..health }))
            } else {
                AttemptDecision::Wait(health.after_probe(now))
            }
        }
    })
}
