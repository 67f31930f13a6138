//! A proxy between the functions and the table or the queues. It sees every call by name, and can hold it: before
//! forwarding it, or after it was carried out but before its caller gets the response. It can also delay, refuse or
//! answer calls, and lose, duplicate, delay and reorder a queue's messages. It measures how long each call takes and
//! how much DynamoDB charges for it.

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
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    AwsCaller, LONG, Received,
    aws_protocol::{AwsCall, ProxyResponse},
    http::read,
    locked,
    metered::{Metered, READS, asking_for_capacity},
};

/// When a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the call is forwarded.
    Before,
    /// After the call was carried out, but before the caller gets the response.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Go,
    Lose,
}

type Wanted = Box<dyn Fn(&AwsCall) -> bool + Send + Sync>;

struct Trap {
    wanted: Wanted,
    moment: Moment,
    reached: oneshot::Sender<AwsCall>,
    verdict: oneshot::Receiver<Verdict>,
    decided: watch::Sender<Option<Verdict>>,
}

/// A call that is being held.
struct Sprung {
    call: AwsCall,
    /// The test's decision, once there is one.
    decided: watch::Receiver<Option<Verdict>>,
}

/// The first call of a kind, which waits for the test's decision. Dropping this releases the call. A caller that has
/// waited too long repeats its write; the repeated write is held with the first call and treated in the same way.
#[must_use]
pub struct Held {
    what: String,
    reached: Option<oneshot::Receiver<AwsCall>>,
    verdict: oneshot::Sender<Verdict>,
}

impl Held {
    /// Waits until the call has arrived.
    pub async fn reached(&mut self) -> AwsCall {
        let reached = self.reached.take().expect("called once");
        match timeout(LONG, reached).await {
            Ok(Ok(call)) => call,
            _ => panic!("waited {LONG:?} in vain for the call: {}", self.what),
        }
    }

    /// Lets the call continue normally.
    pub fn release(self) {
        // The call may have ended together with its caller.
        let _ = self.verdict.send(Verdict::Go);
    }

    /// Closes the connection: a call held `Before` is never carried out, and the response of a call held `After` is
    /// lost.
    pub fn lose(self) {
        let _ = self.verdict.send(Verdict::Lose);
    }
}

