//! Logs: one JSON object per line. Each line also has the fields of the spans around it: the request id and the trace,
//! from the call's span.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    error::Error,
    fmt::{self, Write as _},
    io::stdout,
    str::FromStr,
};

use serde::ser::{Error as _, SerializeMap, Serializer as _};
use serde_json::Value;
use tracing::{Event, Level, Metadata, Span, Subscriber};
use tracing_serde::SerdeMapVisitor;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, filter_fn},
    fmt::{
        FmtContext, FormatEvent, FormattedFields, MakeWriter,
        format::{JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    layer::SubscriberExt,
    registry::{LookupSpan, Scope},
    util::SubscriberInitExt,
};

use crate::{
    environment::{Environment, FromEnvironment},
    trace::{LambdaTrace, Trace},
};

/// The libraries of this project, whose lines follow `LOG_LEVEL`. A workspace test keeps the list complete.
pub const OWN_CRATES: [&str; 14] = [
    "auth",
    "base",
    "event_catalogue",
    "template",
    "function",
    "gate",
    "geo_ip",
    "issuer",
    "outbound",
    "payments",
    "problem",
    "reference",
    "storage",
    "webhooks",
];

/// Starts logging to standard output, where Lambda collects it.
///
/// The level is for this project's own crates. Other libraries log nothing below `info`, since some of them write whole
/// requests with every secret at lower levels.
pub fn start(level: LogLevel) {
    // A second start in one process (two tests) keeps the settings of the first.
    drop(subscriber(level, stdout).try_init());
}

fn subscriber<W>(level: LogLevel, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let own = level.filter();
    let others = own.min(LevelFilter::INFO);
    let wanted = move |line: &Metadata<'_>| match (line.is_span(), is_own(line)) {
        // Spans connect a line with its call, at every level.
        (true, is_own) => is_own,
        (false, true) => *line.level() <= own,
        (false, false) => *line.level() <= others && !is_repetition(line),
    };
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).fmt_fields(JsonFields::new()).event_format(Lines);
    let filter = filter_fn(wanted).with_max_level_hint(own.max(LevelFilter::INFO));
    tracing_subscriber::registry().with(lines.with_writer(writer).with_filter(filter))
}

/// A call's span: each line within it contains the request and the trace, and X-Ray's trace if X-Ray records it. The
/// field names of the trace are
/// [OpenTelemetry's](https://opentelemetry.io/docs/specs/otel/compatibility/logging_trace_context/).
pub fn call_span(request_id: &str, trace: &Trace, lambda: Option<LambdaTrace<'_>>) -> Span {
    let recorded = lambda.filter(|lambda| lambda.sampled).map(|lambda| lambda.id);
    let trace_id = trace.trace_id();
    let span_id = trace.span_id();
    tracing::info_span!("call", requestId = request_id, %trace_id, %span_id, xrayTraceId = recorded)
}

struct Lines;

impl<S: Subscriber + for<'a> LookupSpan<'a>> FormatEvent<S, JsonFields> for Lines {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let line = line(context, event).map_err(|_| fmt::Error)?;
        writeln!(writer, "{}", String::from_utf8_lossy(&line))
    }
}

fn line<S: Subscriber + for<'a> LookupSpan<'a>>(
    context: &FmtContext<'_, S, JsonFields>,
    event: &Event<'_>,
) -> serde_json::Result<Vec<u8>> {
    let mut timestamp = String::new();
    SystemTime.format_time(&mut Writer::new(&mut timestamp)).map_err(serde_json::Error::custom)?;
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut text);
    let mut line = serializer.serialize_map(None)?;
    line.serialize_entry("timestamp", &timestamp)?;
    line.serialize_entry("level", event.metadata().level().as_str())?;
    let mut own = SerdeMapVisitor::new(line);
    event.record(&mut own);
    let mut line = own.take_serializer()?;
    // Logs are charged by their length, and this project's info lines name the stage in the message.
    if *event.metadata().level() != Level::INFO || !is_own(event.metadata()) {
        line.serialize_entry("target", event.metadata().target())?;
    }
    for (name, value) in around(context) {
        line.serialize_entry(&name, &value)?;
    }
    line.end()?;
    Ok(text)
}

