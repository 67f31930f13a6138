//! Lambda itself, as a function knows it: the Runtime API, from which its process takes invocations and to which it
//! gives the answers. <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>
//!
//! The protocol has no credentials, but the address may have a path: it begins with a key that each start makes anew and that
//! only the functions' environments name. Every process has an address of its own, with the number of its start in it.
//! What a process has in hand when it ends fails at once, what waits is left to the next one, and a request of a process
//! that has ended gets nothing, however late it is read. A poll whose connection is gone takes no invocation with it.

use std::{
    collections::{HashMap, VecDeque},
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Request, State},
    http::{HeaderName, HeaderValue, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use base::{
    clock::Time,
    random::{self, SharedRandom},
};
use http_body_util::LengthLimitError;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
};

use crate::{
    aws::{ACCOUNT, REGION},
    callers,
};

/// Lambda's limit on an answer.
const MAX_ANSWER: usize = 6 * 1024 * 1024;

/// All functions' invocations.
#[derive(Clone)]
pub struct RuntimeApi {
    address: SocketAddr,
    /// What every process' address begins with.
    key: Arc<str>,
    lines: Arc<HashMap<String, Arc<Line>>>,
    random: SharedRandom,
}

/// Why a function has not answered.
#[derive(Debug)]
pub enum Failure {
    /// It answered with an error, which this JSON describes.
    Error(Bytes),
    /// Its process ended.
    Died,
}

type Outcome = Result<Bytes, Failure>;

/// One function's invocations: those that wait, and those that its process has in hand.
#[derive(Default)]
struct Line {
    state: Mutex<LineState>,
}

#[derive(Default)]
struct LineState {
    /// The number of the present process; higher than that of the last one, when that has ended.
    process: u64,
    /// Whether that process has asked for an invocation yet.
    started: bool,
    waiting: VecDeque<Invocation>,
    /// Polls of the present process. The last one is served first, so that the same connections stay busy.
    polls: Vec<oneshot::Sender<Handed>>,
    in_hand: HashMap<String, oneshot::Sender<Outcome>>,
}

struct Invocation {
    id: String,
    event: Bytes,
    deadline: Time,
    answer: oneshot::Sender<Outcome>,
}

/// What a poll is given. An invocation that the poll did not live to accept goes back to the head of its line.
struct Handed {
    line: Arc<Line>,
    invocation: Option<Invocation>,
}

/// A process that is being served under an address of its own, until this is dropped.
pub struct Attachment {
    line: Arc<Line>,
    process: u64,
    /// What its `AWS_LAMBDA_RUNTIME_API` is.
    pub address: String,
}

impl RuntimeApi {
    /// Serves these functions on a free port of this host until the process ends.
    pub async fn start<'a>(
        functions: impl IntoIterator<Item = &'a str>,
        host: Ipv4Addr,
        random: SharedRandom,
    ) -> io::Result<Self> {
        let listener = listen(host)?;
        let lines = functions.into_iter().map(|function| (function.to_owned(), Arc::default()));
        let key = random::alphanumeric(random.as_ref(), 43).into();
        let api = Self { address: listener.local_addr()?, key, lines: Arc::new(lines.collect()), random };
        let service = Router::new()
            .route("/{key}/{function}/{process}/2018-06-01/runtime/invocation/next", get(next))
            .route("/{key}/{function}/{process}/2018-06-01/runtime/invocation/{id}/{outcome}", post(complete))
            // What is wrong stands in the function's log, and that its process ends says the rest.
            .route("/{key}/{function}/{process}/2018-06-01/runtime/init/error", post(async || StatusCode::ACCEPTED))
            .layer(middleware::from_fn_with_state(Arc::clone(&api.key), with_key))
            .layer(middleware::from_fn(callers::without_browsers))
            .with_state(api.clone());
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(api)
    }

    /// A place for a new process of this function.
    pub fn attach(&self, function: &str) -> Attachment {
        let line = self.line(function).unwrap_or_default();
        let process = line.state().begin();
        Attachment { line, process, address: format!("http://{}/{}/{function}/{process}", self.address, self.key) }
    }

    /// Has the function invoked as soon as its process asks for something, and waits for the answer. When the caller
    /// gives up, nobody is invoked any more, unless the process has the invocation in hand already.
    pub async fn invoke(&self, function: &str, event: Bytes, deadline: Time) -> Outcome {
        let (answer, answered) = oneshot::channel();
        let id = random::uuid(self.random.as_ref());
        if let Some(line) = self.line(function) {
            line.state().waiting.push_back(Invocation { id, event, deadline, answer });
            line.serve();
        }
        answered.await.unwrap_or(Err(Failure::Died))
    }

    fn line(&self, function: &str) -> Option<Arc<Line>> {
        self.lines.get(function).map(Arc::clone)
    }
}

