//! A function's threads.

use std::{future::Future, io, num::NonZeroU32};

use tokio::runtime::{Builder, Runtime};

use crate::StartError;
use base::{Environment, FromEnvironment, environment};

/// How many events Lambda sends at once, from `AWS_LAMBDA_MAX_CONCURRENCY`; one by default.
struct EventsAtOnce(NonZeroU32);

impl FromEnvironment for EventsAtOnce {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        environment.parsed("AWS_LAMBDA_MAX_CONCURRENCY", NonZeroU32::MIN).map(Self)
    }
}

/// Runs a function until Lambda ends the process: on one thread if it handles one event at a time, otherwise with a
/// thread for each core.
///
/// # Errors
/// The function's errors, or [`StartError::Threads`] if the runtime cannot start.
pub fn run(function: impl Future<Output = Result<(), StartError>>) -> Result<(), StartError> {
    let EventsAtOnce(events) = environment::read()?;
    runtime(events).map_err(StartError::Threads)?.block_on(function)
}

fn runtime(events: NonZeroU32) -> io::Result<Runtime> {
    let mut runtime = if events.get() > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    runtime.enable_all().build()
}

#[cfg(test)]
mod tests {
    use tokio::runtime::RuntimeFlavor;

    use super::*;

    #[test]
    fn one_event_at_a_time_needs_one_thread_and_several_get_more() {
        let events = |variable: fn(&str) -> Option<String>| environment::read_from::<EventsAtOnce>(variable);
        let flavor = |EventsAtOnce(events)| runtime(events).expect("a runtime").handle().runtime_flavor();
        let classic = events(|_| None).map(flavor);
        assert_eq!(classic, Ok(RuntimeFlavor::CurrentThread));
        let several = events(|name| (name == "AWS_LAMBDA_MAX_CONCURRENCY").then(|| "16".to_owned())).map(flavor);
        assert_eq!(several, Ok(RuntimeFlavor::MultiThread));
        assert!(events(|_| Some("many".to_owned())).is_err());
    }
}
