//! Lambda's Runtime API: a function's process polls it for invocations and posts the results to it.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>
//!
//! The protocol has no credentials, but the address can include a path. This path begins with a key that is created at
//! each start and that only the functions' environments contain. Every process has its own address, numbered in the
//! order of starting. When a process ends, its running invocations fail immediately, and waiting ones go to the next
//! process. A late request from an ended process gets no invocation. If a poll's connection closes, no invocation is
//! lost.
//!
//! Lambda does not report whether an invocation's caller is still waiting. Here, a function can ask, since the gateway
//! knows its clients' connections.

mod invocations;

pub use invocations::{Caller, Failure, InvocationOutcome, Presence};

use std::{collections::HashMap, error::Error, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use base::{SharedRandom, Time, random};
use http_body_util::LengthLimitError;
use serde_json::json;

use self::invocations::{Invocations, Work};
use crate::{
    aws::{ACCOUNT, REGION},
    callers,
    ports::Port,
    processes::WorkSource,
};

/// Lambda's limit on the size of a response.
const MAX_ANSWER: usize = 6 * 1024 * 1024;

/// The Runtime API of all functions.
#[derive(Clone)]
pub struct RuntimeApi {
    address: SocketAddr,
    /// The key at the beginning of the path in every process's address.
    key: Arc<str>,
    functions: Arc<HashMap<String, Arc<Invocations>>>,
    random: SharedRandom,
}

/// An event for a function.
pub struct Event {
    pub content: Bytes,
    /// The event's trace, in the format of `X-Amzn-Trace-Id`.
    pub trace: Option<String>,
    pub caller: Presence,
}

/// A process that is served at its own address until this is dropped.
pub struct Attachment {
    invocations: Arc<Invocations>,
    process: u64,
    /// The process's value of `AWS_LAMBDA_RUNTIME_API`.
    pub address: String,
}

impl RuntimeApi {
    /// Serves these functions on this port until the process ends.
    pub fn start<'a>(functions: impl IntoIterator<Item = &'a str>, port: Port, random: SharedRandom) -> Self {
        let Port { listener, address } = port;
        let functions = functions.into_iter().map(|function| (function.to_owned(), Arc::default()));
        let key = random::alphanumeric(random.as_ref(), 43).into();
        let api = Self { address, key, functions: Arc::new(functions.collect()), random };
        let service = Router::new()
            .route("/{key}/{function}/{process}/2018-06-01/runtime/invocation/next", get(next))
            .route("/{key}/{function}/{process}/2018-06-01/runtime/invocation/{id}/{outcome}", post(complete))
            .route("/{key}/{function}/{process}/2018-06-01/runtime/invocation/{id}/caller", get(caller))
            // The function's log has the error already, and its process ends.
            .route("/{key}/{function}/{process}/2018-06-01/runtime/init/error", post(async || StatusCode::ACCEPTED))
            .layer(middleware::from_fn_with_state(Arc::clone(&api.key), with_key))
            .layer(middleware::from_fn(callers::without_browsers))
            .with_state(api.clone());
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        tokio::spawn(async move { axum::serve(listener, service).await });
        api
    }

    /// Attaches a new process of this function.
    pub fn attach(&self, function: &str) -> Attachment {
        let invocations = self.function(function).unwrap_or_default();
        let process = invocations.begin();
        let address = format!("http://{}/{}/{function}/{process}", self.address, self.key);
        Attachment { invocations, process, address }
    }

    /// Invokes the function as soon as its process polls, and waits for the result. If the caller gives up before the
    /// poll, the function is not invoked.
    pub async fn invoke(&self, function: &str, event: Event, deadline: Time) -> InvocationOutcome {
        let Some(invocations) = self.function(function) else { return Err(Failure::Died) };
        let Event { content, trace, caller } = event;
        let id = random::uuid(self.random.as_ref());
        let answered = invocations.add(Work { id, event: content, trace, deadline }, caller);
        answered.await.unwrap_or(Err(Failure::Died))
    }

    fn function(&self, name: &str) -> Option<Arc<Invocations>> {
        self.functions.get(name).map(Arc::clone)
    }
}

impl WorkSource for Attachment {
    fn leave(&self) -> bool {
        self.invocations.leave(self.process)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.invocations.end(self.process);
    }
}

/// Accepts only requests whose path begins with the key.
async fn with_key(State(key): State<Arc<str>>, request: Request, next: Next) -> Response {
    let presented = request.uri().path().split('/').nth(1).unwrap_or_default();
    if callers::same(presented, &key) { next.run(request).await } else { StatusCode::FORBIDDEN.into_response() }
}