/// Listens for everybody at once: a function that is good for a thousand invocations connects as often when it starts, and
/// whoever is not let into a shorter queue comes back only after a second, then three, then seven.
fn listen(host: Ipv4Addr) -> io::Result<TcpListener> {
    const WAITING_CONNECTIONS: u32 = 4096;
    let socket = TcpSocket::new_v4()?;
    socket.bind((host, 0).into())?;
    socket.listen(WAITING_CONNECTIONS)
}

impl LineState {
    fn begin(&mut self) -> u64 {
        self.process += 1;
        self.started = false;
        self.process
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// Gives what waits to the polls that wait.
    fn serve(self: &Arc<Self>) {
        let mut state = self.state();
        while let Some(invocation) = state.waiting.pop_front() {
            if invocation.answer.is_closed() {
                continue;
            }
            let Some(poll) = state.polls.pop() else { return state.waiting.push_front(invocation) };
            let handed = Handed { line: Arc::clone(self), invocation: Some(invocation) };
            if let Err(mut back) = poll.send(handed) {
                // Taken out here: when it is dropped it would want the state, which is ours.
                if let Some(invocation) = back.invocation.take() {
                    state.waiting.push_front(invocation);
                }
            }
        }
    }

    /// A place among the polls, unless that process has ended.
    fn poll(self: &Arc<Self>, process: u64) -> Option<oneshot::Receiver<Handed>> {
        let mut state = self.state();
        if process != state.process {
            return None;
        }
        state.started = true;
        let (poll, polled) = oneshot::channel();
        state.polls.push(poll);
        drop(state);
        self.serve();
        Some(polled)
    }

    fn end(&self, process: u64) {
        let mut state = self.state();
        if process != state.process {
            return;
        }
        state.process += 1;
        state.polls.clear();
        let mut lost: Vec<_> = state.in_hand.drain().map(|(_, answer)| answer).collect();
        if !state.started {
            // It could not even start, and nor may the next one: whoever waits is told, as on AWS.
            lost.extend(state.waiting.drain(..).map(|invocation| invocation.answer));
        }
        drop(state);
        for answer in lost {
            // Whoever has given up needs no answer.
            let _ = answer.send(Err(Failure::Died));
        }
    }
}

impl Handed {
    /// The invocation, which is from now on in this process' hand; nothing if it has ended.
    fn accept(mut self, process: u64) -> Option<(String, Bytes, Time)> {
        let line = Arc::clone(&self.line);
        let mut state = line.state();
        if process != state.process {
            drop(state);
            return None;
        }
        let Invocation { id, event, deadline, answer } = self.invocation.take()?;
        state.in_hand.insert(id.clone(), answer);
        Some((id, event, deadline))
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(invocation) = self.invocation.take() {
            self.line.state().waiting.push_front(invocation);
            self.line.serve();
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.line.end(self.process);
    }
}

/// Lets requests through whose path begins with the key.
async fn with_key(State(key): State<Arc<str>>, request: Request, next: Next) -> Response {
    let presented = request.uri().path().split('/').nth(1).unwrap_or_default();
    if callers::same(presented, &key) { next.run(request).await } else { StatusCode::FORBIDDEN.into_response() }
}

async fn next(State(api): State<RuntimeApi>, Path((_, function, process)): Path<(String, String, u64)>) -> Response {
    let Some(poll) = api.line(&function).and_then(|line| line.poll(process)) else { return gone() };
    let Some((id, event, deadline)) = poll.await.ok().and_then(|handed| handed.accept(process)) else { return gone() };
    let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}");
    // The id without its dashes has as many digits as a trace needs, and is as good a dice.
    let digits = id.replace('-', "");
    let trace = format!(
        "Root=1-{:08x}-{};Parent={};Sampled=0",
        deadline.as_seconds() & 0xffff_ffff,
        &digits[..24],
        &digits[..16]
    );
    let headers = [
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", arn),
        ("lambda-runtime-trace-id", trace),
        ("content-type", "application/json".to_owned()),
    ];
    let mut response = Response::new(Body::from(event));
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// The process that asked is not there any more; the answer is for form's sake.
fn gone() -> Response {
    StatusCode::GONE.into_response()
}

async fn complete(
    State(api): State<RuntimeApi>,
    Path((_, function, _, id, outcome)): Path<(String, String, u64, String, String)>,
    body: Body,
) -> Response {
    let body = to_bytes(body, MAX_ANSWER).await;
    let answer = api.line(&function).and_then(|line| line.state().in_hand.remove(&id));
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
    // Whoever asked may have given up since.
    let _ = answer.send(outcome);
    status.into_response()
}

fn error_json(kind: &str, message: &str) -> String {
    json!({ "errorType": kind, "errorMessage": message }).to_string()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use base::random::SystemRandom;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        task::JoinHandle,
    };

