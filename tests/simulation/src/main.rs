//! `make simulate`: runs histories and reports what they covered, or replays one.

mod replay;
mod run;

use std::process::ExitCode;

use clap::Parser;
use simulation::faults::Fault;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the real use cases under seeded histories, and checks what the service promises.
#[derive(Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many histories to run; 1000 unless a time is given.
    #[arg(long)]
    seeds: Option<u64>,
    /// Runs only histories of this kind: mixed, apart, geo-ip or feeds. Histories of other kinds also count as seeds.
    #[arg(long)]
    kind: Option<String>,
    /// Ends after this many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Continues after a broken promise.
    #[arg(long)]
    keep_going: bool,
    /// Replays the history of this seed, prints what happened, and shrinks it if it breaks a promise.
    #[arg(long)]
    seed: Option<u64>,
    /// Replays only the steps with these numbers, or `none`; does not shrink.
    #[arg(long, requires = "seed", value_parser = steps)]
    steps: Option<Steps>,
    /// Replays with only these kinds of faults, or `none`; does not shrink.
    #[arg(long, requires = "seed", value_parser = faults)]
    faults: Option<Faults>,
    /// Replays with steps that follow each other this many times faster.
    #[arg(long, requires = "seed", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    speed: u32,
}

type Steps = Vec<usize>;
type Faults = Vec<Fault>;

fn main() -> ExitCode {
    let options = Options::parse();
    match options.seed {
        Some(seed) => replay::replay(seed, &options),
        None => run::run(&options),
    }
}

/// The parts of a comma-separated list; `none` is the empty list, since make forwards no empty values.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| *part != "none")
}

fn steps(list: &str) -> Result<Steps, String> {
    parts(list).map(|number| number.parse().map_err(|_| format!("`{number}` is no number of a step"))).collect()
}

fn faults(list: &str) -> Result<Faults, String> {
    let known = || Fault::ALL.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ");
    let read = |name| Fault::named(name).ok_or_else(|| format!("`{name}` is no kind of fault; the kinds: {}", known()));
    parts(list).map(read).collect()
}