async fn next(State(api): State<RuntimeApi>, Path((_, function, process)): Path<(String, String, u64)>) -> Response {
    let poll = api.function(&function).and_then(|invocations| invocations.poll(process));
    let Some(poll) = poll else { return gone() };
    let Some(work) = poll.await.ok().and_then(|offer| offer.accept(process)) else { return gone() };
    let Work { id, event, trace, deadline } = work;
    let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}");
    // Without its dashes, the id has enough random digits for a trace.
    let digits = id.replace('-', "");
    let trace = trace.unwrap_or_else(|| {
        let time = deadline.as_seconds() & 0xffff_ffff;
        format!("Root=1-{time:08x}-{};Parent={};Sampled=0", &digits[..24], &digits[..16])
    });
    let headers = [
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", arn),
        ("lambda-runtime-trace-id", trace),
        ("content-type", "application/json".to_owned()),
    ];
    (headers, event).into_response()
}

/// The response to a process that has ended and will not read it.
fn gone() -> Response {
    StatusCode::GONE.into_response()
}

async fn complete(
    State(api): State<RuntimeApi>,
    Path((_, function, _, id, outcome)): Path<(String, String, u64, String, String)>,
    body: Body,
) -> Response {
    let body = to_bytes(body, MAX_ANSWER).await;
    let answer = api.function(&function).and_then(|invocations| invocations.finish(&id));
    let Some(answer) = answer else {
        return (StatusCode::BAD_REQUEST, error_json("InvalidRequestID", "")).into_response();
    };
    let (status, outcome) = match body {
        Ok(body) if outcome == "response" => (StatusCode::ACCEPTED, Ok(body)),
        Ok(body) => (StatusCode::ACCEPTED, Err(Failure::Error(body))),
        Err(error) if error.source().is_some_and(|source| source.is::<LengthLimitError>()) => {
            let what = error_json("Function.ResponseSizeTooLarge", "The answer is larger than 6 MB");
            (StatusCode::PAYLOAD_TOO_LARGE, Err(Failure::Error(what.into())))
        }
        Err(error) => {
            let what = error_json("Runtime.TruncatedResponse", &error.to_string());
            (StatusCode::BAD_REQUEST, Err(Failure::Error(what.into())))
        }
    };
    // The caller may have given up by now.
    let _ = answer.send(outcome);
    status.into_response()
}

/// Reports whether the caller of a running invocation is still waiting: 204 if it is, and 410 if it has given up.
async fn caller(
    State(api): State<RuntimeApi>,
    Path((_, function, _, id)): Path<(String, String, u64, String)>,
) -> StatusCode {
    match api.function(&function).and_then(|invocations| invocations.caller_waits(&id)) {
        Some(true) => StatusCode::NO_CONTENT,
        Some(false) => StatusCode::GONE,
        None => StatusCode::BAD_REQUEST,
    }
}