    use super::*;

    const DEADLINE: Time = Time::from_millis(1_795_167_900_123);

    async fn api() -> RuntimeApi {
        RuntimeApi::start(["hello"], Ipv4Addr::LOCALHOST, Arc::new(SystemRandom)).await.expect("a free port")
    }

    fn invoke(api: &RuntimeApi, event: &'static str) -> JoinHandle<Outcome> {
        let api = api.clone();
        tokio::spawn(async move { api.invoke("hello", event.into(), DEADLINE).await })
    }

    /// A request on a connection of its own, which stays open.
    async fn send(process: &Attachment, verb: &str, path: &str, body: &str) -> TcpStream {
        let address = process.address.strip_prefix("http://").expect("an address");
        let (host, prefix) = address.split_once('/').expect("a path of its own");
        let mut connection = TcpStream::connect(host).await.expect("it listens");
        let request = format!(
            "{verb} /{prefix}/2018-06-01/runtime/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).await.expect("sent");
        connection
    }

    /// Everything up to this text.
    async fn read_until(connection: &mut TcpStream, end: &str) -> String {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).ends_with(end) {
            let byte = tokio::time::timeout(Duration::from_secs(10), connection.read_u8()).await;
            read.push(byte.expect("an answer").expect("all of it"));
        }
        String::from_utf8(read).expect("text")
    }

    /// Polls, and gives the id of the invocation with this event.
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
    async fn answers_and_errors_come_back_to_whoever_asked() {
        let api = api().await;
        let process = api.attach("hello");
        let (one, other) = (invoke(&api, "[1]"), invoke(&api, "[2]"));
        let (first, second) = (take(&process, "[1]").await, take(&process, "[2]").await);
        complete(&process, &format!("invocation/{second}/error"), "{\"a\":2}", "202 Accepted").await;
        complete(&process, &format!("invocation/{first}/response"), "{\"a\":1}", "202 Accepted").await;
        assert!(matches!(one.await.expect("no panic"), Ok(answer) if answer == "{\"a\":1}"));
        let failed = other.await.expect("no panic");
        assert!(matches!(failed, Err(Failure::Error(error)) if error == "{\"a\":2}"));
        complete(&process, &format!("invocation/{first}/response"), "late", "400 Bad Request").await;
    }

    #[tokio::test]
    async fn a_poll_that_is_gone_takes_nothing_with_it() {
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
    async fn what_a_process_had_in_hand_ends_with_it_and_what_waits_is_for_the_next() {
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
        // Read only now, when its process has ended.
        let mut late = send(&successor, "GET", "invocation/next", "").await;
        read_until(&mut late, "410 Gone").await;
        successor.address = address;
        complete(&successor, &format!("invocation/{id}/response"), "late", "400 Bad Request").await;
        let id = take(&successor, "[5]").await;
        complete(&successor, &format!("invocation/{id}/response"), "ok", "202 Accepted").await;
        assert!(waiting.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn a_process_that_ends_before_it_asks_for_anything_fails_what_waits() {
        let api = api().await;
        let process = api.attach("hello");
        let asked = invoke(&api, "[6]");
        while api.line("hello").expect("there is one").state().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        drop(process);
        assert!(matches!(asked.await.expect("no panic"), Err(Failure::Died)));
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_is_an_error_at_once() {
        let api = api().await;
        let process = api.attach("hello");
        let asked = invoke(&api, "[7]");
        let id = take(&process, "[7]").await;
        let large = "x".repeat(MAX_ANSWER + 1);
        // Open until it is answered: the request of a connection that is closed ends with it, sometimes before it is read.
        let _open = send(&process, "POST", &format!("invocation/{id}/response"), &large).await;
        let failed = asked.await.expect("no panic");
        assert!(matches!(failed, Err(Failure::Error(error)) if error.starts_with(b"{\"errorMessage\"")));
    }
}
