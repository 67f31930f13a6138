//! Traces: all that one cause leads to, over any number of services, as W3C Trace Context passes them on.
//! <https://www.w3.org/TR/trace-context-1/>
//!
//! A call goes on with the trace of its request, or else with the one that Lambda has given it; only without either it
//! begins one. Each call and each attempt to deliver is a separate span. The log names both. Endpoints are sent a trace
//! only if its sender named it: a trace that begins here is not recorded, and a header that says so would switch off
//! the tracing of the endpoint.

mod parent;
mod state;

pub use parent::{SpanId, TraceId};

use aws_lc_rs::digest;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::random::{self, Random};
use parent::{Parent, number};
use state::State;

/// The header that names a span of a trace.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what tracing systems say of the trace to themselves.
pub const TRACESTATE: &str = "tracestate";

/// A span of a trace, with what its sender says of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    parent: Parent,
    state: State,
    /// Whether a sender named the trace; else it is for the log alone.
    is_named: bool,
}

impl Trace {
    /// The trace that these two say; `None` where `traceparent` is not there or malformed. A malformed `tracestate` is
    /// left out.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>) -> Option<Self> {
        let parent = Parent::parse(traceparent?)?;
        Some(Self { parent, state: tracestate.and_then(State::parse).unwrap_or_default(), is_named: true })
    }

    /// The trace of a request with these headers.
    fn of_request(headers: &HeaderMap) -> Option<Self> {
        // One that came twice is none, whichever of them would be right.
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        let states = headers.get_all(TRACESTATE).iter().map(HeaderValue::to_str);
        // A list may be spread over headers (RFC 9110 §5.3).
        let states = states.collect::<Result<Vec<_>, _>>().map(|states| states.join(","));
        Self::read(parent.to_str().ok(), states.ok().as_deref())
    }

    /// The span of a call with these headers.
    pub fn of_call(headers: &HeaderMap, lambda: Option<LambdaTrace<'_>>, random: &dyn Random) -> Self {
        match Self::of_request(headers) {
            Some(sender) => sender.next_span(random),
            // Lambda gives each request a trace, of which its client knows nothing.
            None => Self { is_named: false, ..Self::of_invocation(lambda, random) },
        }
    }

    /// The span of an invocation that no request caused. A trace of Lambda that X-Ray records counts as named.
    pub fn of_invocation(lambda: Option<LambdaTrace<'_>>, random: &dyn Random) -> Self {
        let (trace, sampled) = match lambda {
            Some(lambda) => (lambda.trace, lambda.sampled),
            None => (TraceId::from_bytes(random::bytes(random)), false),
        };
        let parent = Parent { trace, span: new_span(random), sampled };
        Self { parent, state: State::default(), is_named: sampled }
    }

    /// The trace of an event without one, which follows from the event's identifier, so that all its attempts have it.
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

    /// This span, if a sender named its trace.
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

    /// The value of `tracestate`; `None` where there is nothing to say.
    pub fn tracestate(&self) -> Option<&str> {
        Some(self.state.as_str()).filter(|state| !state.is_empty())
    }

    /// The headers of a request that is this span; none if no sender named its trace.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let parent = (TRACEPARENT, self.is_named.then(|| self.traceparent()).and_then(|text| text.try_into().ok()));
        let state = (TRACESTATE, self.tracestate().and_then(|state| HeaderValue::from_str(state).ok()));
        [parent, state].into_iter().filter_map(|(name, value)| Some((HeaderName::from_static(name), value?)))
    }
}

fn new_span(random: &dyn Random) -> SpanId {
    SpanId::from_bytes(random::bytes(random))
}

/// The trace that Lambda gives to each invocation, in X-Ray's form. Its digits are those of a trace of W3C, grouped
/// otherwise.
/// <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LambdaTrace<'a> {
    /// As X-Ray writes it: `1-5759e988-bd862e3fe1be46a994272793`.
    pub id: &'a str,
    /// The same as W3C Trace Context writes it.
    pub trace: TraceId,
    /// Whether X-Ray records the trace.
    pub sampled: bool,
}

impl<'a> LambdaTrace<'a> {
    /// Reads `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`, in any order; other members
    /// are Lambda's own. `None` without a root of this form.
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
    fn a_call_goes_on_with_the_trace_of_its_request_in_a_span_of_its_own() {
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
    fn a_call_without_a_trace_goes_on_with_that_of_lambda_and_is_sampled_if_that_is() {
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
    fn a_list_that_is_spread_over_headers_is_one_list_and_a_malformed_one_is_none() {
        let state = |values: &[&str]| {
            let states = values.iter().map(|value| (TRACESTATE, *value));
            let headers: Vec<_> = [(TRACEPARENT, PARENT)].into_iter().chain(states).collect();
            let trace = call(&headers, None);
            assert!(trace.traceparent().contains("4bf92f3577b34da6a3ce929d0e0e4736"), "the trace is kept all the same");
            trace.tracestate().map(str::to_owned)
        };
        assert_eq!(state(&["a=1", "b=2,c=3"]).as_deref(), Some("a=1,b=2,c=3"));
        assert_eq!(state(&["", "a=1"]).as_deref(), Some("a=1"));
        for malformed in [&["a=1", "b"][..], &["a=é"], &[]] {
            assert_eq!(state(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn an_event_without_a_trace_has_one_for_the_log_that_no_endpoint_is_sent() {
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
