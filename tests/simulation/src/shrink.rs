//! The shortest plan that still breaks a promise, found by trying shorter and shorter plans.
//!
//! A history's choices depend only on the seed and on their subjects, so a shorter history usually behaves like the
//! remaining part of the longer one. The search algorithm is delta debugging:
//! <https://www.st.cs.uni-saarland.de/papers/tse2002/tse2002.pdf>.

use std::time::Duration;

use crate::plan::Plan;

/// How many times faster the steps of a shorter history may follow each other, highest first.
const SPEEDS: [u32; 4] = [64, 16, 4, 2];

/// The length below which a plan is short enough to read.
const SHORT: Duration = Duration::from_millis(500);

/// The shortest plan found for which `breaks` is still true, as it must be for the given plan.
pub fn shrink(plan: Plan, mut breaks: impl FnMut(&Plan) -> bool) -> Plan {
    let mut best = plan;
    loop {
        let before = size(&best);
        best = with_fewer_steps(best, &mut breaks);
        best = with_fewer_faults(best, &mut breaks);
        best = faster(best, &mut breaks);
        if size(&best) == before {
            return best;
        }
    }
}

fn size(plan: &Plan) -> (usize, usize, u32) {
    (plan.steps.len(), plan.chances.kinds().count(), plan.speed)
}

/// Removes halves of the steps, then quarters, and finally single steps.
fn with_fewer_steps(mut best: Plan, breaks: &mut impl FnMut(&Plan) -> bool) -> Plan {
    let mut part = best.steps.len().div_ceil(2);
    while part > 0 {
        // Start with the last steps, since no step after the break is needed.
        let mut end = best.steps.len();
        while end > 0 {
            let from = end.saturating_sub(part);
            let mut shorter = best.clone();
            shorter.steps.drain(from..end);
            if breaks(&shorter) {
                best = shorter;
            }
            end = from;
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    best
}

fn with_fewer_faults(mut best: Plan, breaks: &mut impl FnMut(&Plan) -> bool) -> Plan {
    for kind in best.chances.kinds().collect::<Vec<_>>() {
        let simpler = Plan { chances: best.chances.without(kind), ..best.clone() };
        if breaks(&simpler) {
            best = simpler;
        }
    }
    best
}

fn faster(best: Plan, breaks: &mut impl FnMut(&Plan) -> bool) -> Plan {
    let candidates = SPEEDS.iter().map(|times| best.clone().faster(*times));
    let shorter = candidates.filter(|faster| faster.length() > SHORT).find(|faster| breaks(faster));
    shorter.unwrap_or(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        faults::{Chances, Fault},
        plan::{Action, PlanKind, Step},
    };

    /// A plan with many steps and all kinds of faults.
    fn plan() -> Plan {
        let step = |number: u8| {
            let at = Duration::from_secs(10 * u64::from(number));
            Step { number: number.into(), at, action: Action::Expire }
        };
        let steps = (0..50).map(step).collect();
        Plan { seed: 7, kind: PlanKind::Mixed, chances: Chances::all(), steps, speed: 1, order: None }
    }

    fn numbers(plan: &Plan) -> Vec<usize> {
        plan.steps.iter().map(|step| step.number).collect()
    }

    #[test]
    fn exactly_the_steps_and_faults_that_break_the_promise_are_left() {
        let needed = [3, 20, 21, 41];
        let kinds = [Fault::AnswerLost, Fault::KilledAfter];
        let mut tries = 0;
        let shortest = shrink(plan(), |plan| {
            tries += 1;
            let has_steps = needed.iter().all(|number| numbers(plan).contains(number));
            has_steps && kinds.iter().all(|kind| plan.chances.kinds().any(|other| other == *kind))
        });
        assert_eq!(numbers(&shortest), needed);
        assert_eq!(shortest.chances.kinds().collect::<Vec<_>>(), kinds);
        assert!(tries < 400, "{tries} histories are many");
    }

    #[test]
    fn a_history_is_shortened_while_it_breaks_the_promise() {
        let shortest = shrink(plan(), |plan| plan.length() > Duration::from_secs(2) && numbers(plan).contains(&25));
        assert_eq!(numbers(&shortest), [25]);
        assert!(shortest.speed > 1 && shortest.length() < Duration::from_secs(8), "{:?}", shortest.length());
    }

    #[test]
    fn a_plan_that_always_breaks_is_left_empty() {
        let shortest = shrink(plan(), |_| true);
        assert_eq!((numbers(&shortest).len(), shortest.chances.kinds().count()), (0, 0));
    }

    #[test]
    fn the_command_of_a_shrunken_plan_replays_it() {
        let shortest = plan().only(&[4, 9]).with_faults(&[Fault::Slow, Fault::KilledAfter]).faster(4);
        assert_eq!(shortest.command(), "make simulate SEED=7 STEPS=4,9 FAULTS=slow,killed-after SPEED=4");
        assert_eq!(plan().only(&[]).with_faults(&[]).command(), "make simulate SEED=7 STEPS=none FAULTS=none");
    }
}
