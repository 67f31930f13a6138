//! The simulated AWS, which the SDK reaches through its HTTP client.

pub mod bucket;
mod secrets;
pub mod table;

pub use secrets::{PREFIX as SECRETS_PREFIX, TASK_KEY, data_keys, signing_keys};

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::body::SdkBody;
use base::pause;
use bucket::{BucketAnswer, BucketRequest};
use fastrand::Rng;
use serde_json::Value;
use storage::aws::{AsyncSleep, Sleep};
use table::ItemKey;

use crate::{
    faults::Fault,
    geo_ip,
    sandbox::{Phase, Sandbox},
    world::{At, World},
};

/// The region of the simulated AWS.
pub const REGION: &str = "eu-central-1";
/// The table's name.
pub const TABLE: &str = "waypost";
/// The quick lane's queue.
pub const QUICK: &str = "deliveries";
/// The slow lane's queue.
pub const SLOW: &str = "slow-deliveries";

/// One sandbox's HTTP client, which leads to the simulated AWS.
#[derive(Clone)]
pub struct Wire {
    /// The state that AWS shares with all sandboxes.
    pub world: Arc<World>,
    /// The sandbox that makes the calls.
    pub sandbox: Arc<Sandbox>,
}

/// An AWS operation, as a request names it.
struct Call {
    service: Service,
    operation: String,
    body: Value,
    bytes: Vec<u8>,
    /// A hash of the call's content, excluding the tokens that the SDK draws at random.
    subject: u64,
    /// The await point, named after the call's effect, for coverage.
    point: String,
    /// The items that the call names.
    items: Vec<ItemKey>,
    /// The request, if it is for the bucket.
    bucket: Option<BucketRequest>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "> {}", self.point)?;
        self.items.iter().try_for_each(|(partition, sort)| write!(f, "  {partition} {sort}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    Table,
    Queues,
    Secrets,
    Bucket,
}

/// The SDK's timers. A frozen sandbox runs no background tasks: a timer that is set during a freeze starts when the
/// sandbox thaws, and no task sees a timer end before that.
impl AsyncSleep for Wire {
    fn sleep(&self, time: Duration) -> Sleep {
        let wire = self.clone();
        Sleep::new(async move {
            wire.sandbox.running().await;
            pause(time).await;
            wire.sandbox.running().await;
            wire.seed_jitter();
        })
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("sandbox", &self.sandbox.id).finish_non_exhaustive()
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let wire = self.clone();
        HttpConnectorFuture::new(async move {
            let answer = wire.answer(request).await;
            wire.seed_jitter();
            answer
        })
    }
}

impl Wire {
    /// Seeds the thread's generator, which the SDK uses for the jitter of a backoff when a call or a timeout ends. If a
    /// log enables the SDK's spans, the SDK also draws a number for each span; a history must not depend on that.
    fn seed_jitter(&self) {
        fastrand::seed(self.world.draws.hash(&("jitter", self.world.clock.millis(), self.sandbox.id)));
    }

    async fn answer(&self, mut request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let call = match BucketRequest::read(&mut request).await? {
            Some(request) => Call::of_bucket(request, self.sandbox.id),
            None => Call::read(&request)?,
        };
        self.sandbox.running().await;
        self.in_turn().await;
        let mut rng = self.arrive(&call);
        if self.occurs(Fault::KilledBefore, &call, &mut rng) {
            self.die().await;
        }
        if self.occurs(Fault::FrozenBefore, &call, &mut rng) {
            self.freeze(&mut rng);
        }
        if self.occurs(Fault::Unreached, &call, &mut rng) {
            self.travel(&call, &mut rng).await;
            return Err(broken());
        }
        self.travel(&call, &mut rng).await;
        if self.is_late(&call, &mut rng) {
            return self.carry_out_late(call, rng).await;
        }
        if self.occurs(Fault::Refused, &call, &mut rng) {
            return Ok(match call.service {
                Service::Bucket => bucket_response(BucketAnswer::error(500, "InternalError")),
                _ => response(500, r#"{"__type":"InternalServerError","message":"played"}"#.to_owned()),
            });
        }
        let answer = match &call.bucket {
            Some(request) => self.carry_out_in_bucket(&call, request, &mut rng),
            None => {
                let (status, answer) = self.carry_out(&call, &mut rng).await?;
                self.world.explain(self.sandbox.actor(), || format!("= {}", outcome(status, &answer)));
                response(status, answer)
            }
        };
        if self.occurs(Fault::KilledAfter, &call, &mut rng) {
            self.die().await;
        }
        if self.occurs(Fault::FrozenAfter, &call, &mut rng) {
            self.freeze(&mut rng);
        }
        if self.occurs(Fault::AnswerLost, &call, &mut rng) {
            if rng.bool() {
                self.travel(&call, &mut rng).await;
                return Err(broken());
            }
            // The pause is longer than any of the SDK's timeouts.
            pause(Duration::from_secs(if call.bucket.is_some() { 300 } else { 60 })).await;
        }
        self.travel(&call, &mut rng).await;
        Ok(answer)
    }

    /// Records that the call is leaving the sandbox. Its choices depend on the time and on the call's content.
    fn arrive(&self, call: &Call) -> Rng {
        let now = self.world.clock.millis();
        let mut state = self.world.state();
        state.coverage.reached(self.sandbox.function, &call.point);
        state.journal.note(self.world.now(), self.sandbox.actor(), || call.to_string());
        self.world.draws.about(&("call", now, self.sandbox.function, call.subject))
    }

    fn occurs(&self, fault: Fault, call: &Call, rng: &mut Rng) -> bool {
        let mut state = self.world.state();
        let occurs = state.chances.occurs(fault, rng);
        if occurs {
            state.coverage.injected(self.sandbox.function, &call.point, fault);
            state.hindered.insert(self.sandbox.invocation());
            state.journal.note(self.world.now(), self.sandbox.actor(), || format!("! {}", fault.name()));
        }
        occurs
    }

    /// Whether an event's write is late. A batch draws separately: the histories that are kept as regression tests are
    /// older than this fault of batches, and their other faults must stay as they were.
    fn is_late(&self, call: &Call, rng: &mut Rng) -> bool {
        if !Fault::EventLate.can_occur_at(&call.point) {
            return false;
        }
        if call.point.starts_with("BatchExecuteStatement") {
            let mut rng = self.world.draws.about(&("late", self.world.clock.millis(), call.subject));
            return self.occurs(Fault::EventLate, call, &mut rng);
        }
        self.occurs(Fault::EventLate, call, rng)
    }

    /// Half the time that a call takes.
    async fn travel(&self, call: &Call, rng: &mut Rng) {
        let slow = self.occurs(Fault::Slow, call, rng);
        pause(Duration::from_millis(if slow { rng.u64(50..1_500) } else { rng.u64(1..6) })).await;
        self.sandbox.running().await;
        self.in_turn().await;
    }

    /// If the sandbox's calls take turns, waits for this call's turn.
    async fn in_turn(&self) {
        if self.sandbox.function.takes_turns() {
            geo_ip::in_turn(&self.world, &self.sandbox).await;
        }
    }

    /// Carries out the call after its caller has stopped waiting, even if the sandbox is dead by then.
    async fn carry_out_late(&self, call: Call, mut rng: Rng) -> Result<HttpResponse, ConnectorError> {
        let wire = self.clone();
        let late = Duration::from_millis(rng.u64(5_000..60_000));
        tokio::spawn(async move {
            pause(late).await;
            // The caller has given up and gets no response.
            let _carried_out = wire.carry_out(&call, &mut rng).await;
        });
        // The pause is longer than any of the SDK's timeouts.
        pause(Duration::from_secs(60)).await;
        Err(broken())
    }

    fn carry_out_in_bucket(&self, call: &Call, request: &BucketRequest, rng: &mut Rng) -> HttpResponse {
        // S3 responds with 409 while a similar write is in progress.
        if request.is_conditional_write() && self.occurs(Fault::Conflict, call, rng) {
            return bucket_response(BucketAnswer::error(409, "ConditionalRequestConflict"));
        }
        let now = self.world.clock.millis();
        bucket_response(self.world.state().geo_ip.bucket.answer(request, now, self.sandbox.id))
    }

    async fn die(&self) {
        self.world.interrupted(&self.sandbox);
        self.sandbox.set(Phase::Dead);
        self.sandbox.running().await;
    }

    fn freeze(&self, rng: &mut Rng) {
        // The time is usually seconds, but can be up to an hour.
        let time = Duration::from_secs_f64(1.0 + 3_600.0 * rng.f64().powi(6));
        self.world.note_of(self.sandbox.actor(), || format!("is frozen for {time:?}"));
        self.world.interrupted(&self.sandbox);
        self.sandbox.freeze(time);
    }

    async fn carry_out(&self, call: &Call, rng: &mut Rng) -> Result<(u16, String), ConnectorError> {
        match call.service {
            Service::Table => {
                let now = self.world.clock.millis();
                let mut state = self.world.state();
                let at = At { sandbox: &self.sandbox, point: &call.point };
                let (status, answer) = match state.call_table(&call.operation, &call.body, now, at, rng) {
                    Ok(answer) => (200, answer.to_string()),
                    Err(refusal) => (refusal.status, refusal.body.to_string()),
                };
                if status != 200 {
                    state.hindered.insert(self.sandbox.invocation());
                }
                if answer.contains("ValidationE") {
                    state.invalid.push(format!("{}: {}", call.point, answer.chars().take(300).collect::<String>()));
                }
                Ok((status, answer))
            }
            Service::Queues => {
                let answer = self.world.queues.answer(&call.operation, &call.bytes).await;
                let status = answer.status().as_u16();
                Ok((status, String::from_utf8_lossy(answer.body()).into_owned()))
            }
            Service::Secrets => {
                let now = self.world.clock.millis();
                let mut rng = self.world.draws.about(&("secrets away", now, call.subject));
                let begins = self.world.state().chances.occurs(Fault::SecretsAway, &mut rng);
                let mut state = self.world.state();
                if begins {
                    // The outage is usually short, but can be up to two minutes.
                    state.secrets_away_until = now + (120_000.0 * rng.f64().powi(3)) as u64;
                }
                if begins || now < state.secrets_away_until {
                    state.coverage.injected(self.sandbox.function, &call.point, Fault::SecretsAway);
                    state.journal.note(self.world.now(), self.sandbox.actor(), || "! secrets-away".to_owned());
                    return Err(broken());
                }
                Ok(secrets::answer(&call.operation, &call.body))
            }
            Service::Bucket => Err(ConnectorError::user("a request to the bucket without a body".into())),
        }
    }
}

impl Call {
    fn of_bucket(request: BucketRequest, sandbox: u64) -> Self {
        let point = request.point();
        let mut subject = DefaultHasher::new();
        (&point, &request.key, sandbox).hash(&mut subject);
        Self {
            service: Service::Bucket,
            operation: request.method.clone(),
            body: Value::Null,
            bytes: Vec::new(),
            subject: subject.finish(),
            point,
            items: Vec::new(),
            bucket: Some(request),
        }
    }

    fn read(request: &HttpRequest) -> Result<Self, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let (service, operation) = target.split_once('.').unwrap_or((target, ""));
        let bytes = request.body().bytes().unwrap_or_default().to_vec();
        let mut body: Value = serde_json::from_slice(&bytes).map_err(|error| ConnectorError::user(error.into()))?;
        // The SDK draws the token at random, so no choice may depend on it.
        let token = body.as_object_mut().and_then(|body| body.remove("ClientRequestToken"));
        let mut subject = DefaultHasher::new();
        body.hash(&mut subject);
        if let Some(token) = token {
            body["ClientRequestToken"] = token;
        }
        let service = match service {
            "DynamoDB_20120810" => Service::Table,
            "AmazonSQS" => Service::Queues,
            "secretsmanager" => Service::Secrets,
            other => return Err(ConnectorError::user(format!("the simulation does not play {other}").into())),
        };
        let (point, items) = match service {
            Service::Table => table::Table::touched(operation, &body),
            Service::Queues | Service::Secrets | Service::Bucket => (operation.to_owned(), Vec::new()),
        };
        Ok(Self {
            service,
            operation: operation.to_owned(),
            body,
            bytes,
            subject: subject.finish(),
            point,
            items,
            bucket: None,
        })
    }
}

/// A summary of AWS's response: the number of items in it, or why the call failed.
fn outcome(status: u16, answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    if status != 200 {
        let kind = text("__type");
        return format!("{status} {} {}{}", kind.rsplit('#').next().unwrap_or(kind), text("message"), text("Message"));
    }
    let responses = answer["Responses"].as_array().into_iter().flatten();
    let errors: Vec<_> = responses.map(|one| one["Error"]["Code"].as_str().unwrap_or("ok")).collect();
    match &answer["Count"] {
        Value::Number(count) => format!("{count} items"),
        _ if errors.iter().any(|error| *error != "ok") => errors.join(", "),
        _ => "ok".to_owned(),
    }
}

fn broken() -> ConnectorError {
    ConnectorError::io("the simulation broke the connection".into())
}

fn bucket_response(answer: BucketAnswer) -> HttpResponse {
    let status = answer.status.try_into().expect("the simulation answers with valid statuses");
    let mut response = HttpResponse::new(status, SdkBody::from(answer.body));
    if let Some(tag) = answer.tag {
        response.headers_mut().insert("etag", tag);
    }
    response
}

fn response(status: u16, body: String) -> HttpResponse {
    let status = status.try_into().expect("the simulation answers with valid statuses");
    HttpResponse::new(status, SdkBody::from(body))
}
