//! Owners' pauses, in some of the mixed histories and of those with feeds. Each pause has an end, so no delivery waits
//! forever if the request to resume the webhook fails.

use std::time::Duration;

use super::{
    Action, Kind, Plan, Step,
    ordered::{any_time, registered},
};
use crate::draws::Draws;

/// The number of the first step that is added: higher than in a plan with order by subject, and lower than the numbers
/// in events with an idempotency key.
const FIRST: usize = 800;

impl Plan {
    /// This plan with pauses, publish requests during them, and resumptions; in most histories, the plan is unchanged.
    pub(super) fn paused(mut self, draws: Draws) -> Self {
        let rng = &mut draws.about(&"pauses by owners");
        if rng.u8(0..6) > 0 {
            return self;
        }
        let webhooks: Vec<_> = self.steps.iter().filter_map(registered).collect();
        let mut added = Vec::new();
        for _ in 0..rng.usize(1..=3) {
            let Some(slot) = rng.choice(&webhooks).copied() else { break };
            let at = any_time(self.length(), rng);
            let lasts = Duration::from_secs(rng.u64(5..900));
            added.push((at, Action::Pause(slot, lasts)));
            for _ in 0..rng.usize(1..=4) {
                let during = at + Duration::from_secs_f64(20.0 * rng.f64().powi(2));
                added.push((during, Action::Publish(slot.0, Kind::draw(rng), None)));
            }
            if rng.u8(0..3) > 0 {
                added.push((at + Duration::from_secs_f64(60.0 * rng.f64().powi(2)), Action::Resume(slot)));
            }
        }
        let added = added.into_iter().enumerate();
        self.steps.extend(added.map(|(number, (at, action))| Step { number: FIRST + number, at, action }));
        self.steps.sort_by_key(|step| step.at);
        self
    }
}
