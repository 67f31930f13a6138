//! Traces across services (W3C Trace Context).
//! <https://www.w3.org/TR/trace-context-1/>
//!
//! A call continues its request's trace, or else Lambda's, or else begins one. Each call and each delivery attempt is a
//! separate span. The log contains both trace and span. A request to an endpoint has a trace only if the event's sender
//! provided one. A trace that begins here is not recorded, and a header that says so would switch off the endpoint's
//! tracing.

mod parent;
mod state;

pub use parent::{SpanId, TraceId};

use aws_lc_rs::digest;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::random::{self, Random};
use parent::{Parent, number};
use state::State;

/// The header that identifies a span of a trace.
pub const TRACEPARENT: &str = "traceparent";
/// The header with tracing systems' notes on the trace.
pub const TRACESTATE: &str = "tracestate";

/// A span of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    parent: Parent,
    state: State,
    /// Whether a sender provided the trace; if not, it is only in the log.
    is_named: bool,
}

impl Trace {
    /// Reads a trace from these two values; `None` if `traceparent` is missing or malformed. A malformed `tracestate`
    /// is dropped.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>) -> Option<Self> {
        let parent = Parent::parse(traceparent?)?;
        Some(Self { parent, state: tracestate.and_then(State::parse).unwrap_or_default(), is_named: true })
    }

    fn of_request(headers: &HeaderMap) -> Option<Self> {
        // Two headers count as none, because either one may be wrong.
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        let states = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str);
        // A list may be spread across headers (RFC 9110 §5.3).
        let states = states.collect::<Result<Vec<_>, _>>().map(|states| states.join(","));
        Self::read(parent.to_str().ok(), states.ok().as_deref())
    }

    /// The span of a call with these headers.
    pub fn of_call(headers: &HeaderMap, lambda: Option<LambdaTrace<'_>>, random: &dyn Random) -> Self {
        match Self::of_request(headers) {
            Some(sender) => sender.next_span(random),
            // The client does not know the trace that Lambda assigns to each request, so that trace does not count as
            // provided.
            None => Self { is_named: false, ..Self::of_invocation(lambda, random) },
        }
    }

    /// The span of an invocation without a request. Lambda's trace counts as provided if X-Ray records it.
    pub fn of_invocation(lambda: Option<LambdaTrace<'_>>, random: &dyn Random) -> Self {
        let (trace, sampled) = match lambda {
            Some(lambda) => (lambda.trace, lambda.sampled),
            None => (TraceId::from_bytes(random::bytes(random)), false),
        };
        let parent = Parent { trace, span: new_span(random), sampled };
        Self { parent, state: State::default(), is_named: sampled }
    }

    /// The trace of an event that was published without one, derived from the event's identifier so that all attempts
    /// share it.
    pub fn derived_from(identifier: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, identifier.as_bytes());
        let mut trace = [0; 16];
        let mut span = [0; 8];
        trace.copy_from_slice(&hash.as_ref()[..16]);
        span.copy_from_slice(&hash.as_ref()[16..24]);
        let trace = TraceId::from_bytes(trace);
        let span = SpanId::from_bytes(span);
        Self { parent: Parent { trace, span, sampled: false }, state: State::default(), is_named: false }
    }

    /// Another span of the same trace.
    pub fn next_span(&self, random: &dyn Random) -> Self {
        Self { parent: Parent { span: new_span(random), ..self.parent }, ..self.clone() }
    }

    /// This span, if a sender provided its trace.
    pub fn if_named(&self) -> Option<Self> {
        self.is_named.then(|| self.clone())
    }

    /// The trace's identifier.
    pub fn trace_id(&self) -> TraceId {
        self.parent.trace
    }

    /// The span's identifier.
    pub fn span_id(&self) -> SpanId {
        self.parent.span
    }

    /// The value of `traceparent`.
    pub fn traceparent(&self) -> String {
        self.parent.to_string()
    }

    /// The value of `tracestate`; `None` if it is empty.
    pub fn tracestate(&self) -> Option<&str> {
        Some(self.state.as_str()).filter(|state| !state.is_empty())
    }

    /// The headers of a request in this span; empty if no sender provided the trace.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let parent = (TRACEPARENT, self.is_named.then(|| self.traceparent()).and_then(|text| text.try_into().ok()));
        let state = (TRACESTATE, self.tracestate().and_then(|state| HeaderValue::from_str(state).ok()));
        [parent, state].into_iter().filter_map(|(name, value)| Some((HeaderName::from_static(name), value?)))
    }
}

fn new_span(random: &dyn Random) -> SpanId {
    SpanId::from_bytes(random::bytes(random))
}

/// The trace that Lambda assigns to each invocation, in X-Ray's format: the digits of a W3C trace, grouped differently.
/// <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LambdaTrace<'a> {
    /// The identifier in X-Ray's format: `1-5759e988-bd862e3fe1be46a994272793`.
    pub id: &'a str,
    /// The identifier in the format of W3C Trace Context.
    pub trace: TraceId,
    /// Whether X-Ray records the trace.
    pub sampled: bool,
}