/// The fields of the spans around a line. If several fields have the same name, the innermost counts.
fn around<S: Subscriber + for<'a> LookupSpan<'a>>(context: &FmtContext<'_, S, JsonFields>) -> BTreeMap<String, Value> {
    let spans = context.event_scope().into_iter().flat_map(Scope::from_root);
    let fields = spans.filter_map(|span| {
        let extensions = span.extensions();
        let fields = extensions.get::<FormattedFields<JsonFields>>()?;
        serde_json::from_str::<BTreeMap<String, Value>>(fields).ok()
    });
    fields.flatten().collect()
}

fn is_own(line: &Metadata<'_>) -> bool {
    // Compare whole names: `base64` is not `base`.
    line.target().split("::").next().is_some_and(|name| OWN_CRATES.contains(&name))
}

/// Whether Lambda's runtime wrote this line to repeat a handler's error, in debug format. The function has already
/// logged the error as a sentence. The runtime's line about a panic also has an `error` field.
fn is_repetition(line: &Metadata<'_>) -> bool {
    line.target() == "lambda_runtime::layers::panic" && line.fields().field("error").is_none()
}

/// The maximum number of characters of an untrusted string in a line.
const MAX_UNTRUSTED: usize = 200;

/// An untrusted string for a log line, such as the path of a request whose token is not checked yet. A long string is
/// cut and ends with `…`: logs are charged by their length.
pub fn shortened(text: &str) -> Cow<'_, str> {
    let mut last = text.char_indices().skip(MAX_UNTRUSTED - 1).map(|(position, _)| position);
    match (last.next(), last.next()) {
        (Some(end), Some(_)) => Cow::Owned(format!("{}…", &text[..end])),
        _ => Cow::Borrowed(text),
    }
}

/// An error with its causes in one line. The `Display` of each error describes its own stage only.
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

/// The minimum severity that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Faults that an operator must fix.
    Error,
    /// Also faults that pass without an operator's help.
    Warn,
    /// Also each request and each attempt.
    Info,
    /// Also decisions within them.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

impl FromStr for LogLevel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => Err("not one of `error`, `warn`, `info`, `debug` and `trace`"),
        }
    }
}

/// The log's settings: `LOG_LEVEL`.
#[derive(Debug, Clone, Copy)]
pub struct LogSettings {
    /// `info` unless set.
    pub level: LogLevel,
}

