//! Order by subject, in some of the mixed histories and of those with feeds.

use std::time::Duration;

use fastrand::Rng;

use super::{Action, Kind, Order, Plan, Step};
use crate::{
    draws::Draws,
    endpoints::{Mood, Slot},
};

/// The number of the first step that is added. It is lower than the numbers in events with an idempotency key.
const FIRST: usize = 500;

impl Plan {
    /// This plan with ordered webhooks, events with few subjects, and bursts of publish requests; in most histories,
    /// the plan is unchanged.
    pub(super) fn ordered(mut self, draws: Draws) -> Self {
        let rng = &mut draws.about(&"ordered by subject");
        if rng.u8(0..4) > 0 {
            return self;
        }
        let registered: Vec<_> = self.steps.iter().filter_map(registered).collect();
        let webhooks: Vec<_> = registered.iter().copied().filter(|_| rng.u8(0..4) > 0).collect();
        let mut added = Vec::new();
        for slot in &webhooks {
            for _ in 0..rng.usize(1..=2) {
                added.extend(burst(*slot, any_time(self.length(), rng), rng));
            }
        }
        if rng.u8(0..3) == 0 {
            for _ in 0..rng.usize(1..=3) {
                let Some(slot) = rng.choice(&registered) else { break };
                added.push((any_time(self.length(), rng), Action::Order(*slot, rng.bool())));
            }
        }
        added.extend(early_ends(&webhooks, &added, &mut draws.about(&"deliveries that end out of their turn")));
        let added = added.into_iter().enumerate();
        self.steps.extend(added.map(|(number, (at, action))| Step { number: FIRST + number, at, action }));
        self.steps.sort_by_key(|step| step.at);
        self.order = Some(Order { webhooks, subjects: rng.usize(1..=3) });
        self
    }
}

pub(super) fn registered(step: &Step) -> Option<Slot> {
    match step.action {
        Action::Register(slot, _) | Action::RegisterPulled(slot, _) => Some(slot),
        _ => None,
    }
}

pub(super) fn any_time(length: Duration, rng: &mut Rng) -> Duration {
    Duration::from_secs(2) + length.mul_f64(rng.f64())
}

/// Publish requests in quick succession, usually while this webhook's endpoint has trouble.
fn burst(slot: Slot, from: Duration, rng: &mut Rng) -> Vec<(Duration, Action)> {
    let mut steps = Vec::new();
    if rng.u8(0..3) > 0 {
        steps.push((from, Action::React(slot, Mood::draw(rng))));
        let recovers = from + Duration::from_secs_f64(5.0 + 90.0 * rng.f64().powi(2));
        steps.push((recovers, Action::React(slot, Mood::Answers(200, rng.u64(1..2_000)))));
    }
    let mut at = from;
    for _ in 0..rng.usize(2..=6) {
        // Some requests are concurrent, and most begin when the previous one is acknowledged.
        at += Duration::from_secs_f64(3.0 * rng.f64().powi(2));
        let kind = Kind::draw(rng);
        let is_on_bus = rng.u8(0..4) == 0;
        let action = if is_on_bus { Action::PutOnBus(slot.0, kind) } else { Action::Publish(slot.0, kind, None) };
        steps.push((at, action));
    }
    steps
}

/// Deliveries that end out of turn: soon after publishing, a tenant cancels, erases or resends one of its latest
/// deliveries.
fn early_ends(webhooks: &[Slot], bursts: &[(Duration, Action)], rng: &mut Rng) -> Vec<(Duration, Action)> {
    if rng.u8(0..3) > 0 {
        return Vec::new();
    }
    let published = bursts.iter().filter_map(|(at, action)| match action {
        Action::Publish(tenant, ..) => Some((*at, *tenant)),
        _ => None,
    });
    let published: Vec<_> = published.filter(|(_, tenant)| webhooks.iter().any(|slot| slot.0 == *tenant)).collect();
    let chosen: Vec<_> = published.into_iter().filter(|_| rng.u8(0..3) == 0).collect();
    let ends = chosen.into_iter().map(|(at, tenant)| {
        let which = rng.u8(..);
        let action = match rng.u8(0..4) {
            0 => Action::Erase(tenant, which),
            1 => Action::Resend(tenant, which),
            _ => Action::Cancel(tenant, which),
        };
        (at + Duration::from_secs_f64(8.0 * rng.f64()), action)
    });
    ends.collect()
}