fn error_json(kind: &str, message: &str) -> String {
    json!({ "errorType": kind, "errorMessage": message }).to_string()
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Arc, time::Duration};

    use base::SystemRandom;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        task::JoinHandle,
    };

    use super::*;

    const DEADLINE: Time = Time::from_millis(1_795_167_900_123);

    async fn api() -> RuntimeApi {
        let port = Port::open(Ipv4Addr::LOCALHOST, 0).expect("a free port");
        RuntimeApi::start(["hello"], port, Arc::new(SystemRandom))
    }

    fn invoke(api: &RuntimeApi, event: &'static str) -> JoinHandle<InvocationOutcome> {
        let api = api.clone();
        tokio::spawn(async move { invoke_for(&api, event, &Caller::default()).await })
    }

    async fn invoke_for(api: &RuntimeApi, event: &'static str, caller: &Caller) -> InvocationOutcome {
        let event = Event { content: event.into(), trace: None, caller: caller.presence() };
        api.invoke("hello", event, DEADLINE).await
    }

    /// Sends a request on a new connection, which stays open.
    async fn send(process: &Attachment, verb: &str, path: &str, body: &str) -> TcpStream {
        let address = process.address.strip_prefix("http://").expect("an address");
        let (host, prefix) = address.split_once('/').expect("its own path");
        let mut connection = TcpStream::connect(host).await.expect("it listens");
        let request = format!(
            "{verb} /{prefix}/2018-06-01/runtime/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).await.expect("sent");
        connection
    }

    /// Reads everything up to this string.
    async fn read_until(connection: &mut TcpStream, end: &str) -> String {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).ends_with(end) {
            let byte = tokio::time::timeout(Duration::from_secs(300), connection.read_u8()).await;
            read.push(byte.expect("an answer").expect("all of it"));
        }
        String::from_utf8(read).expect("text")
    }

    /// Polls, and returns the id of the invocation with this event.
    async fn take(process: &Attachment, event: &str) -> String {
        let mut poll = send(process, "GET", "invocation/next", "").await;
        let answer = read_until(&mut poll, &format!("\r\n\r\n{event}")).await;
        assert!(answer.contains("lambda-runtime-deadline-ms: 1795167900123"), "{answer}");
        assert!(answer.contains("function:hello"), "{answer}");
        let id = answer.lines().find_map(|line| line.strip_prefix("lambda-runtime-aws-request-id: "));
        id.expect("an id").to_owned()
    }

    async fn complete(process: &Attachment, path: &str, body: &str, status: &str) {
        let mut connection = send(process, "POST", path, body).await;
        read_until(&mut connection, status).await;
    }

    #[tokio::test]
    async fn answers_and_errors_come_back_to_the_caller() {
        let api = api().await;
        let process = api.attach("hello");
        let one = invoke(&api, "[1]");
        let other = invoke(&api, "[2]");
        let first = take(&process, "[1]").await;
        let second = take(&process, "[2]").await;
        complete(&process, &format!("invocation/{second}/error"), "{\"a\":2}", "202 Accepted").await;
        complete(&process, &format!("invocation/{first}/response"), "{\"a\":1}", "202 Accepted").await;
        assert!(matches!(one.await.expect("no panic"), Ok(answer) if answer == "{\"a\":1}"));
        let failed = other.await.expect("no panic");
        assert!(matches!(failed, Err(Failure::Error(error)) if error == "{\"a\":2}"));
        complete(&process, &format!("invocation/{first}/response"), "late", "400 Bad Request").await;
    }

    #[tokio::test]
    async fn a_function_may_ask_whether_its_caller_still_waits() {
        let api = api().await;
        let process = api.attach("hello");
        let caller = Caller::default();
        let event = Event { content: "[1]".into(), trace: None, caller: caller.presence() };
        let running = tokio::spawn({
            let api = api.clone();
            async move { api.invoke("hello", event, DEADLINE).await }
        });
        let id = take(&process, "[1]").await;
        let ask = async |status: &str| {
            let mut connection = send(&process, "GET", &format!("invocation/{id}/caller"), "").await;
            read_until(&mut connection, status).await;
        };
        ask("204 No Content").await;
        drop(caller);
        ask("410 Gone").await;
        complete(&process, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(running.await.expect("no panic").is_ok(), "the invocation ends as it would otherwise");
        ask("400 Bad Request").await;
    }

    #[tokio::test]
    async fn a_poll_with_a_closed_connection_loses_no_invocation() {
        let api = api().await;
        let process = api.attach("hello");
        for _ in 0..20 {
            drop(send(&process, "GET", "invocation/next", "").await);
        }
        let asked = invoke(&api, "[3]");
        let id = take(&process, "[3]").await;
        complete(&process, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(asked.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn the_end_of_a_process_fails_its_invocations_and_not_waiting_ones() {
        let api = api().await;
        let process = api.attach("hello");
        let held = invoke(&api, "[4]");
        let id = take(&process, "[4]").await;
        let waiting = invoke(&api, "[5]");
        tokio::task::yield_now().await;
        let stale = process.address.clone();
        drop(process);
        assert!(matches!(held.await.expect("no panic"), Err(Failure::Died)));

        let mut successor = api.attach("hello");
        let address = std::mem::replace(&mut successor.address, stale);
        // The late request is read only now that its process has ended.
        let mut late = send(&successor, "GET", "invocation/next", "").await;
        read_until(&mut late, "410 Gone").await;
        successor.address = address;
        complete(&successor, &format!("invocation/{id}/response"), "late", "400 Bad Request").await;
        let id = take(&successor, "[5]").await;
        complete(&successor, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(waiting.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn the_end_of_a_process_before_its_first_poll_fails_waiting_ones() {
        let api = api().await;
        let process = api.attach("hello");
        let asked = invoke(&api, "[6]");
        while api.function("hello").expect("there is one").is_idle() {
            tokio::task::yield_now().await;
        }
        drop(process);
        assert!(matches!(asked.await.expect("no panic"), Err(Failure::Died)));
    }

    #[tokio::test]
    async fn later_invocations_of_a_process_that_left_wait_for_the_next() {
        let api = api().await;
        let process = api.attach("hello");
        let asked = invoke(&api, "[8]");
        let id = take(&process, "[8]").await;
        assert!(!process.leave(), "it has an invocation in progress");
        complete(&process, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(asked.await.expect("no panic").is_ok());
        // A poll is waiting while the process leaves.
        let mut poll = send(&process, "GET", "invocation/next", "").await;
        tokio::task::yield_now().await;
        assert!(process.leave());
        let asked = invoke(&api, "[9]");
        drop(process); // dropped as if the process had ended
        let successor = api.attach("hello");
        read_until(&mut poll, "410 Gone").await;
        let id = take(&successor, "[9]").await;
        complete(&successor, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(asked.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_is_an_error_at_once() {
        let api = api().await;
        let process = api.attach("hello");
        let asked = invoke(&api, "[7]");
        let id = take(&process, "[7]").await;
        let large = "x".repeat(MAX_ANSWER + 1);
        // Keep the connection open until the response: a request on a closed connection ends, sometimes before it is
        // read.
        let _open = send(&process, "POST", &format!("invocation/{id}/response"), &large).await;
        let failed = asked.await.expect("no panic");
        assert!(matches!(failed, Err(Failure::Error(error)) if error.starts_with(b"{\"errorMessage\"")));
    }
}