impl FromEnvironment for LogSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { level: environment.parsed("LOG_LEVEL", LogLevel::Info)? })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::environment::read_from;

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

    #[test]
    fn a_line_has_at_most_200_characters_of_an_untrusted_text() {
        for whole in ["", "/api", &"ä".repeat(200)] {
            assert_eq!(shortened(whole), whole);
        }
        for long in [201, 8_000] {
            assert_eq!(shortened(&"ä".repeat(long)), format!("{}…", "ä".repeat(199)));
        }
    }

    /// The lines written at this level.
    fn lines(level: &str, log: impl FnOnce()) -> Vec<Value> {
        let written = Written::default();
        let writer = written.clone();
        let level = level.parse().expect("a level");
        tracing::subscriber::with_default(subscriber(level, move || writer.clone()), log);
        let bytes = written.0.lock().expect("no test panics while it writes").clone();
        let lines = String::from_utf8(bytes).expect("text");
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Which of six messages are logged at this level.
    fn logged(level: &str) -> Vec<String> {
        let lines = lines(level, || {
            tracing::trace!(target: "webhooks::deliveries", "own trace");
            tracing::debug!("own debug");
            tracing::info!(target: "geo_ip", "own info");
            tracing::info!(target: "hyper::client", "foreign info");
            tracing::debug!(target: "base64::engine", "foreign debug");
            tracing::trace!(target: "aws_smithy_runtime::client", "foreign trace");
        });
        lines.iter().map(|line| line["message"].as_str().expect("text").to_owned()).collect()
    }

    /// An attempt within a call, with a line in each and a span of a library around both.
    fn call_and_attempt(lambda: &str) {
        let trace =
            Trace::read(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), None).expect("a trace");
        let library = tracing::info_span!(target: "lambda_runtime::layers", "invoke", requestId = "another", more = 1);
        library.in_scope(|| {
            call_span("0193f6d2", &trace, LambdaTrace::parse(lambda)).in_scope(|| {
                tracing::info_span!("attempt", trace_id = "of-the-event", span_id = "of-the-attempt")
                    .in_scope(|| tracing::error!(attempt = 3, error = None::<&str>, "attempted"));
                tracing::error!(error = "a \"quoted\" cause", "failed");
            });
        });
    }

    #[test]
    fn a_line_has_its_own_fields_and_those_of_the_spans_around_it() {
        let members = |line: &Value, names: &[&str]| {
            names.iter().map(|name| line[*name].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        for level in ["error", "warn", "trace"] {
            let lines = lines(level, || call_and_attempt("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"));
            let [attempt, call] = &lines[..] else { panic!("two lines: {lines:#?}") };
            let names = ["message", "requestId", "trace_id", "span_id", "xrayTraceId"];
            let x_ray = "1-5759e988-bd862e3fe1be46a994272793";
            let expected = ["attempted", "0193f6d2", "of-the-event", "of-the-attempt", x_ray];
            assert_eq!(members(attempt, &names), expected, "{attempt:#}");
            assert_eq!(attempt["attempt"], 3);
            let expected = ["failed", "0193f6d2", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", x_ray];
            assert_eq!(members(call, &names), expected, "{call:#}");
            let names = ["level", "target", "error"];
            assert_eq!(members(call, &names), ["ERROR", "base::logging::tests", "a \"quoted\" cause"]);
            assert!(
                call["timestamp"].as_str().is_some_and(|time| time.parse::<crate::clock::Time>().is_ok()),
                "{call:#}"
            );
            assert!(lines.iter().all(|line| line.get("more").is_none()), "{lines:#?}");
        }
    }

    #[test]
    fn the_module_is_named_by_every_line_but_our_own_at_info() {
        let lines = lines("debug", || {
            tracing::info!(target: "geo_ip::store", "own");
            tracing::warn!(target: "geo_ip::store", "own");
            tracing::debug!(target: "geo_ip::store", "own");
            tracing::info!(target: "hyper::client", "foreign");
        });
        let targets: Vec<_> = lines.iter().map(|line| line["target"].as_str()).collect();
        assert_eq!(targets, [None, Some("geo_ip::store"), Some("geo_ip::store"), Some("hyper::client")]);
    }

    #[test]
    fn a_trace_that_x_ray_does_not_record_is_not_named_as_one() {
        let lines = lines("info", || call_and_attempt("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0"));
        assert!(lines.iter().all(|line| line.get("xrayTraceId").is_none()), "{lines:#?}");
    }

    #[test]
    fn the_level_applies_to_our_crates_and_libraries_log_at_info_at_most() {
        assert_eq!(logged("trace"), ["own trace", "own debug", "own info", "foreign info"]);
        assert_eq!(logged("debug"), ["own debug", "own info", "foreign info"]);
        assert_eq!(logged("info"), ["own info", "foreign info"]);
        assert!(logged("warn").is_empty());
    }

    #[test]
    fn the_runtimes_repetition_of_an_error_is_not_logged_but_a_panic_is() {
        let lines = lines("info", || {
            tracing::error!(target: "lambda_runtime::layers::panic", "\"an error\"");
            tracing::error!(target: "lambda_runtime::layers::panic", error = "a panic", "user handler panicked");
        });
        assert_eq!(lines.iter().map(|line| &line["message"]).collect::<Vec<_>>(), ["user handler panicked"]);
    }

    #[test]
    fn an_unknown_level_is_refused_with_the_known_ones() {
        let refused = read_from::<LogSettings>(|_| Some("loud".into())).expect_err("no level").0;
        let said = "LOG_LEVEL is `loud`, which is not one of `error`, `warn`, `info`, `debug` and `trace`";
        assert_eq!(refused, [said]);
        assert_eq!(read_from::<LogSettings>(|_| None).expect("the default").level, LogLevel::Info);
        assert_eq!("WARN".parse(), Ok(LogLevel::Warn), "as other programs take it");
    }
}
