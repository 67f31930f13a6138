//! `make simulate`: runs histories, prints what they covered, and stops at the first broken promise.

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use simulation::{faults::Coverage, history, journal::Journal, plan::Plan};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the real use cases under seeded histories, and checks what the service promises.
#[derive(Parser)]
struct Options {
    /// Replays one history, and prints what happened.
    #[arg(long)]
    seed: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many histories to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Ends after this many minutes.
    #[arg(long)]
    minutes: Option<u64>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(seed) = options.seed {
        return replay(seed);
    }
    let began = Instant::now();
    let next = AtomicU64::new(options.first);
    let end = options.first + options.seeds;
    let total = Mutex::new((0_u64, 0_u64, Coverage::default(), Vec::new()));
    let locked = || total.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    let late =
                        options.minutes.is_some_and(|minutes| began.elapsed() > Duration::from_secs(60 * minutes));
                    if seed >= end || late {
                        return;
                    }
                    let outcome = history::run(&Plan::draw(seed), Journal::brief());
                    let mut total = locked();
                    total.0 += 1;
                    total.1 += outcome.happened;
                    total.2.add(&outcome.coverage);
                    if !outcome.broken.is_empty() {
                        println!("seed {seed}: {}", outcome.broken[0]);
                        total.3.push(seed);
                    }
                }
            });
        }
    });
    let (histories, happened, coverage, broken) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{histories} histories in {seconds:.0} s: {:.1} a second, {} steps a history, {} await points, {} broken",
        histories as f64 / seconds,
        happened / histories.max(1),
        coverage.points.len(),
        broken.len()
    );
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64) -> ExitCode {
    let outcome = history::run(&Plan::draw(seed), Journal::readable());
    for line in &outcome.log {
        println!("{line}");
    }
    for broken in &outcome.broken {
        println!("BROKEN {broken}");
    }
    println!("fingerprint {:x}", outcome.fingerprint);
    if outcome.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
