//! Traces: a client's trace (W3C Trace Context) is logged, and is sent to the endpoints of its events but to no other
//! server.

use std::{collections::BTreeSet, fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Behaviour, Bus, Choice, Entity, LONG, Received, Receiver, Suite, invocation, until};

/// The span that the tests' clients send.
const SPAN: &str = "00f067aa0ba902b7";

fn trace_of(entity: &Entity, number: u8) -> String {
    let digits: String = entity.id.chars().filter(char::is_ascii_digit).collect();
    format!("{number:02x}{digits:a>30}")
}

/// The fields in `traceparent`: the trace, the span and the flags.
fn sent(received: &Received) -> [String; 3] {
    let fields: Vec<_> = received.header("traceparent").split('-').map(str::to_owned).collect();
    let [version, trace, span, flags] = fields.try_into().unwrap_or_else(|fields| panic!("{fields:?}"));
    assert_eq!((version.as_str(), trace.len(), span.len(), flags.len()), ("00", 32, 16, 2));
    [trace, span, flags]
}

fn lines(suite: &Suite, function: &str, text: &str) -> Vec<Value> {
    let log = fs::read_to_string(suite.bundle().data().join(format!("logs/{function}.log"))).unwrap_or_default();
    let lines = log.lines().filter(|line| line.contains(text) && !line.contains("\"_aws\""));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for `count` lines with this message, and returns all lines in a function's log that contain this text.
async fn until_lines(suite: &Suite, function: &str, text: &str, message: &str, count: usize) -> Vec<Value> {
    until(&format!("{count} lines `{message}` with {text} of {function}"), LONG, async || {
        let lines = lines(suite, function, text);
        (lines.iter().filter(|line| line["message"] == message).count() >= count).then_some(lines)
    })
    .await
}

fn member<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_else(|| panic!("no {name}: {line:#}"))
}

#[contract_test]
async fn a_trace_goes_from_the_publisher_through_the_log_to_every_attempt(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(204)])).await;
    let trace = trace_of(&entity, 1);
    let body = json!({ "type": "booking.created", "data": {} });
    let published = entity.post("/webhook/event").json(&body);
    let published = published.header("traceparent", format!("00-{trace}-{SPAN}-01"));
    let published = published.header("tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE").expect(202).await;
    let delivery = published.json()["deliveries"][0]["deliveryIdentifier"].as_str().expect("a delivery").to_owned();

    let attempts = receiver.until("/", 2).await;
    let spans: BTreeSet<_> = attempts
        .iter()
        .map(|attempt| {
            assert_eq!(attempt.header("tracestate"), "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
            let [of_attempt, span, flags] = sent(attempt);
            assert_eq!((&of_attempt, flags.as_str()), (&trace, "01"));
            span
        })
        .collect();

    let of_call = until_lines(&suite, "publish-event", &trace, "answered", 1).await;
    let own: BTreeSet<_> = of_call.iter().map(|line| member(line, "span_id").to_owned()).collect();
    assert!(of_call.iter().any(|line| line["message"] == "published"), "{of_call:#?}");
    assert_eq!(own.len(), 1, "a call is one span: {of_call:#?}");
    let all: BTreeSet<_> = spans.iter().chain(&own).map(String::as_str).chain([SPAN]).collect();
    assert_eq!(all.len(), 4, "the client, the call and both attempts are separate spans: {all:?}");

    let attempted = until_lines(&suite, "dispatch-deliveries", &trace, "attempted", 2).await;
    let logged: BTreeSet<_> = attempted.iter().map(|line| member(line, "span_id").to_owned()).collect();
    assert_eq!(logged, spans, "the log names the span that the endpoint received");
    for line in &attempted {
        assert_eq!((member(line, "trace_id"), member(line, "deliveryId")), (trace.as_str(), delivery.as_str()));
        assert_ne!(member(line, "requestId"), "", "and the invocation");
    }
    let everywhere = ["publish-event", "dispatch-deliveries"].map(|function| lines(&suite, function, "t61rcWkgMzE"));
    assert_eq!(everywhere.concat(), Vec::<Value>::new(), "the vendor data of `tracestate` are not logged");
}