/// How one kind of call is treated.
enum Treatment {
    Delay(Duration),
    Refuse(&'static str),
    Answer(Value),
    Scatter(Scatter),
}

/// The delays of a message's copies; empty if the message is lost.
type Scatter = Arc<dyn Fn(&str) -> Vec<Duration> + Send + Sync>;

struct Rule {
    wanted: Wanted,
    times: usize,
    treatment: Treatment,
}

/// The proxy, which stops when it is dropped.
pub struct Interposer {
    /// The address that the proxy listens on.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

struct State {
    upstream: SocketAddr,
    http: reqwest::Client,
    traps: Mutex<Vec<Trap>>,
    sprung: Mutex<Vec<Sprung>>,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<AwsCall>>,
    metered: Mutex<Option<Vec<Metered>>>,
    /// The signer for calls whose bodies the proxy changes.
    caller: OnceLock<AwsCaller>,
}

impl Interposer {
    /// A proxy on a free port for a server that will listen at this address.
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State {
            upstream,
            http: reqwest::Client::builder().no_proxy().build().expect("a client without TLS needs nothing"),
            traps: Mutex::default(),
            sprung: Mutex::default(),
            rules: Mutex::default(),
            seen: Mutex::default(),
            metered: Mutex::default(),
            caller: OnceLock::new(),
        });
        let serving = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                // Tests kill callers while calls are in progress.
                tokio::spawn(converse(stream, Arc::clone(&serving)));
            }
        });
        Self { address, state, accepting }
    }

    /// The proxy's address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the credentials for signing changed calls, which the proxy needs before it changes any.
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
        let wanted = Box::new(wanted);
        locked(&self.state.traps).push(Trap { wanted, moment, reached, verdict, decided: watch::Sender::new(None) });
        Held { what: what.into(), reached: Some(reaching), verdict: decided }
    }

    /// Delays the next `times` calls of this kind.
    pub fn delay(&self, times: usize, by: Duration, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Delay(by), wanted);
    }

    /// Responds to the next `times` calls of this kind with this error code, without forwarding them.
    pub fn refuse(&self, times: usize, code: &'static str, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Refuse(code), wanted);
    }

    /// Returns this response to the next `times` calls of this kind, without forwarding them.
    pub fn answer(&self, times: usize, body: Value, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Answer(body), wanted);
    }

    /// The calls metered since the last call to this method. Metering begins with the first call to this method.
    pub fn metered(&self) -> Vec<Metered> {
        locked(&self.state.metered).replace(Vec::new()).unwrap_or_default()
    }

    /// From now on, the proxy itself acknowledges every message for a queue, and delivers the copies that `copies`
    /// returns for its text, each after its delay.
    pub fn scatter(&self, copies: impl Fn(&str) -> Vec<Duration> + Send + Sync + 'static) {
        let wanted = |call: &AwsCall| call.operation == "SendMessageBatch";
        self.add(usize::MAX, Treatment::Scatter(Arc::new(copies)), wanted);
    }

    /// Acknowledges the next `times` calls of this kind, but loses their messages.
    pub fn swallow(&self, times: usize, wanted: impl Fn(&AwsCall) -> bool + Send + Sync + 'static) {
        self.add(times, Treatment::Scatter(Arc::new(|_: &str| Vec::new())), wanted);
    }

    /// The earliest call to this operation.
    pub fn first(&self, operation: &str) -> Option<AwsCall> {
        locked(&self.state.seen).iter().find(|call| call.operation == operation).cloned()
    }

    /// The calls so far whose bodies contain this text, in order.
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
    /// The response; `None` means that the connection is closed without one.
    async fn pass(self: &Arc<Self>, received: &Received) -> Option<ProxyResponse> {
        let call = AwsCall::of(received);
        locked(&self.seen).push(call.clone());
        if self.repeated_verdict(&call).await == Some(Verdict::Lose) {
            return None;
        }
        let mut trap = self.trap(&call);
        if let Some(trap) = trap.take_if(|trap| trap.moment == Moment::Before) {
            match trap.spring(call.clone()).await {
                Verdict::Go => {}
                Verdict::Lose => return None,
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
                Verdict::Lose => None,
            },
            None => answer,
        }
    }

    fn trap(&self, call: &AwsCall) -> Option<Trap> {
        let mut traps = locked(&self.traps);
        let position = traps.iter().position(|trap| (trap.wanted)(call))?;
        let trap = traps.remove(position);
        let mut sprung = locked(&self.sprung);
        sprung.retain(|sprung| sprung.decided.borrow().is_none());
        sprung.push(Sprung { call: call.clone(), decided: trap.decided.subscribe() });
        Some(trap)
    }

    /// Holds a repetition of a held write until the test decides; `None` for every other call. Reads are excluded,
    /// since two reads may be equal without one being a repetition.
    async fn repeated_verdict(&self, call: &AwsCall) -> Option<Verdict> {
        if READS.contains(&call.operation.as_str()) {
            return None;
        }
        let of_call = |sprung: &&Sprung| {
            let is_held = sprung.decided.borrow().is_none();
            is_held && call.repeats(&sprung.call)
        };
        let mut decided = locked(&self.sprung).iter().find(of_call).map(|sprung| sprung.decided.clone())?;
        let verdict = decided.wait_for(Option::is_some).await.ok()?;
        *verdict
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

    /// The server's response; `None` if the server is down.
    async fn forward(&self, received: &Received, body: Vec<u8>) -> Option<ProxyResponse> {
        let url = format!("http://{}{}", self.upstream, received.path);
        let method = received.method.parse().ok()?;
        let is_changed = body != received.body;
        let mut request = self.http.request(method, url).body(body);
        let of_this_connection = ["content-length", "connection", "transfer-encoding"];
        // The caller's signature covers the host and the whole body.
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

    /// Acknowledges a batch of messages, whose copies are then delivered one by one.
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
                    // If the queue is down, the message is lost.
                    drop(state.forward(&received, single.into_bytes()).await);
                });
            }
        }
        ProxyResponse::json(200, &json!({ "Successful": taken, "Failed": [] }))
    }
}

impl Trap {
    async fn spring(self, call: AwsCall) -> Verdict {
        // The test may have dropped its handle.
        let _ = self.reached.send(call);
        let verdict = self.verdict.await.unwrap_or(Verdict::Go);
        self.decided.send_replace(Some(verdict));
        verdict
    }
}
