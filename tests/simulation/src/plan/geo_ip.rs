//! The plan of a history about published geo-IP databases.

use std::time::Duration;

use fastrand::Rng;

use super::{Action, Plan, PlanKind, in_order};
use crate::{
    draws::Draws,
    faults::Chances,
    geo_ip::{EDITIONS, GeoIpAction, ProviderMood, between_turns},
};

/// How many times more frequent faults are than in other histories, since an update makes only a few calls.
const OFTEN: u16 = 6;

/// The plan for a seed.
pub fn draw(seed: u64, draws: Draws) -> Plan {
    let rng = &mut draws.about(&"geo-ip");
    let chances = if rng.u8(0..10) == 0 { Chances::none() } else { Chances::draw(rng).times(OFTEN) };
    let releases = (0..EDITIONS.len()).map(|edition| (Duration::ZERO, GeoIpAction::Release(edition)));
    let mut steps: Vec<_> = releases.collect();
    let length = Duration::from_secs_f64(120.0 + 6.0 * 3_600.0 * rng.f64().powi(2));
    for _ in 0..rng.usize(15..40) {
        let at = Duration::from_secs(1) + length.mul_f64(rng.f64());
        let edition = rng.usize(0..EDITIONS.len());
        match rng.u8(0..20) {
            0..=6 => steps.extend(updates(at, rng)),
            7..=11 => steps.push((at, GeoIpAction::Release(edition))),
            12..=14 => steps.push((at, GeoIpAction::Serve(edition, ProviderMood::draw(rng)))),
            15..=17 => {
                steps.push((at, GeoIpAction::RollBack(edition)));
                if rng.bool() {
                    let after = Duration::from_secs_f64(60.0 * rng.f64().powi(2));
                    steps.push((at + after, GeoIpAction::Unblock(edition)));
                }
            }
            _ => steps.push((at, GeoIpAction::Unblock(edition))),
        }
    }
    let steps = steps.into_iter().map(|(at, action)| (between_turns(at), Action::GeoIp(action)));
    Plan { seed, kind: PlanKind::GeoIp, chances, steps: in_order(steps.collect()), speed: 1, order: None }
}

/// One update, or two within seconds.
fn updates(at: Duration, rng: &mut Rng) -> Vec<(Duration, GeoIpAction)> {
    let update = |rng: &mut Rng| match rng.u8(0..6) {
        0 => GeoIpAction::UpdateByRequest(rng.u8(0..3) > 0),
        _ => GeoIpAction::Update,
    };
    let mut updates = vec![(at, update(rng))];
    if rng.bool() {
        updates.push((at + Duration::from_secs_f64(4.0 * rng.f64().powi(2)), update(rng)));
    }
    updates
}
