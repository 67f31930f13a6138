//! `traceparent` and `tracestate`: with any values, a call has a trace, and the forwarded headers are well-formed,
//! small, and parse to the same trace again.
#![no_main]

use base::{
    testing::CountingRandom,
    trace::{LambdaTrace, TRACEPARENT, TRACESTATE, Trace},
};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    let [parent, state, more, lambda] = std::array::from_fn(|_| lines.next().unwrap_or_default());
    let lambda = std::str::from_utf8(lambda).unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (name, value) in [(TRACEPARENT, parent), (TRACESTATE, state), (TRACESTATE, more)] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    let trace = Trace::of_call(&headers, LambdaTrace::parse(lambda), &CountingRandom::default());
    let passed_on = trace.traceparent();
    let list = trace.tracestate();

    // It has the specified form and a new span.
    assert_eq!(passed_on, format!("00-{}-{}-0{}", trace.trace_id(), trace.span_id(), &passed_on[54..]));
    assert!(passed_on.ends_with("-00") || passed_on.ends_with("-01"));
    let sent = if trace.if_named().is_some() { 1 + usize::from(list.is_some()) } else { 0 };
    assert_eq!((passed_on.len(), trace.headers().count()), (55, sent));
    let again = Trace::read(Some(&passed_on), list).expect("it is well-formed");
    assert_eq!((again.traceparent(), again.tracestate()), (passed_on, list));

    // The trace is the client's, or Lambda's, or new; no list is forwarded without its trace.
    let is_text = parent.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let clients = std::str::from_utf8(parent).ok().filter(|_| is_text);
    let clients = clients.and_then(|parent| Trace::read(Some(parent), None));
    match clients {
        Some(clients) => assert_eq!((trace.trace_id(), sent > 0), (clients.trace_id(), true)),
        None => {
            assert_eq!(sent, 0);
            assert_eq!(list, None);
            let given = LambdaTrace::parse(lambda).map(|lambda| lambda.trace);
            assert!(given.is_none_or(|given| given == trace.trace_id()));
        }
    }
    let list = list.unwrap_or("none=1");
    assert!(list.len() <= 512 && list.split(',').count() <= 32 && list.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    assert!(list.split(',').all(|member| member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())));
});
