//! A proxy between the functions and what they stand on (the table, the queue), which sees every call by name and can
//! stop the world at that very call: before it is forwarded, or when it was carried out and before its caller knows. It
//! can also delay calls, refuse them, answer them itself, and lose, double, delay and reorder the messages of a queue.
//! And it meters calls: when each was under way, and what DynamoDB would charge for it.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use md5::{Digest, Md5};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    AwsCaller, LONG, Received,
    aws_protocol::{AwsCall, ProxyResponse},
    http::read,
    locked,
    metered::{Metered, asking_for_capacity},
};

/// When a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing has happened yet.
    Before,
    /// It was carried out, and the caller does not know.
    After,
}

enum Verdict {
    Go,
    Lose,
    Part(Value),
}

type Wanted = Box<dyn Fn(&AwsCall) -> bool + Send + Sync>;

struct Trap {
    wanted: Wanted,
    moment: Moment,
    reached: oneshot::Sender<AwsCall>,
    verdict: oneshot::Receiver<Verdict>,
}

/// The first call of a kind, which waits for what a test decides. When this is dropped, the call goes on.
#[must_use]
pub struct Held {
    what: String,
    reached: Option<oneshot::Receiver<AwsCall>>,
    verdict: oneshot::Sender<Verdict>,
}

impl Held {
    /// Waits until the call has come.
    pub async fn reached(&mut self) -> AwsCall {
        let reached = self.reached.take().expect("it is reached once");
        match timeout(LONG, reached).await {
            Ok(Ok(call)) => call,
            _ => panic!("waited {LONG:?} in vain for the call: {}", self.what),
        }
    }

    /// Lets it go on as if nothing had been.
    pub fn go_on(self) {
        // It may be gone with its caller.
        let _ = self.verdict.send(Verdict::Go);
    }

    /// Ends the connection: a call that was held before is never carried out, of one that was held after, the answer is
    /// lost.
    pub fn lose(self) {
        let _ = self.verdict.send(Verdict::Lose);
    }

    /// Has something else carried out instead, and loses the answer: some of a batch's statements, say.
    pub fn carry_out_only(self, body: Value) {
        let _ = self.verdict.send(Verdict::Part(body));
    }
}

/// The treatment of calls of a kind, again and again.
enum Treatment {
    Delay(Duration),
    Refuse(&'static str),
    Answer(Value),
    Scatter(Scatter),
}

/// When the copies of a message arrive; none, when it is lost.
type Scatter = Arc<dyn Fn(&str) -> Vec<Duration> + Send + Sync>;

struct Rule {
    wanted: Wanted,
    times: usize,
    treatment: Treatment,
}

/// The proxy; it stops when it is dropped.
pub struct Interposer {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

struct State {
    upstream: SocketAddr,
    http: reqwest::Client,
    traps: Mutex<Vec<Trap>>,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<AwsCall>>,
    metered: Mutex<Option<Vec<Metered>>>,
    /// Who signs calls whose bodies are changed here.
    caller: OnceLock<AwsCaller>,
}

impl Interposer {
    /// A proxy on a free port, to an address where somebody will listen.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State {
            upstream,
            http: reqwest::Client::builder().no_proxy().build().expect("a client without TLS needs nothing"),
            traps: Mutex::default(),
            rules: Mutex::default(),
            seen: Mutex::default(),
            metered: Mutex::default(),
            caller: OnceLock::new(),
        });
        let serving = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                // A caller that is killed in mid call is what this is for.
                tokio::spawn(converse(stream, Arc::clone(&serving)));
            }
        });
        Self { address, state, accepting }
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Signs calls whose bodies are changed here with these credentials, which the proxy needs before it changes any.
    pub fn sign_as(&self, caller: AwsCaller) {
        self.state.caller.get_or_init(|| caller);
    }

    /// Holds the first call of this kind.
    pub fn hold(
        &self,
        what: impl Into<String>,
        moment: Moment,
        wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static,
    ) -> Held {
        let (reached, reaching) = oneshot::channel();
        let (decided, verdict) = oneshot::channel();
        locked(&self.state.traps).push(Trap { wanted: Box::new(wanted), moment, reached, verdict });
        Held { what: what.into(), reached: Some(reaching), verdict: decided }
    }

    /// Forwards so many calls of this kind later.
    pub fn delay(&self, times: usize, by: Duration, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Delay(by), wanted);
    }

    /// Answers so many calls of this kind with an error of this code, and does not forward them.
    pub fn refuse(&self, times: usize, code: &'static str, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Refuse(code), wanted);
    }

    /// Answers so many calls of this kind with this, and does not forward them.
    pub fn answer(&self, times: usize, body: Value, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Answer(body), wanted);
    }

    /// The calls that were metered since the last time. From the first time on all are that have an answer.
    pub fn metered(&self) -> Vec<Metered> {
        locked(&self.state.metered).replace(Vec::new()).unwrap_or_default()
    }

    /// From now on, takes every message for a queue with thanks, and has as many copies of it arrive as are asked for this
    /// text, each after its own time.
    pub fn scatter(&self, copies: impl Fn(&str) -> Vec<Duration> + Send + Sync + 'static) {
        let wanted = |call: &AwsCall| call.operation == "SendMessageBatch";
        self.add(usize::MAX, Treatment::Scatter(Arc::new(copies)), wanted);
    }

    /// Takes so many calls of this kind with thanks, and loses their messages.
    pub fn swallow(&self, times: usize, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Scatter(Arc::new(|_: &str| Vec::new())), wanted);
    }

    /// The first call of this operation, if one has come.
    pub fn first(&self, operation: &str) -> Option<AwsCall> {
        locked(&self.state.seen).iter().find(|call| call.operation == operation).cloned()
    }

    /// The calls so far with this text in their bodies, in their order.
    pub fn calls_mentioning(&self, text: &str) -> Vec<AwsCall> {
        locked(&self.state.seen).iter().filter(|call| call.mentions(text)).cloned().collect()
    }

    fn add(&self, times: usize, treatment: Treatment, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        locked(&self.state.rules).push(Rule { wanted: Box::new(wanted), times, treatment });
    }
}