impl<'a> LambdaTrace<'a> {
    /// Reads `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`, in any order, and
    /// ignores other members. `None` without a root of this format.
    pub fn parse(header: &'a str) -> Option<Self> {
        let member = |name: &str| header.split(';').find_map(|member| member.trim().strip_prefix(name));
        let id = member("Root=")?;
        let (time, rest) = id.strip_prefix("1-")?.split_once('-')?;
        let trace = TraceId::new(number(time, 8)? << 96 | number(rest, 24)?)?;
        Some(Self { id, trace, sampled: member("Sampled=") == Some("1") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CountingRandom;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn call(headers: &[(&'static str, &str)], lambda: Option<&str>) -> Trace {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).expect("a value"))
        };
        let lambda = lambda.and_then(LambdaTrace::parse);
        Trace::of_call(
            &headers.iter().map(header).fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            }),
            lambda,
            &CountingRandom::default(),
        )
    }

    #[test]
    fn a_call_continues_the_trace_of_its_request_in_a_new_span() {
        let lambda = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";
        let trace = call(&[(TRACEPARENT, PARENT), (TRACESTATE, "congo=t61rcWkgMzE")], Some(lambda));
        assert_eq!(trace.traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0001020304050607-01");
        assert_eq!(trace.tracestate(), Some("congo=t61rcWkgMzE"));
        let headers: Vec<_> =
            trace.headers().map(|(name, value)| (name, value.to_str().expect("text").to_owned())).collect();
        assert_eq!(headers[0].1, trace.traceparent());
        assert_eq!((headers[1].0.as_str(), headers[1].1.as_str()), (TRACESTATE, "congo=t61rcWkgMzE"));
    }

    #[test]
    fn a_call_without_a_trace_continues_the_one_of_lambda() {
        for (sampled, flags) in [("1", "01"), ("0", "00"), ("?", "00")] {
            let lambda = format!("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled={sampled}");
            let trace = call(&[(TRACESTATE, "congo=1")], Some(&lambda));
            assert_eq!(trace.traceparent(), format!("00-5759e988bd862e3fe1be46a994272793-0001020304050607-{flags}"));
            assert_eq!(trace.tracestate(), None, "a tracestate belongs to its traceparent");
            assert_eq!((trace.headers().count(), trace.if_named()), (0, None), "the client knows nothing of it");
        }
    }

    #[test]
    fn a_call_with_neither_begins_a_trace_that_is_not_sampled() {
        for headers in [&[][..], &[(TRACEPARENT, "nonsense")], &[(TRACEPARENT, PARENT), (TRACEPARENT, PARENT)]] {
            let trace = call(headers, Some("Self=1"));
            assert_eq!(trace.traceparent(), "00-000102030405060708090a0b0c0d0e0f-1011121314151617-00");
            assert_eq!((trace.headers().count(), trace.if_named()), (0, None));
        }
    }

    #[test]
    fn a_tracestate_in_several_headers_is_joined_and_a_malformed_one_dropped() {
        let state = |values: &[&str]| {
            let states = values.iter().map(|value| (TRACESTATE, *value));
            let headers: Vec<_> = [(TRACEPARENT, PARENT)].into_iter().chain(states).collect();
            let trace = call(&headers, None);
            assert!(trace.traceparent().contains("4bf92f3577b34da6a3ce929d0e0e4736"), "the trace is kept");
            trace.tracestate().map(str::to_owned)
        };
        assert_eq!(state(&["a=1", "b=2,c=3"]).as_deref(), Some("a=1,b=2,c=3"));
        assert_eq!(state(&["", "a=1"]).as_deref(), Some("a=1"));
        for malformed in [&["a=1", "b"][..], &["a=é"], &[]] {
            assert_eq!(state(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn an_event_without_a_trace_gets_one_for_the_log_only() {
        let of = Trace::derived_from;
        assert_eq!(of("evt_1"), of("evt_1"));
        assert_ne!(of("evt_1").trace_id(), of("evt_2").trace_id());
        assert_eq!(of("evt_1").next_span(&CountingRandom::default()).headers().count(), 0);
    }

    #[test]
    fn an_invocation_has_a_named_trace_only_if_x_ray_records_it() {
        let headers = |sampled: u8| {
            let lambda = format!("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled={sampled}");
            Trace::of_invocation(LambdaTrace::parse(&lambda), &CountingRandom::default()).headers().count()
        };
        assert_eq!((headers(1), headers(0)), (1, 0));
        assert_eq!(Trace::of_invocation(None, &CountingRandom::default()).headers().count(), 0);
    }

    #[test]
    fn a_root_of_x_ray_is_a_trace_and_anything_else_is_none() {
        let whole = "Parent=53995c3f42cd8ad8;Sampled=1; Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:0";
        let trace = LambdaTrace::parse(whole).expect("a root");
        assert_eq!((trace.id, trace.sampled), ("1-5759e988-bd862e3fe1be46a994272793", true));
        assert_eq!(trace.trace.to_string(), "5759e988bd862e3fe1be46a994272793");
        for bad in [
            "",
            "Sampled=1",
            "Root=",
            "Root=2-5759e988-bd862e3fe1be46a994272793",
            "Root=1-5759e988bd862e3fe1be46a994272793",
            "Root=1-5759e98-bd862e3fe1be46a9942727930",
            "Root=1-5759E988-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a994272793-1",
            "Root=1-+759e988-bd862e3fe1be46a994272793",
            "Root=1-00000000-000000000000000000000000",
        ] {
            assert_eq!(LambdaTrace::parse(bad), None, "{bad}");
        }
    }
}