#[contract_test]
async fn a_trace_that_is_malformed_is_ignored_and_none_is_sent(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let trace = trace_of(&entity, 1);
    let whole = format!("00-{trace}-{SPAN}-01");
    let malformed = [
        vec![],
        vec![String::new()],
        vec![whole.to_uppercase()],
        vec![format!("ff{}", &whole[2..])],
        vec![format!("{whole}-01")],
        vec![format!("00-{}-{SPAN}-01", "0".repeat(32))],
        vec![whole.clone(), whole.clone()],
    ];
    for (before, headers) in malformed.iter().enumerate() {
        let body = json!({ "type": "booking.created", "data": {} });
        let published = entity.post("/webhook/event").json(&body).header("tracestate", "congo=t61rcWkgMzE");
        let published = headers.iter().fold(published, |call, value| call.header("traceparent", value));
        published.expect(202).await;
        let attempt = receiver.until("/", before + 1).await.remove(before);
        assert_eq!((attempt.header("traceparent"), attempt.header("tracestate")), ("", ""), "{headers:?}");
    }
}

#[contract_test]
async fn a_tracestate_that_is_too_long_or_malformed_leaves_the_trace_as_it_is(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let short = "s".repeat(100);
    let long = format!("a={short},b={},c={short},d={short},e={short},f={short}", "l".repeat(200));
    let kept = format!("a={short},c={short},d={short},e={short}");
    for (number, (state, expected)) in [("not a list", ""), (&long, &kept)].into_iter().enumerate() {
        let trace = trace_of(&entity, u8::try_from(number).expect("few") + 1);
        let body = json!({ "type": "booking.created", "data": {} });
        let published = entity.post("/webhook/event").json(&body).header("tracestate", state);
        published.header("traceparent", format!("00-{trace}-{SPAN}-00")).expect(202).await;
        let attempt = receiver.until("/", number + 1).await.remove(number);
        let [of_attempt, _, flags] = sent(&attempt);
        assert_eq!((of_attempt, flags.as_str()), (trace, "00"));
        assert_eq!(attempt.header("tracestate"), expected);
    }
}

#[contract_test]
async fn a_publication_that_is_repeated_keeps_the_trace_of_the_first(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(204)])).await;
    let mut answers = Vec::new();
    for number in [1, 2] {
        let body = json!({ "type": "booking.created", "data": {} });
        let published = entity.post("/webhook/event").json(&body).header("idempotency-key", "once");
        let published = published.header("traceparent", format!("00-{}-{SPAN}-01", trace_of(&entity, number)));
        answers.push(published.expect(202).await.json());
    }
    assert_eq!(answers[0], answers[1]);
    for attempt in receiver.until("/", 2).await {
        assert_eq!(sent(&attempt)[0], trace_of(&entity, 1));
    }
}

#[contract_test]
async fn every_line_of_a_call_names_its_request_and_its_trace(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let trace = trace_of(&entity, 1);
    let call = entity.get("/webhook/nothing").header("traceparent", format!("00-{trace}-{SPAN}-01"));
    let refused = call.expect(404).await;
    let of_call = until_lines(&suite, "show-webhook", &trace, "answered", 1).await;
    let messages: BTreeSet<_> = of_call.iter().map(|line| member(line, "message")).collect();
    assert_eq!(messages, ["refused", "answered"].into());
    for line in &of_call {
        assert_eq!(member(line, "requestId"), refused.header("x-request-id"));
        assert_eq!(member(line, "trace_id"), trace);
        assert_eq!(member(line, "span_id"), member(&of_call[0], "span_id"));
        assert!(member(line, "span_id") != SPAN && line.get("xrayTraceId").is_none(), "{line:#}");
    }
    // The line contains no other details about the request.
    assert_eq!(lines(&suite, "show-webhook", refused.header("x-request-id")), of_call);
}

#[contract_test]
async fn a_test_event_continues_the_trace_of_its_request(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let trace = trace_of(&entity, 1);
    entity.test(&hook.id).header("traceparent", format!("00-{trace}-{SPAN}-01")).expect(202).await;
    let [of_attempt, span, flags] = sent(&receiver.until("/", 1).await[0]);
    assert_eq!((of_attempt, flags.as_str()), (trace, "01"));
    assert_ne!(span, SPAN);
}

