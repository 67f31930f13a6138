//! Replays, in some of the mixed histories and of those with feeds: events are published while a webhook is disabled or
//! before it exists, and are then replayed to it, often twice.

use std::time::Duration;

use super::{
    Action, Kind, Plan, Step,
    ordered::{any_time, registered},
};
use crate::draws::Draws;

/// The number of the first step that is added: higher than in a plan with pauses, and lower than the numbers in events
/// with an idempotency key.
const FIRST: usize = 900;

impl Plan {
    /// This plan with replays; in most histories, the plan is unchanged.
    pub(super) fn replaying(mut self, draws: Draws) -> Self {
        let rng = &mut draws.about(&"replays");
        if rng.u8(0..5) > 0 {
            return self;
        }
        let webhooks: Vec<_> = self.steps.iter().filter_map(registered).collect();
        let mut added = Vec::new();
        for _ in 0..rng.usize(1..=2) {
            let Some(slot) = rng.choice(&webhooks).copied() else { break };
            let at = any_time(self.length(), rng);
            let later = |seconds: f64| at + Duration::from_secs_f64(seconds);
            if rng.u8(0..4) > 0 {
                added.push((at, Action::Enable(slot, false)));
            }
            for _ in 0..rng.usize(1..=6) {
                added.push((later(1.0 + 20.0 * rng.f64()), Action::Publish(slot.0, Kind::draw(rng), None)));
            }
            let enabled = 15.0 + 15.0 * rng.f64();
            added.push((later(enabled), Action::Enable(slot, true)));
            for _ in 0..rng.usize(1..=3) {
                let replayed = enabled + 2.0 + 120.0 * rng.f64().powi(2);
                added.push((later(replayed), Action::Replay(slot, rng.u8(1..60))));
                if rng.bool() {
                    added.push((later(replayed + 60.0 * rng.f64()), Action::Erase(slot.0, rng.u8(..))));
                }
            }
        }
        let added = added.into_iter().enumerate();
        self.steps.extend(added.map(|(number, (at, action))| Step { number: FIRST + number, at, action }));
        self.steps.sort_by_key(|step| step.at);
        self
    }
}
