//! Invoking a function through the emulator, with Lambda's manners: a limit on concurrency, the function's time limit,
//! and an error when the process dies.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use deployment::Function;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode, body::Bytes};
use hyper_util::{
    client::legacy::{Client, Error as HttpError, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{
    sync::{Notify, Semaphore},
    time,
};

use crate::{processes::Supervised, workers};

/// How long an invocation may still be answered after its process died: the emulator may not have handed it out yet,
/// and then the next process takes it.
const GRACE: Duration = Duration::from_secs(1);

/// Invokes functions.
#[derive(Clone)]
pub struct Invoker {
    client: Client<HttpConnector, Full<Bytes>>,
    emulator: SocketAddr,
    functions: Arc<HashMap<String, Worker>>,
    bell: Arc<Notify>,
}

struct Worker {
    name: String,
    process: Supervised,
    slots: Arc<Semaphore>,
    time_limit: Duration,
    /// Whether it may have put something on a queue, of which the pump is then told.
    knows_a_queue: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// There is no such function.
    #[error("there is no function `{0}`")]
    Unknown(String),
    /// The function itself answered with an error.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The process died with the invocation.
    #[error("the function's process ended")]
    Died,
    /// The function took too long; its process is replaced, as Lambda would.
    #[error("the function did not answer within {0:?}")]
    TimedOut(Duration),
    /// The emulator cannot be reached.
    #[error("the Lambda emulator did not take the invocation")]
    Emulator(#[source] HttpError),
    /// The emulator's answer broke off.
    #[error("the Lambda emulator's answer broke off")]
    Answer(#[source] hyper::Error),
}

impl Invoker {
    /// An invoker of these functions, each with its running process.
    pub fn new(emulator: SocketAddr, functions: impl IntoIterator<Item = (Function, Supervised)>) -> Self {
        let functions = functions.into_iter().map(|(function, process)| {
            let worker = Worker {
                name: function.name.clone(),
                process,
                slots: Arc::new(Semaphore::new(workers::concurrency(&function.name))),
                time_limit: function.timeout,
                knows_a_queue: function.environment.contains_key("QUEUE_URL"),
            };
            (function.name, worker)
        });
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            emulator,
            functions: Arc::new(functions.collect()),
            bell: Arc::new(Notify::new()),
        }
    }

    /// Rings whenever there may be something new on a queue.
    pub fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// How often a function's process has died.
    pub fn deaths(&self, function: &str) -> u64 {
        self.functions.get(function).map_or(0, |worker| *worker.process.deaths.borrow())
    }

    /// Invokes a function and returns its answer. Waits its turn while the function is busy.
    ///
    /// The invocation goes on when the caller gives up, as on AWS; the emulator would otherwise end the worker.
    pub async fn invoke(&self, function: &str, event: impl Into<Bytes>) -> Result<Bytes, InvokeError> {
        let unknown = || InvokeError::Unknown(function.to_owned());
        let slots = Arc::clone(&self.functions.get(function).ok_or_else(unknown)?.slots);
        let slot = slots.acquire_owned().await.map_err(|_| unknown())?;
        let (invoker, function, event) = (self.clone(), function.to_owned(), event.into());
        let running = tokio::spawn(async move {
            let _slot = slot;
            invoker.run(&function, event).await
        });
        // A panic in there is a fault of ours, and reported where it happened.
        running.await.unwrap_or(Err(InvokeError::Died))
    }

    /// Lets running invocations end, and nothing new begin.
    pub async fn drain(&self) {
        for worker in self.functions.values() {
            let slots = workers::concurrency(&worker.name).try_into().unwrap_or(u32::MAX);
            if let Ok(slots) = worker.slots.acquire_many(slots).await {
                slots.forget();
            }
        }
    }

    async fn run(&self, function: &str, event: Bytes) -> Result<Bytes, InvokeError> {
        let worker = self.functions.get(function).ok_or_else(|| InvokeError::Unknown(function.to_owned()))?;
        let mut deaths = worker.process.deaths.clone();
        deaths.mark_unchanged();
        let answer = tokio::select! {
            answer = self.ask(function, event) => answer,
            () = async { let _ = deaths.changed().await; time::sleep(GRACE).await } => Err(InvokeError::Died),
            () = time::sleep(worker.time_limit) => {
                worker.process.restart();
                Err(InvokeError::TimedOut(worker.time_limit))
            }
        };
        if worker.knows_a_queue {
            self.bell.notify_one();
        }
        answer
    }

    async fn ask(&self, function: &str, event: Bytes) -> Result<Bytes, InvokeError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}/2015-03-31/functions/{function}/invocations", self.emulator))
            .body(Full::new(event))
            .expect("an address and a name from the template make a request");
        let answer = self.client.request(request).await.map_err(InvokeError::Emulator)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(InvokeError::Answer)?.to_bytes();
        match status {
            StatusCode::OK => Ok(body),
            _ => Err(InvokeError::Failed(String::from_utf8_lossy(&body).into_owned())),
        }
    }
}
