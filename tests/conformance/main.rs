//! The local stand-ins for SQS and Secrets Manager, compared with ministack, a third-party emulator: to detect
//! differences, every case runs against both through AWS's SDK.
//!
//! A case is an async function, named after the behaviour that it proves and listed in its module's `CASES`. A case in
//! which ministack deviates from AWS's documentation runs only against the stand-ins, and states the reason.

mod ours;
mod queue;
mod queues;
mod receiving;
mod secrets;
mod sending;
mod side;

use std::{process::ExitCode, sync::Arc};

use fakes::Ministack;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;

use side::{Case, Side};

fn main() -> ExitCode {
    let runtime = Arc::new(Runtime::new().expect("the system gives threads"));
    let (here, ministack) =
        runtime.block_on(async { (ours::start().await, Ministack::start("sqs,secretsmanager").await) });
    let cases = [queues::CASES, sending::CASES, receiving::CASES, secrets::CASES].concat();
    let trials = cases.iter().flat_map(|case| {
        let sides = [("here", here.url.clone()), ("at ministack", ministack.url())];
        let asked = sides.into_iter().filter(|(name, _)| case.here_alone.is_none() || *name == "here");
        asked.map(|(name, url)| trial(case, name, Side::new(url), &runtime)).collect::<Vec<_>>()
    });
    let trials = trials.collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(case: &Case, name: &str, side: Side, runtime: &Arc<Runtime>) -> Trial {
    let run = case.run;
    let runtime = Arc::clone(runtime);
    Trial::test(format!("{} {name}", case.name), move || {
        // Run the case in a separate task, so that a panic counts as its failure.
        runtime.block_on(async { tokio::spawn(run(side)).await }).map_err(|panic| panic.to_string().into())
    })
}
