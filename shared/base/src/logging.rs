//! Logs: one JSON object a line, each with the request's id from the span that the gate opens.

use std::{
    error::Error,
    fmt::Write as _,
    io::{Write as _, stdout},
};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::clock::Time;
use crate::environment::{Environment, FromEnvironment};

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

/// A number that CloudWatch makes a metric of, for alarms: the namespace is `Waypost`, and it is counted by all dimensions
/// together and by the first alone.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    /// Its name.
    pub name: &'a str,
    /// The number.
    pub value: f64,
    /// What it is told apart by, each with a name and a value; at least one.
    pub dimensions: &'a [(&'a str, &'a str)],
    /// When it was true.
    pub at: Time,
}

impl Metric<'_> {
    /// Tells it, in a line of the log of its own.
    pub fn tell(self) {
        write(self.line());
    }

    /// Tells it, in a line that has one more member.
    pub fn tell_beside(self, name: &str, member: &impl Serialize) {
        let mut line = self.line();
        // What is told beside a metric is made of texts, which can always be written.
        line.insert(name.to_owned(), serde_json::to_value(member).unwrap_or_default());
        write(line);
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
    fn line(self) -> Map<String, Value> {
        let names: Vec<_> = self.dimensions.iter().map(|(name, _)| *name).collect();
        let mut line = Map::new();
        line.insert(
            "_aws".into(),
            json!({
                "Timestamp": self.at.as_millis(),
                "CloudWatchMetrics": [{
                    "Namespace": "Waypost",
                    "Dimensions": [names, &names[..names.len().min(1)]],
                    "Metrics": [{ "Name": self.name, "Unit": "None" }],
                }],
            }),
        );
        line.extend(self.dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        line.insert(self.name.into(), self.value.into());
        line
    }
}

fn write(line: Map<String, Value>) {
    // Beside the lines of the log, which have no place for members of this form. Nobody can be told that it failed.
    let _ = writeln!(stdout().lock(), "{}", Value::from(line));
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
    use super::*;

    #[test]
    fn a_metric_is_one_line_in_the_form_that_cloudwatch_reads() {
        let dimensions = [("Environment", "staging"), ("Edition", "GeoLite2-City")];
        let metric = Metric { name: "Age", value: 1.5, dimensions: &dimensions, at: Time::from_millis(7) };
        assert_eq!(
            Value::from(metric.line()),
            json!({
                "_aws": {
                    "Timestamp": 7,
                    "CloudWatchMetrics": [{
                        "Namespace": "Waypost",
                        "Dimensions": [["Environment", "Edition"], ["Environment"]],
                        "Metrics": [{ "Name": "Age", "Unit": "None" }],
                    }],
                },
                "Environment": "staging",
                "Edition": "GeoLite2-City",
                "Age": 1.5,
            })
        );
    }
}
