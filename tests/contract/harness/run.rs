//! Runs the tests concurrently against one bundle, which it starts and stops, or against a deployed stack.

use std::{
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    process::ExitCode,
    sync::Arc,
};

use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use tokio::{runtime::Runtime, sync::RwLock};

use super::{
    Bundle, Suite,
    rights::{self, Whole},
    stack::NeedsBundle,
    suite::Service,
    until_gone,
};

/// Number of concurrent tests: far more than processors, since tests mostly wait.
const AT_A_TIME: usize = 32;

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One promise of the contract.
#[derive(Clone, Copy)]
pub struct Test {
    /// The module and the promise.
    pub name: &'static str,
    /// The test.
    pub run: fn(Arc<Suite>) -> Running,
    /// The test's scheduling.
    pub when: When,
}

/// The scheduling of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Beside other tests.
    BesideOthers,
    /// While no other test runs, since it measures.
    Alone,
    /// Only with `--ignored`, since it takes long, or needs something that not every machine has.
    OnDemand,
}

inventory::collect!(Test);

/// Modules with slow tests, which begin first.
const SLOW: [&str; 12] = [
    "payments_refresh",
    "revocation",
    "geo_ip_providers",
    "geo_ip_crash",
    "addresses",
    "agents_diagnosis",
    "crash_points",
    "crash",
    "queue_chaos",
    "table_chaos",
    "isolation",
    "key_rotation",
];

impl Test {
    /// The module and the promise, without the program's name.
    fn short_name(&self) -> &'static str {
        self.name.split_once("::").map_or(self.name, |(_, name)| name)
    }

    /// Slow tests first, tests that run alone last, and otherwise by name.
    fn order(&self) -> (bool, usize, &'static str) {
        let module = self.short_name().split("::").next().unwrap_or_default();
        let position = SLOW.iter().position(|slow| *slow == module).unwrap_or(SLOW.len());
        (self.when == When::Alone, position, self.short_name())
    }
}

thread_local! {
    /// Location and message of this thread's last panic, for the report.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the tests that the command line selects, then stops the bundle and checks that nothing of it is left.
pub fn run() -> ExitCode {
    let mut tests: Vec<Test> = inventory::iter::<Test>().copied().collect();
    tests.sort_by_key(Test::order);
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    if arguments.list {
        let listed =
            |test: &Test| Trial::test(test.short_name(), || Ok(())).with_ignored_flag(test.when == When::OnDemand);
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
    let machine = Arc::new(RwLock::new(()));
    let running = |test: &Test| {
        trial(test.short_name(), *test, &runtime, &suite, &machine).with_ignored_flag(test.when == When::OnDemand)
    };
    let trials = tests.iter().map(running).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    match &suite.service {
        Service::Stack(_) => conclusion.exit_code(),
        Service::Bundle(bundle) => runtime.block_on(end(bundle, &conclusion, &arguments)),
    }
}

/// Runs one test, alone or beside others.
fn trial(name: &str, test: Test, runtime: &Arc<Runtime>, suite: &Arc<Suite>, machine: &Arc<RwLock<()>>) -> Trial {
    let runtime = Arc::clone(runtime);
    let suite = Arc::clone(suite);
    let machine = Arc::clone(machine);
    let run = async move || match test.when {
        When::Alone => {
            let _alone = machine.write().await;
            (test.run)(suite).await;
        }
        When::BesideOthers | When::OnDemand => {
            let _beside_others = machine.read().await;
            (test.run)(suite).await;
        }
    };
    Trial::ignorable_test(name, move || match panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run()))) {
        Ok(()) => Ok(Completion::Completed),
        Err(panic) => match panic.downcast_ref() {
            Some(NeedsBundle(what)) => Ok(Completion::ignored_with(format!("needs {what}"))),
            None => Err(Failed::from(PANIC.take().unwrap_or_default())),
        },
    })
}

/// Stops the bundle, and reports the result: of the tests, of the stop, and of the functions' rights.
async fn end(bundle: &Bundle, conclusion: &Conclusion, arguments: &Arguments) -> ExitCode {
    let ended = stop(bundle).await;
    if conclusion.has_failed() || ended.is_err() {
        eprintln!("{}", bundle.logs());
    }
    if let Err(fault) = ended {
        return failure("the bundle's end", &fault);
    }
    rights::collect(&bundle.record());
    let all = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.ignored;
    #[expect(clippy::disallowed_methods, reason = "an option of the test program, like its arguments")]
    let of_one = std::env::var("RIGHTS_OF");
    let whole = if all { Whole::All } else { of_one.map_or(Whole::None, Whole::Of) };
    let faults = rights::faults(&whole);
    if faults.is_empty() {
        return conclusion.exit_code();
    }
    failure(
        "the functions' rights",
        &format!("The grants of template.yaml do not fit the calls:\n  {}", faults.join("\n  ")),
    )
}

/// Reports a failure outside of tests, in the format of a failed test.
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
