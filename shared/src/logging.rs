//! Logs: one JSON object a line, each with the request's id from the span that the gate opens.

use std::{error::Error, fmt::Write};

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Starts logging to standard output, where Lambda collects it. A level that cannot be read counts as `info`.
///
/// The level is for this project's own code. Libraries log at `info` at most, since some of them write whole requests,
/// with every secret in them, where more is asked for.
pub fn start(level: &str) {
    let own: LevelFilter = level.parse().unwrap_or(LevelFilter::INFO);
    let filter = Targets::new().with_default(own.min(LevelFilter::INFO)).with_target("shared", own);
    let lines =
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
    // A second start in one process (two tests) keeps the first one's settings.
    drop(tracing_subscriber::registry().with(lines.with_filter(filter)).try_init());
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
