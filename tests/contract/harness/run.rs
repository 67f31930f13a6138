//! Runs the tests concurrently against one bundle, which it starts and stops, or against a deployed stack.

use std::{
    cell::RefCell,
    fmt::Write as _,
    fs::File,
    io::Write as _,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    pin::Pin,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use tokio::{runtime::Runtime, sync::Semaphore};

use super::{
    Browser, Bundle, Contract, Suite,
    rights::{self, Whole},
    stack::NeedsBundle,
    suite::{Service, take_waited},
    until_gone,
};

/// The number of threads. Most threads are waiting for a turn, or for a permit for another bundle or a browser.
const THREADS: usize = 128;

/// A browser keeps a processor busy, so only a few may run at a time.
static BROWSERS: Semaphore = Semaphore::const_new(2);

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// A test of one of the contract's promises.
#[derive(Clone, Copy)]
pub struct Test {
    /// The names of the module and the promise.
    pub name: &'static str,
    /// The function that runs the test.
    pub run: fn(Arc<Suite>) -> Running,
    /// When the test is scheduled.
    pub when: When,
}

/// How a test is scheduled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Runs alongside other tests.
    BesideOthers,
    /// Runs alongside other tests, if the machine has a browser.
    InBrowser,
    /// Runs only with `--ignored`, since it takes a long time or needs a tool that not every machine has.
    OnDemand,
}

inventory::collect!(Test);

/// The modules with slow tests, which start first.
const SLOW: [&str; 16] = [
    "crash_points",
    "crash",
    "table_chaos",
    "queue_chaos",
    "dispatching",
    "revocation",
    "signing_keys",
    "key_rotation",
    "geo_ip_providers",
    "geo_ip_crash",
    "recover_jobs",
    "recover",
    "webhook_removal",
    "agents_conformance",
    "documented_receivers",
    "addresses",
];

impl Test {
    /// Whether the test runs only with `--ignored` on this machine.
    fn is_ignored(&self) -> bool {
        match self.when {
            When::BesideOthers => false,
            When::InBrowser => !Browser::is_installed(),
            When::OnDemand => true,
        }
    }

    /// The names of the module and the promise, without the program's name.
    fn short_name(&self) -> &'static str {
        self.name.split_once("::").map_or(self.name, |(_, name)| name)
    }

    /// A sort key: slow tests first, then by name.
    fn order(&self) -> (usize, &'static str) {
        let module = self.short_name().split("::").next().unwrap_or_default();
        let position = SLOW.iter().position(|slow| *slow == module).unwrap_or(SLOW.len());
        (position, self.short_name())
    }
}

/// How long each test took, except for its wait for another bundle's permit.
#[derive(Default)]
struct Times(Mutex<Vec<(&'static str, Duration)>>);

impl Times {
    async fn of(&self, test: Test, suite: Arc<Suite>) {
        // A failed test may have left its waiting time on this thread.
        take_waited();
        let began = Instant::now();
        (test.run)(suite).await;
        let took = began.elapsed().saturating_sub(take_waited());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((test.short_name(), took));
    }

    /// Adds the times to the file that `tests/timetable.py` reads.
    fn note(&self) {
        #[expect(clippy::disallowed_methods, reason = "an option of the test program, like its arguments")]
        let Some(file) = std::env::var_os("TIMETABLE").map(PathBuf::from) else { return };
        let mut lines = String::new();
        for (name, time) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            writeln!(lines, "test\t{:.1}\t{name}", time.as_secs_f64()).expect("a text takes every line");
        }
        let written =
            File::options().create(true).append(true).open(file).and_then(|mut file| file.write_all(lines.as_bytes()));
        written.expect("the timetable can be written");
    }
}

thread_local! {
    /// The location and message of this thread's last panic, for the report.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the tests selected on the command line, then stops the bundle and checks that nothing is left behind.
pub fn run() -> ExitCode {
    let mut tests: Vec<Test> = inventory::iter::<Test>().copied().collect();
    tests.sort_by_key(Test::order);
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let all = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.ignored;
    // Commas separate the filters; each filter is a prefix of names.
    if let Some(filters) = arguments.filter.take_if(|filter| filter.contains(',')) {
        tests.retain(|test| filters.split(',').any(|filter| test.short_name().starts_with(filter)));
    }
    if arguments.list {
        let listed = |test: &Test| Trial::test(test.short_name(), || Ok(())).with_ignored_flag(test.is_ignored());
        let trials = tests.iter().map(listed).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }

    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        PANIC.set(Some(format!("{message}\n  at {place}")));
    }));
    let runtime = Arc::new(Runtime::new().expect("the system gives threads"));
    let suite = match runtime.block_on(Suite::start()) {
        Ok(suite) => Arc::new(suite),
        Err(fault) => {
            return failure("the bundle's start", &fault);
        }
    };
    let times = Arc::new(Times::default());
    let running = |test: &Test| trial(*test, &runtime, &suite, &times).with_ignored_flag(test.is_ignored());
    let trials = tests.iter().map(running).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    times.note();
    match &suite.service {
        Service::Stack(_) => conclusion.exit_code(),
        Service::Bundle(bundle) => runtime.block_on(end(bundle, &suite.contract, &conclusion, all)),
    }
}

