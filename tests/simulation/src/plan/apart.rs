//! The plan of a history where only one tenant has trouble: nothing may delay the other tenant's deliveries.

use std::time::Duration;

use fastrand::Rng;

use super::{Action, Kind, Plan, PlanKind, WEBHOOKS, in_order};
use crate::{
    draws::Draws,
    endpoints::{Mood, Slot},
    faults::Chances,
};

/// The tenant that has all the trouble.
pub const TROUBLED: usize = 0;
/// The tenant with healthy endpoints.
pub const QUIET: usize = 1;

/// The plan for a seed.
pub fn draw(seed: u64, draws: Draws) -> Plan {
    let rng = &mut draws.about(&"apart");
    let mut steps = Vec::new();
    let troubled = rng.usize(1..=WEBHOOKS);
    for (tenant, webhooks) in [(TROUBLED, troubled), (QUIET, rng.usize(1..=2))] {
        let register = |webhook| (Duration::from_millis(rng.u64(0..2_000)), Action::Register((tenant, webhook), None));
        steps.extend((0..webhooks).map(register));
    }
    let length = Duration::from_secs(rng.u64(60..400));
    for webhook in 0..troubled {
        for at in [Duration::from_secs(3), length.mul_f64(rng.f64())] {
            steps.push((at, Action::React((TROUBLED, webhook), bad_mood(rng))));
        }
    }
    for _ in 0..rng.usize(1..=2) {
        let begins = Duration::from_secs(5) + length.mul_f64(rng.f64());
        let lasts = Duration::from_secs_f64(10.0 * rng.f64());
        for _ in 0..rng.usize(15..60) {
            let action = match rng.bool() {
                true => Action::Publish(TROUBLED, Kind::draw(rng), None),
                false => Action::PutOnBus(TROUBLED, Kind::draw(rng)),
            };
            steps.push((begins + lasts.mul_f64(rng.f64()), action));
        }
        for _ in 0..rng.usize(3..10) {
            let at = begins + (lasts + Duration::from_secs(15)).mul_f64(rng.f64());
            steps.push((at, Action::Publish(QUIET, Kind::draw(rng), None)));
        }
    }
    for _ in 0..rng.usize(0..12) {
        let slot = (TROUBLED, rng.usize(0..troubled));
        steps.push((Duration::from_secs(5) + length.mul_f64(rng.f64()), trouble(slot, rng)));
    }
    for _ in 0..rng.usize(10..30) {
        let at = Duration::from_secs(5) + length.mul_f64(rng.f64());
        steps.push((at, Action::Publish(QUIET, Kind::draw(rng), None)));
    }
    // In most of these histories, the table throttles the troubled tenant's partitions.
    let throttles = if rng.u8(0..4) == 0 { 0 } else { rng.u16(1..200) };
    Plan {
        seed,
        kind: PlanKind::Apart { throttles },
        chances: Chances::none(),
        steps: in_order(steps),
        speed: 1,
        order: None,
    }
}

/// A reaction that either occupies permits or causes many attempts.
fn bad_mood(rng: &mut Rng) -> Mood {
    match rng.u8(0..8) {
        0..=2 => Mood::Silent,
        3..=4 => Mood::Answers(200, rng.u64(900..14_900)),
        5 => Mood::Answers(500, rng.u64(1..14_000)),
        6 => Mood::Closes,
        _ => Mood::RetryAfter(rng.u64(1..60)),
    }
}

fn trouble(slot: Slot, rng: &mut Rng) -> Action {
    match rng.u8(0..8) {
        0..=2 => Action::Throttle(slot.0, Duration::from_secs_f64(60.0 * rng.f64())),
        3 => Action::Recover(slot, rng.u8(1..60)),
        4 => Action::Resend(slot.0, rng.u8(..)),
        5 => Action::Resume(slot),
        6 => Action::Enable(slot, rng.bool()),
        _ => Action::Move(slot),
    }
}
