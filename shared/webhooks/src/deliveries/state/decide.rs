//! The decision on a delivery whose turn it is: before its first claim, after a claim, and once more if the webhook was
//! read again.

use std::time::Duration;

use crate::{
    deliveries::{
        queue::Lane,
        state::{Wait, delivery::CancelReason, head::Head, times::GRACE},
    },
    events::store::EventItem,
    subscriptions::{
        Webhook,
        health::breaker::{BreakerDecision, HealthItem},
    },
};
use base::{DeliveryId, Time};
use storage::idempotency;

/// How long an attempt that a person requested ignores a pause. After that it waits like any other, so that a thousand
/// requests do not keep reading an unresponsive endpoint's breaker.
const REQUESTED_RECENTLY: Duration = Duration::from_secs(2 * 60);

/// The longest pause for a delivery without content to send.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The shortest and longest interval between checks of a delivery whose webhook its owner paused. A job ends the wait;
/// the checks notice if the webhook was removed or disabled.
const LOOKS_AT_PAUSED: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(24 * 60 * 60)];

/// The facts about a delivery whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) head: &'a Head,
    /// `None` if it was removed.
    pub(crate) webhook: Option<&'a Webhook>,
    /// The lane of the message that announced the attempt.
    pub(crate) lane: Lane,
    /// `None` if it has not been written yet.
    pub(crate) event: Option<&'a EventItem>,
    /// The webhook's health.
    pub(crate) health: Option<&'a HealthItem>,
    pub(crate) now: Time,
}

/// The decision on a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The delivery is final, so nothing is done.
    Drop,
    /// An earlier attempt without a known outcome is recorded first.
    RecordUnknownOutcome,
    Cancel(CancelReason),
    /// It waits until this time.
    Wait(Wait, Time),
    /// It waits until this delivery, which precedes it in its subject's line, is final.
    Hold(DeliveryId),
    PutIntoFeed,
    /// The request would be slow: it belongs in the other lane.
    PassToSlowLane,
    /// It is sent when its webhook's rate limit allows.
    SendInTurn,
    /// It is sent if no other delivery is the probe of the open breaker; otherwise it waits for the breaker. A probe
    /// does not wait for a slot: the line may be hours long, and during a pause most slots pass unused.
    Probe,
    /// It is sent now.
    Send,
}

impl Facts<'_> {
    /// The delivery that precedes this one in its subject's line, if `decide` needs to know whether it is final. A
    /// delivery in a feed was checked before it was put there. Requested attempts are not held, nor are retries, unless
    /// the previous attempt was interrupted: its request may not have been sent.
    pub(crate) fn before(&self) -> Option<&DeliveryId> {
        let open = self.head.state.open()?;
        let is_first = self.head.delivery.may_be_first() && open.asked_at.is_none();
        let is_in_line = self.webhook.is_some_and(Webhook::is_ordered) && is_first && open.wait != Wait::Reader;
        let target = self.event.and_then(|event| event.targets.get(self.head.delivery.id.ordinal()));
        let before = target.and_then(|target| target.after.as_ref());
        before.filter(|_| is_in_line && self.receiver().is_ok())
    }

    /// The webhook that the delivery may be sent to, or a decision that depends neither on other deliveries nor on the
    /// endpoint.
    fn receiver(&self) -> Result<&Webhook, Decision> {
        if self.head.is_final() {
            return Err(Decision::Drop);
        }
        if self.head.has_unknown_outcome() {
            return Err(Decision::RecordUnknownOutcome);
        }
        // The event may be a stale read, and the head may be erased after its event.
        if self.head.is_erased() || self.event.is_some_and(|event| event.erased_date.is_some()) {
            return Err(Decision::Cancel(CancelReason::Erased));
        }
        let webhook = self.webhook.ok_or(Decision::Cancel(CancelReason::WebhookRemoved))?;
        // The delivery may have waited beyond its retention; the table removes it some days later.
        if self.now >= self.head.expires() {
            return Err(Decision::Cancel(CancelReason::Expired));
        }
        if !webhook.enabled {
            return Err(Decision::Cancel(CancelReason::WebhookDisabled));
        }
        if self.event.is_none() {
            return Err(self.without_event());
        }
        if webhook.pause(self.now).is_some() && !self.was_requested() {
            return Err(Decision::Wait(Wait::Pause, self.next_look()));
        }
        Ok(webhook)
    }

    /// When a paused webhook's delivery is checked again: after about its age, and at the end of its retention.
    fn next_look(&self) -> Time {
        let [least, most] = LOOKS_AT_PAUSED;
        let look = self.now + self.now.since(self.head.delivery.created_date).clamp(least, most);
        look.min(self.head.expires())
    }

    /// Whether a person requested the attempt a short time ago.
    fn was_requested(&self) -> bool {
        let asked_at = self.head.state.open().and_then(|open| open.asked_at);
        asked_at.is_some_and(|asked| self.now < asked + REQUESTED_RECENTLY)
    }

    /// The decision on a delivery without an event. A late publication opens its deliveries before it writes the event.
    /// If the publication died in between, it was never acknowledged, and the client may repeat it while the
    /// idempotency key is stored.
    fn without_event(&self) -> Decision {
        let created = self.head.delivery.created_date;
        if self.now.since(created) > idempotency::RETENTION {
            return Decision::Cancel(CancelReason::Expired);
        }
        Decision::Wait(Wait::Content, after_pause(created, self.now))
    }

    /// The breaker's decision. An operational event is sent where another delivery would be the probe: its outcome is
    /// not counted, and the webhook may receive no other event.
    fn at_breaker(&self) -> BreakerDecision {
        let Some(health) = self.health else { return BreakerDecision::Go };
        let decision =
            if self.was_requested() { health.decision_when_requested(self.now) } else { health.decision(self.now) };
        match decision {
            BreakerDecision::Probe if self.head.delivery.is_operational() => BreakerDecision::Go,
            decision => decision,
        }
    }
}

/// When a delivery without content is checked again: after about its age, so that a long wait costs few reads.
pub(crate) fn after_pause(created: Time, now: Time) -> Time {
    now + now.since(created).clamp(GRACE, LONGEST_PAUSE)
}

/// Decides on a delivery. `open_before` is the open delivery that it is waiting for, if [`Facts::before`] asked for it.
pub(crate) fn decide(facts: &Facts<'_>, open_before: Option<DeliveryId>) -> Decision {
    let webhook = match facts.receiver() {
        Ok(webhook) => webhook,
        Err(decision) => return decision,
    };
    if let Some(before) = open_before {
        return Decision::Hold(before);
    }
    if webhook.is_pulled() {
        return Decision::PutIntoFeed;
    }
    if webhook.is_slow(facts.now) && facts.lane == Lane::Quick {
        return Decision::PassToSlowLane;
    }
    match facts.at_breaker() {
        BreakerDecision::Wait(until) => Decision::Wait(Wait::Breaker, until),
        BreakerDecision::Probe => Decision::Probe,
        BreakerDecision::Go if webhook.rate_limit.is_some() => Decision::SendInTurn,
        BreakerDecision::Go => Decision::Send,
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
