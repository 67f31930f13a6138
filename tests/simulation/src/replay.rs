//! Replaying one history, and finding its shortest form that breaks the same promise.

use std::{panic, process::ExitCode, time::Instant};

use simulation::{
    history::{self, Outcome},
    journal::Journal,
    plan::Plan,
    promises::Promise,
    shrink::shrink,
};

use crate::Options;

/// Replays a history, and shrinks it if it breaks a promise and no part of it was left out.
pub fn replay(seed: u64, options: &Options) -> ExitCode {
    let mut plan = Plan::draw(seed);
    if let Some(steps) = &options.steps {
        plan = plan.only(steps);
    }
    if let Some(faults) = &options.faults {
        plan = plan.with_faults(faults);
    }
    plan = plan.faster(options.speed);
    let outcome = show(&plan);
    let Some(broken) = outcome.broken.first() else {
        println!("\nNo promise was broken.");
        return ExitCode::SUCCESS;
    };
    if options.steps.is_none() && options.faults.is_none() {
        let shortest = shortest(plan, broken.promise);
        println!("\nThe shortest history that breaks the same promise");
        show(&shortest);
        println!("\n{}", shortest.command());
    }
    ExitCode::FAILURE
}

/// Carries out a plan, and prints the plan, the log and the broken promises.
fn show(plan: &Plan) -> Outcome {
    let faults: Vec<_> = plan.chances.kinds().map(|kind| kind.name()).collect();
    let faults = if faults.is_empty() { "no faults".to_owned() } else { faults.join(", ") };
    println!("\nSeed {}, with {faults}", plan.seed);
    if let Some(order) = &plan.order {
        println!("Order by subject, with {} subjects, for the webhooks {:?}", order.subjects, order.webhooks);
    }
    println!("\nSteps");
    for step in &plan.steps {
        println!("{:>12.3} s  step {:<3}  {:?}", step.at.as_secs_f64(), step.number, step.action);
    }
    let outcome = history::run(plan, Journal::readable());
    println!("\nLog");
    outcome.log.iter().for_each(|line| println!("{line}"));
    println!("\nFingerprint {:x}", outcome.fingerprint);
    outcome.broken.iter().for_each(|broken| println!("Broken: {broken}"));
    outcome
}

fn shortest(plan: Plan, promise: Promise) -> Plan {
    let began = Instant::now();
    let mut tries = 0;
    // Each try may repeat a panic that the log has already shown.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let shortest = shrink(plan, |plan| {
        tries += 1;
        history::run(plan, Journal::brief()).broken.iter().any(|broken| broken.promise == promise)
    });
    panic::set_hook(hook);
    println!("\nShrunken by {tries} shorter histories in {:.0} s", began.elapsed().as_secs_f64());
    shortest
}
