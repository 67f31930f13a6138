//! The plan of a history with pull webhooks: a mixed history whose feeds have readers.

use std::time::Duration;

use fastrand::Rng;

use super::{Action, Plan, PlanKind, Step, WEBHOOKS};
use crate::{draws::Draws, endpoints::Slot, readers::Reading};

/// The plan for a seed.
pub fn draw(seed: u64, draws: Draws) -> Plan {
    let mut plan = Plan { kind: PlanKind::Feeds, ..Plan::mixed(seed, draws, false) };
    let rng = &mut draws.about(&"feeds");
    let mut added = Vec::new();
    let mut webhooks = Vec::new();
    for step in &mut plan.steps {
        match step.action {
            Action::Register(slot, kind) => {
                webhooks.push(slot);
                if rng.u8(0..5) > 0 {
                    step.action = Action::RegisterPulled(slot, kind);
                }
            }
            Action::Publish(tenant, ..) | Action::PutOnBus(tenant, _) => {
                for _ in 0..rng.usize(1..=2) {
                    added.extend(readers(slot(&webhooks, tenant, rng), step.at, rng));
                }
            }
            _ => {}
        }
    }
    let length = plan.length();
    let any_time = |rng: &mut Rng| Duration::from_secs(2) + length.mul_f64(rng.f64());
    for _ in 0..rng.usize(0..8) {
        let tenant = rng.usize(0..super::TENANTS);
        let (slot, at) = (slot(&webhooks, tenant, rng), any_time(rng));
        added.extend(readers(slot, at, rng));
    }
    for _ in 0..rng.usize(0..5) {
        let tenant = rng.usize(0..super::TENANTS);
        added.push((any_time(rng), Action::Pull(slot(&webhooks, tenant, rng), rng.bool())));
    }
    let late = late_readers(&plan, &webhooks, &mut draws.about(&"late readers"));
    let numbered = |from: usize, steps: Vec<(Duration, Action)>| {
        let steps = steps.into_iter().enumerate();
        steps.map(move |(number, (at, action))| Step { number: from + number, at, action })
    };
    plan.steps.extend(numbered(40_000, added).chain(numbered(45_000, late)));
    plan.steps.sort_by_key(|step| step.at);
    plan
}

/// One of a tenant's webhooks.
fn slot(webhooks: &[Slot], tenant: usize, rng: &mut Rng) -> Slot {
    let of_tenant: Vec<_> = webhooks.iter().filter(|(of, _)| *of == tenant).collect();
    rng.choice(of_tenant).copied().unwrap_or((tenant, rng.usize(0..WEBHOOKS)))
}

/// Readers that answer only after their deliveries have become visible again, while another reader is requesting them.
fn late_readers(plan: &Plan, webhooks: &[Slot], rng: &mut Rng) -> Vec<(Duration, Action)> {
    let is_published = |step: &&Step| matches!(step.action, Action::Publish(..) | Action::PutOnBus(..));
    let mut readers = Vec::new();
    for step in plan.steps.iter().filter(is_published) {
        let (Action::Publish(tenant, ..) | Action::PutOnBus(tenant, _)) = step.action else { continue };
        if rng.u8(0..4) > 0 {
            continue;
        }
        let slot = slot(webhooks, tenant, rng);
        let at = step.at + Duration::from_secs_f64(rng.f64());
        readers.push((at, Action::Read(slot, Reading::late(rng))));
        let later = Duration::from_secs_f64(9.0 + 8.0 * rng.f64());
        readers.push((at + later, Action::Read(slot, Reading::draw(rng))));
    }
    readers
}

/// Readers soon after this time: one, or several concurrently, and often a later one for deliveries that have become
/// visible again.
fn readers(slot: Slot, from: Duration, rng: &mut Rng) -> Vec<(Duration, Action)> {
    let at = from + Duration::from_secs_f64(8.0 * rng.f64().powi(2));
    let mut readers = vec![(at, Action::Read(slot, Reading::draw(rng)))];
    if rng.bool() {
        for _ in 0..rng.usize(1..=2) {
            let soon = Duration::from_secs_f64(0.3 * rng.f64().powi(2));
            readers.push((at + soon, Action::Read(slot, Reading::draw(rng))));
        }
    }
    if rng.bool() {
        let later = Duration::from_secs_f64(8.0 + 60.0 * rng.f64().powi(2));
        readers.push((at + later, Action::Read(slot, Reading::draw(rng))));
    }
    readers
}
