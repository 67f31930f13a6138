//! A run of many histories, on all cores.

use std::{
    io::{IsTerminal, Write, stderr},
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use simulation::{
    history::{self, Outcome},
    journal::Journal,
    plan::Plan,
    report::Report,
};

use crate::Options;

/// The time between two progress lines.
const INTERVAL: Duration = Duration::from_secs(5);
/// The number of histories, if neither a number nor a time is given.
const SEEDS: u64 = 1_000;

/// A history that has ended; there is no outcome if the simulation itself panicked.
struct Ended {
    seed: u64,
    outcome: Option<Outcome>,
}

/// The seeds that have not been used.
struct Seeds {
    next: AtomicU64,
    end: u64,
    /// When to stop starting histories.
    until: Option<Instant>,
    stopped: AtomicBool,
}

/// Runs histories until their number, the time or a broken promise ends the run, then prints the report.
pub fn run(options: &Options) -> ExitCode {
    let began = Instant::now();
    let count = options.seeds.unwrap_or(if options.minutes.is_some() { u64::MAX } else { SEEDS });
    let seeds = Seeds {
        next: AtomicU64::new(options.first),
        end: options.first.saturating_add(count),
        until: options.minutes.map(|minutes| began + Duration::from_secs(60 * minutes)),
        stopped: AtomicBool::new(false),
    };
    let mut report = Report::default();
    thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        let seeds = &seeds;
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let sender = sender.clone();
            scope.spawn(move || seeds.work(sender, options.kind.as_deref()));
        }
        drop(sender);
        let mut shown = began;
        loop {
            match ended.recv_timeout(INTERVAL.saturating_sub(shown.elapsed())) {
                Ok(Ended { seed, outcome: Some(outcome) }) => {
                    let broken = report.broken.len();
                    report.add(seed, &outcome);
                    for (seed, broken) in &report.broken[broken..] {
                        clear();
                        println!("Seed {seed}: {broken}");
                    }
                }
                Ok(Ended { seed, outcome: None }) => report.broken.push((seed, "the simulation panicked".to_owned())),
                Err(RecvTimeoutError::Timeout) => {
                    shown = Instant::now();
                    show(&report.progress(began.elapsed()));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !report.broken.is_empty() && !options.keep_going {
                seeds.stopped.store(true, Relaxed);
            }
        }
    });
    clear();
    print!("{}", report.text(began.elapsed()));
    if report.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Seeds {
    fn work(&self, ended: Sender<Ended>, kind: Option<&str>) {
        while let Some(seed) = self.take() {
            let plan = Plan::draw(seed);
            if kind.is_some_and(|kind| kind != plan.kind.name()) {
                continue;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| history::run(&plan, Journal::brief())));
            // The receiver exists until all senders have been dropped.
            let _ = ended.send(Ended { seed, outcome: outcome.ok() });
        }
    }

    fn take(&self) -> Option<u64> {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        if is_late || self.stopped.load(Relaxed) {
            return None;
        }
        Some(self.next.fetch_add(1, Relaxed)).filter(|seed| *seed < self.end)
    }
}

/// Shows the progress; on a terminal, in a single line that the next one overwrites.
fn show(progress: &str) {
    let mut stderr = stderr().lock();
    let end = if stderr.is_terminal() { "" } else { "\n" };
    clear_line(&mut stderr);
    // Progress that cannot be shown is omitted.
    let _ = write!(stderr, "{progress}{end}");
    let _ = stderr.flush();
}

/// Removes the progress line from a terminal.
fn clear() {
    clear_line(&mut stderr().lock());
}

fn clear_line(stderr: &mut (impl Write + IsTerminal)) {
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}
