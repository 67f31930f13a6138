//! Logs: one JSON object a line, each with the request's id from the span that the gate opens.

use std::{error::Error, fmt::Write as _, io::stdout};

use tracing::{Metadata, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, filter_fn},
    fmt::MakeWriter,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::environment::{Environment, FromEnvironment};

/// The crates whose lines follow `LOG_LEVEL`: the libraries of this project. A test of the workspace keeps the list
/// complete.
pub const OWN_CRATES: [&str; 12] = [
    "auth", "base", "template", "function", "gate", "geo_ip", "issuer", "outbound", "payments", "problem", "storage",
    "webhooks",
];

/// Starts logging to standard output, where Lambda collects it. A level that cannot be read counts as `info`.
///
/// The level is for this project's own crates. Other libraries log at `info` at most, since some of them write whole
/// requests with every secret at lower levels.
pub fn start(level: &str) {
    // A second start in one process (two tests) keeps the first one's settings.
    drop(subscriber(level, stdout).try_init());
}

fn subscriber<W>(level: &str, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let own: LevelFilter = level.parse().unwrap_or(LevelFilter::INFO);
    let others = own.min(LevelFilter::INFO);
    let wanted = move |line: &Metadata<'_>| *line.level() <= if is_own(line) { own } else { others };
    let lines =
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
    let filter = filter_fn(wanted).with_max_level_hint(own);
    tracing_subscriber::registry().with(lines.with_writer(writer).with_filter(filter))
}

fn is_own(line: &Metadata<'_>) -> bool {
    // The whole name: `base64` is not `base`.
    line.target().split("::").next().is_some_and(|name| OWN_CRATES.contains(&name))
}

/// An error with everything that caused it, in one line: each `Display` says its own stage only.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// How much is logged: `LOG_LEVEL`, one of `error`, `warn`, `info`, `debug`, `trace`.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// `info` unless set.
    pub level: String,
}

impl FromEnvironment for LogSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { level: environment.parsed("LOG_LEVEL", "info".to_owned())? })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics while it writes").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are logged at this level, of six that are offered.
    fn logged(level: &str) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        tracing::subscriber::with_default(subscriber(level, move || writer.clone()), || {
            tracing::trace!(target: "webhooks::deliveries", "own trace");
            tracing::debug!("own debug");
            tracing::info!(target: "geo_ip", "own info");
            tracing::info!(target: "hyper::client", "foreign info");
            tracing::debug!(target: "base64::engine", "foreign debug");
            tracing::trace!(target: "aws_smithy_runtime::client", "foreign trace");
        });
        let bytes = written.0.lock().expect("no test panics while it writes").clone();
        let lines = String::from_utf8(bytes).expect("text");
        let message = |line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["message"].clone();
        lines.lines().map(|line| message(line).as_str().expect("text").to_owned()).collect()
    }

    #[test]
    fn the_level_is_for_our_own_crates_and_other_libraries_log_at_info_at_most() {
        assert_eq!(logged("trace"), ["own trace", "own debug", "own info", "foreign info"]);
        assert_eq!(logged("debug"), ["own debug", "own info", "foreign info"]);
        assert_eq!(logged("info"), ["own info", "foreign info"]);
        assert_eq!(logged("loud"), ["own info", "foreign info"]);
        assert!(logged("warn").is_empty());
    }
}