#[contract_test]
async fn an_event_of_the_bus_continues_the_trace_of_its_trace_header(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let trace = trace_of(&entity, 1);
    let x_ray = format!("1-{}-{}", &trace[..8], &trace[8..]);
    let detail = format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{}","data":{{}}}}"#, entity.id);
    let event = Bus::event(&format!("{}-traced", entity.id), &detail);
    let handed = invocation(&suite.api.env, "ingest-event", event);
    let handed = handed.header("x-amzn-trace-id", format!("Root={x_ray};Parent={SPAN};Sampled=1")).send().await;
    assert!(handed.expect("functions can be invoked").status().is_success());
    let [of_attempt, _, flags] = sent(&receiver.until("/", 1).await[0]);
    assert_eq!((&of_attempt, flags.as_str()), (&trace, "01"), "a trace that X-Ray records is sampled");
    let published = until_lines(&suite, "ingest-event", &trace, "published", 1).await.remove(0);
    assert_eq!((member(&published, "trace_id"), member(&published, "xrayTraceId")), (trace.as_str(), x_ray.as_str()));
}

/// Regression test: a trace marked "not sampled" switched off the endpoint's tracing.
#[contract_test]
async fn an_event_without_a_trace_is_sent_with_none_and_has_one_in_the_log(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(204)])).await;
    let id = entity.publish(json!({})).await;
    entity.until_status(&id, &["delivered"]).await;
    entity.post(&format!("/webhook/delivery/{id}/resend")).expect(202).await;
    receiver.until("/", 3).await;
    entity.test(&hook.id).expect(202).await;
    let attempts = receiver.until("/", 4).await;
    for attempt in &attempts {
        assert_eq!((attempt.header("traceparent"), attempt.header("tracestate")), ("", ""));
    }
    let attempted = until_lines(&suite, "dispatch-deliveries", &id, "attempted", 3).await;
    let attempted: Vec<_> = attempted.iter().filter(|line| line["message"] == "attempted").collect();
    let traces: BTreeSet<_> = attempted.iter().map(|line| member(line, "trace_id")).collect();
    let spans: BTreeSet<_> = attempted.iter().map(|line| member(line, "span_id")).collect();
    assert_eq!((traces.len(), spans.len()), (1, 3), "{attempted:#?}");
}

#[contract_test]
async fn an_event_of_the_service_is_sent_without_a_trace(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let url = receiver.on("/listener", [Behaviour::status(204)]);
    entity.hook_with(json!({ "name": "listener", "eventUrl": url, "eventList": ["webhook.disabled"] })).await;
    let url = receiver.on("/gone", [Behaviour::status(410)]);
    let gone = entity.hook_with(json!({ "name": "gone", "eventUrl": url, "eventList": ["booking.created"] })).await;
    let body = json!({ "type": "booking.created", "data": {} });
    let published = entity.post("/webhook/event").json(&body);
    published.header("traceparent", format!("00-{}-{SPAN}-01", trace_of(&entity, 1))).expect(202).await;
    receiver.until("/gone", 1).await;
    entity.until_gone(&gone).await;
    let event = receiver.until("/listener", 1).await.remove(0);
    assert_eq!((event.json()["type"].as_str(), event.header("traceparent")), (Some("webhook.disabled"), ""));
}

#[contract_test]
async fn a_webhook_sets_no_header_of_a_trace(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for name in ["traceparent", "TraceState"] {
        let headers = json!({ name: "congo=1" });
        let hook = json!({ "name": "x", "eventUrl": "http://127.0.0.1/", "eventList": [], "headers": headers });
        let refused = entity.post("/webhook").json(&hook).refused(400, "invalid-request").await;
        assert_eq!(refused["properties"]["violations"][0]["pointer"], format!("/headers/{name}"));
    }
}

#[contract_test]
async fn a_payment_provider_learns_nothing_of_a_trace(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let traced = |call: crate::harness::Call| {
        call.header("traceparent", format!("00-{}-{SPAN}-01", trace_of(&entity, 1))).header("tracestate", "congo=1")
    };
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    traced(visit.callback()).expect(302).await;
    traced(entity.disconnect("sim-basic")).expect(200).await;
    assert_eq!(suite.providers().exchanges(visit.code()).len(), 1, "the provider was asked");
    assert_eq!(suite.providers().traced(), Vec::<String>::new());
}