impl Drop for Interposer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn converse(stream: TcpStream, state: Arc<State>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let received = read(&mut stream).await?;
        let Some(answer) = state.pass(&received).await else { return Ok(()) };
        stream.write_all(&answer.bytes()).await?;
    }
}

impl State {
    /// The answer; nothing, when the connection is to end without one.
    async fn pass(self: &Arc<Self>, received: &Received) -> Option<ProxyResponse> {
        let call = AwsCall::of(received);
        locked(&self.seen).push(call.clone());
        let mut trap = self.trap(&call);
        if let Some(trap) = trap.take_if(|trap| trap.moment == Moment::Before) {
            match trap.spring(call.clone()).await {
                Verdict::Go => {}
                Verdict::Lose => return None,
                Verdict::Part(body) => {
                    self.forward(received, body.to_string().into_bytes()).await;
                    return None;
                }
            }
        }
        let is_metered = locked(&self.metered).is_some();
        let body = if is_metered { asking_for_capacity(&call, &received.body) } else { received.body.clone() };
        let began = Instant::now();
        let answer = match self.treatment(&call) {
            Some(Treatment::Refuse(code)) => Some(ProxyResponse::refusal(code)),
            Some(Treatment::Answer(body)) => Some(ProxyResponse::json(200, &body)),
            Some(Treatment::Scatter(copies)) => Some(self.scatter(received, &call, &copies)),
            Some(Treatment::Delay(by)) => {
                sleep(by).await;
                self.forward(received, body).await
            }
            None => self.forward(received, body).await,
        };
        if is_metered && let Some(answer) = &answer {
            let metered = Metered::of(&call, began..Instant::now(), &answer.body);
            locked(&self.metered).get_or_insert_default().push(metered);
        }
        match trap {
            Some(trap) => match trap.spring(call).await {
                Verdict::Go => answer,
                Verdict::Lose | Verdict::Part(_) => None,
            },
            None => answer,
        }
    }

    fn trap(&self, call: &AwsCall) -> Option<Trap> {
        let mut traps = locked(&self.traps);
        let position = traps.iter().position(|trap| (trap.wanted)(call))?;
        Some(traps.remove(position))
    }

    fn treatment(&self, call: &AwsCall) -> Option<Treatment> {
        let mut rules = locked(&self.rules);
        let rule = rules.iter_mut().find(|rule| rule.times > 0 && (rule.wanted)(call))?;
        rule.times -= 1;
        Some(match &rule.treatment {
            Treatment::Delay(by) => Treatment::Delay(*by),
            Treatment::Refuse(code) => Treatment::Refuse(code),
            Treatment::Answer(body) => Treatment::Answer(body.clone()),
            Treatment::Scatter(copies) => Treatment::Scatter(Arc::clone(copies)),
        })
    }

    /// The response of the server behind it; nothing when that is down.
    async fn forward(&self, received: &Received, body: Vec<u8>) -> Option<ProxyResponse> {
        let url = format!("http://{}{}", self.upstream, received.path);
        let method = received.method.parse().ok()?;
        let is_changed = body != received.body;
        let mut request = self.http.request(method, url).body(body);
        let of_this_connection = ["content-length", "connection", "transfer-encoding"];
        // The caller signed the host, and the whole body.
        let of_its_signature = ["host", "authorization", "x-amz-date"];
        for (name, value) in &received.headers {
            let lower = name.to_ascii_lowercase();
            let is_dropped = is_changed && of_its_signature.contains(&&*lower);
            if !is_dropped && !of_this_connection.contains(&&*lower) {
                request = request.header(name, value);
            }
        }
        if is_changed {
            request = self.caller.get().expect("a proxy that changes calls has credentials").sign(request);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let headers = answer.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        Some(ProxyResponse { status, headers, body: answer.bytes().await.ok()?.to_vec() })
    }

    /// Thanks for the messages of a batch, of which copies will arrive one by one.
    fn scatter(self: &Arc<Self>, received: &Received, call: &AwsCall, copies: &Scatter) -> ProxyResponse {
        let mut taken = Vec::new();
        for entry in call.body["Entries"].as_array().into_iter().flatten() {
            let text = entry["MessageBody"].as_str().unwrap_or_default();
            let md5: String = Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            taken.push(json!({ "Id": entry["Id"], "MessageId": md5, "MD5OfMessageBody": md5 }));
            let single = json!({ "QueueUrl": call.body["QueueUrl"], "Entries": [entry] }).to_string();
            for wait in copies(text) {
                let state = Arc::clone(self);
                let received = received.clone();
                let single = single.clone();
                tokio::spawn(async move {
                    sleep(wait).await;
                    // A queue that is down has lost it.
                    drop(state.forward(&received, single.into_bytes()).await);
                });
            }
        }
        ProxyResponse::json(200, &json!({ "Successful": taken, "Failed": [] }))
    }
}

impl Trap {
    async fn spring(self, call: AwsCall) -> Verdict {
        // A test that does not look any more does not decide either.
        let _ = self.reached.send(call);
        self.verdict.await.unwrap_or(Verdict::Go)
    }
}
