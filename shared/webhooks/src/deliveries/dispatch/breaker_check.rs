//! Whether a claimed attempt may be made now, by the breaker of its webhook.

use crate::{
    deliveries::dispatch::claim::Claimed,
    subscriptions::{
        breaker::{BreakerDecision, HealthItem, PROBE_LEASE},
        health::Healths,
        operational::is_operational,
    },
};
use auth::AuthorizedEntity;
use base::{Random, Time, random};
use storage::TableError;

/// Whether an attempt may be made.
pub(crate) enum AttemptDecision {
    /// It may, perhaps as the probe; with the health of its webhook before.
    Go(Option<HealthItem>),
    /// It may not before this time.
    Wait(Time),
}

/// Decides whether a claimed attempt may be made on a webhook with this health, and makes it the probe of an open
/// breaker where it can be.
pub(crate) async fn admit(
    (entity, claimed): (&AuthorizedEntity, &Claimed),
    health: Option<HealthItem>,
    healths: &Healths,
    random: &dyn Random,
    now: Time,
) -> Result<AttemptDecision, TableError> {
    let Some(health) = health else { return Ok(AttemptDecision::Go(None)) };
    let passage = if claimed.is_asked_for(now) { health.passage_when_asked_for(now) } else { health.passage(now) };
    Ok(match passage {
        BreakerDecision::Go => AttemptDecision::Go(Some(health)),
        // Spread, so that the deliveries that wait do not come at one moment.
        BreakerDecision::Wait(until) => {
            AttemptDecision::Wait(until + until.since(now).mul_f64(0.1 * random::unit(random)))
        }
        // An operational event is no probe, since its outcome is not counted. It does not wait for one either, since
        // perhaps no other event is sent there.
        BreakerDecision::Probe if is_operational(&claimed.delivery().r#type) => AttemptDecision::Go(Some(health)),
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
