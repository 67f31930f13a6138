//! Logs: one JSON object a line, each with the request's id from the span that the gate opens.

use std::{error::Error, fmt::Write};

use tracing_subscriber::EnvFilter;

/// Starts logging to standard output, where Lambda collects it. `LOG_LEVEL` is `info` unless set.
pub fn start(level: &str) {
    let filter = EnvFilter::builder().parse_lossy(level);
    // A second start in one process (two tests) keeps the first one's settings.
    drop(
        tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter(filter)
            .with_current_span(true)
            .with_span_list(false)
            .try_init(),
    );
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
