//! Runs the tests side by side against one bundle, which it starts before and stops after them, or against a deployed stack.

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

/// Tests mostly wait, so there are many more of them at a time than processors.
const AT_A_TIME: usize = 32;

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One promise of the contract.
#[derive(Clone, Copy)]
pub struct Test {
    /// The module and the promise.
    pub name: &'static str,
    /// The test.
    pub run: fn(Arc<Suite>) -> Running,
    /// When it runs.
    pub when: When,
}

/// When a test runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Side by side with others.
    BesideOthers,
    /// While no other does, since it measures.
    Alone,
    /// Only when it is asked for, with `--ignored`: it needs what not every machine has.
    OnDemand,
}

inventory::collect!(Test);

/// Modules with slow tests, which begin first, so that the others run beside them.
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

    /// Slow tests first, those that need the machine alone last, and otherwise by name.
    fn order(&self) -> (bool, usize, &'static str) {
        let module = self.short_name().split("::").next().unwrap_or_default();
        let position = SLOW.iter().position(|slow| *slow == module).unwrap_or(SLOW.len());
        (self.when == When::Alone, position, self.short_name())
    }
}

thread_local! {
    /// Where and why this thread panicked last, for the report.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the tests that the command line asks for, then stops the bundle and makes sure that nothing of it is left.
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
    let runtime = Arc::new(Runtime::new().expect("a runtime needs nothing but threads"));
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

/// One test. It has the machine for itself, or shares it with all that do not need that.
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

/// Stops the bundle, and says how all went: the tests, the end itself, and the functions' rights.
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
    #[expect(clippy::disallowed_methods, reason = "a choice of who runs the tests, as the arguments are")]
    let of_one = std::env::var("RIGHTS_OF");
    let whole = if all { Whole::All } else { of_one.map_or(Whole::None, Whole::Of) };
    let faults = rights::faults(&whole);
    if faults.is_empty() {
        return conclusion.exit_code();
    }
    failure(
        "the functions' rights",
        &format!("They are not as template.yaml should have them:\n  {}", faults.join("\n  ")),
    )
}

/// Tells what failed that is no test, in the form in which a failed test is told.
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
