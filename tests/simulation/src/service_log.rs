//! The service's log lines, shown in a history's log.

use std::fmt::{self, Write};

use base::logging::OWN_CRATES;
use tracing::{
    Event, Id, Level, Metadata, Span, Subscriber,
    field::{Field, Visit},
    span::Attributes,
    subscriber::{self, DefaultGuard},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Scope},
};

use crate::{clock::TrueClock, journal::Log, sandbox::Sandbox};

const SANDBOX: &str = "sandbox";

/// Writes this thread's lines to a log until the guard is dropped.
pub fn start(log: Log, clock: TrueClock) -> DefaultGuard {
    subscriber::set_default(tracing_subscriber::registry().with(ServiceLog { log, clock }))
}

/// The span for the work in a sandbox, so that each line names the sandbox. If there is no readable log, the span costs
/// nothing.
pub fn span(sandbox: &Sandbox) -> Span {
    tracing::info_span!(SANDBOX, who = %sandbox.actor())
}

struct ServiceLog {
    log: Log,
    clock: TrueClock,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ServiceLog {
    /// Below `warn`, libraries report each retry and each connection. Their spans stay off, because the SDK draws a
    /// number for each span from its jitter generator, so that a replay would be a different history.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let name = metadata.target().split("::").next().unwrap_or_default();
        let is_own = name == env!("CARGO_CRATE_NAME") || OWN_CRATES.contains(&name);
        if metadata.is_span() { is_own } else { *metadata.level() <= if is_own { Level::DEBUG } else { Level::WARN } }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != SANDBOX {
            return;
        }
        let mut who = Who::default();
        attributes.record(&mut who);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(who);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let spans = context.event_scope(event).into_iter().flat_map(Scope::from_root);
        let who = spans.filter_map(|span| span.extensions().get::<Who>().cloned()).last();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let what = format!("| {} {}{}", metadata.level(), fields.message, fields.others);
        self.log.write(self.clock.now(), who.unwrap_or_default().0, what);
    }
}

/// The sandbox that a span belongs to.
#[derive(Clone, Default)]
struct Who(String);

impl Visit for Who {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        self.0 = format!("{value:?}");
    }
}

/// The fields of a line, combined into a string.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a `String` cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, "  {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{clock::SandboxClock, sandbox::Function};

    #[tokio::test]
    async fn lines_of_the_service_name_their_sandbox() {
        let (log, clock) = (Log::default(), TrueClock::start());
        let sandbox = Arc::new(Sandbox::new(7, Function::SweepDeliveries, SandboxClock::new(clock, 0)));
        let _logging = start(log.clone(), clock);
        span(&sandbox).in_scope(|| {
            tracing::warn!(target: "webhooks::deliveries", attempt = 3, error = "no answer", "the attempt failed");
            tracing::trace!(target: "webhooks::deliveries", "too fine");
            tracing::info!(target: "hyper::client", "foreign");
        });
        tracing::debug!(target: "storage", "outside");
        let lines: Vec<_> = log.lines().iter().map(|line| line.to_string().split_off(15)).collect();
        let expected = [
            "sweep-deliveries 7        | WARN the attempt failed  attempt=3  error=no answer",
            "                          | DEBUG outside",
        ];
        assert_eq!(lines, expected);
    }
}