/// The maximum number of runs of a test, for a machine that stalls each time.
const RUNS: usize = 3;

/// Runs one test. A test that fails while the machine stalls is run again, since its time limits or the service's may
/// have been exceeded.
fn trial(test: Test, runtime: &Arc<Runtime>, suite: &Arc<Suite>, times: &Arc<Times>) -> Trial {
    let runtime = Arc::clone(runtime);
    let suite = Arc::clone(suite);
    let times = Arc::clone(times);
    Trial::ignorable_test(test.short_name(), move || {
        let run = async || {
            let _browser = if test.when == When::InBrowser { Some(BROWSERS.acquire().await) } else { None };
            let _turn = suite.turn().await;
            times.of(test, Arc::clone(&suite)).await;
        };
        let mut runs = 1;
        loop {
            let began = Instant::now();
            let Err(panic) = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run()))) else {
                return Ok(Completion::Completed);
            };
            if let Some(NeedsBundle(what)) = panic.downcast_ref() {
                return Ok(Completion::ignored_with(format!("needs {what}")));
            }
            let fault = PANIC.take().unwrap_or_default();
            match suite.stalls.since(began) {
                Some(stall) if runs < RUNS => {
                    let name = test.short_name();
                    eprintln!("{name} failed while the machine stalled for {stall:.1?}, and runs again: {fault}");
                    runs += 1;
                }
                _ => return Err(Failed::from(fault)),
            }
        }
    })
}

/// Stops the bundle, and reports on the tests, the stop, the functions' rights, and the members of all responses. `all`
/// says whether every test ran.
async fn end(bundle: &Bundle, contract: &Contract, conclusion: &Conclusion, all: bool) -> ExitCode {
    let ended = stop(bundle).await;
    if conclusion.has_failed() || ended.is_err() {
        eprintln!("{}", bundle.logs());
    }
    if let Err(fault) = ended {
        return failure("the bundle's end", &fault);
    }
    rights::collect(&bundle.record());
    #[expect(clippy::disallowed_methods, reason = "an option of the test program, like its arguments")]
    let of_one = std::env::var("RIGHTS_OF");
    let whole = if all { Whole::All } else { of_one.map_or(Whole::None, Whole::Of) };
    let faults = rights::faults(&whole);
    if !faults.is_empty() {
        return failure(
            "the functions' rights",
            &format!("The grants of template.yaml do not fit the calls:\n  {}", faults.join("\n  ")),
        );
    }
    let faults = if all { contract.members.not_required() } else { Vec::new() };
    if faults.is_empty() {
        return conclusion.exit_code();
    }
    failure(
        "the members of responses",
        &format!("openapi.yaml does not require members that every response has:\n  {}", faults.join("\n  ")),
    )
}

/// Reports a failure outside the tests, in the format of a failed test.
fn failure(what: &str, fault: &str) -> ExitCode {
    eprintln!("\n---- {what} ----\n{fault}");
    ExitCode::FAILURE
}

async fn stop(bundle: &Bundle) -> Result<(), String> {
    let children = bundle.processes();
    let status = bundle.stop().await;
    if !status.success() {
        return Err(format!("the bundle did not end well at SIGTERM: {status}"));
    }
    until_gone(&children).await;
    Ok(())
}
