//! Invoking functions as Lambda does: with a concurrency limit and the function's timeout, and with an error if the
//! process dies.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::body::Bytes;
use base::SharedClock;
use template::Function;
use tokio::{sync::Semaphore, time};

use crate::{
    function_processes,
    processes::Supervised,
    runtime_api::{Caller, Event, Failure, RuntimeApi},
};

#[derive(Clone)]
pub struct Invoker {
    runtime_api: RuntimeApi,
    clock: SharedClock,
    functions: Arc<HashMap<String, Worker>>,
}

struct Worker {
    process: Supervised,
    /// The number of permits, so that a shutdown can acquire all of them.
    concurrency: usize,
    permits: Arc<Semaphore>,
    time_limit: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    #[error("there is no function `{0}`")]
    Unknown(String),
    /// The function reported an error.
    #[error("the function failed: {0}")]
    Failed(String),
    /// The process died during the invocation.
    #[error("the function's process ended")]
    Died,
    /// The function timed out; as on Lambda, its process is replaced.
    #[error("the function did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Invoker {
    /// An invoker for these functions, each with its process.
    pub fn new(
        runtime_api: RuntimeApi,
        clock: SharedClock,
        functions: impl IntoIterator<Item = (Function, Supervised)>,
    ) -> Self {
        let functions = functions.into_iter().map(|(function, process)| {
            let concurrency = function_processes::concurrency(&function);
            let worker = Worker {
                process,
                concurrency,
                permits: Arc::new(Semaphore::new(concurrency)),
                time_limit: function.timeout,
            };
            (function.name, worker)
        });
        Self { runtime_api, clock, functions: Arc::new(functions.collect()) }
    }

    /// Whether a function with this name exists.
    pub fn knows(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    /// How often a function's process has died.
    pub fn deaths(&self, function: &str) -> u64 {
        self.functions.get(function).map_or(0, |worker| *worker.process.deaths.borrow())
    }

    /// Invokes a function and returns its response. If the function is busy, waits for a permit.
    ///
    /// As on AWS, the invocation continues if the caller gives up, but the function can ask whether it has.
    pub async fn invoke(&self, function: &str, event: impl Into<Bytes>) -> Result<Bytes, InvokeError> {
        self.invoke_traced(function, event, None).await
    }

    /// Invokes a function with the event's trace, in the format of `X-Amzn-Trace-Id`.
    pub async fn invoke_traced(
        &self,
        function: &str,
        event: impl Into<Bytes>,
        trace: Option<String>,
    ) -> Result<Bytes, InvokeError> {
        let unknown = || InvokeError::Unknown(function.to_owned());
        let permits = Arc::clone(&self.functions.get(function).ok_or_else(unknown)?.permits);
        let permit = permits.acquire_owned().await.map_err(|_| unknown())?;
        let invoker = self.clone();
        let function = function.to_owned();
        // If the caller gives up, this future is dropped, and the caller with it.
        let caller = Caller::default();
        let event = Event { content: event.into(), trace, caller: caller.presence() };
        let running = tokio::spawn(async move {
            let _permit = permit;
            invoker.run(&function, event).await
        });
        // The panic hook reports a panic in the task.
        running.await.unwrap_or(Err(InvokeError::Died))
    }

    /// Waits for running invocations, and prevents new ones.
    pub async fn drain(&self) {
        for worker in self.functions.values() {
            let all = worker.concurrency.try_into().unwrap_or(u32::MAX);
            if let Ok(permits) = worker.permits.acquire_many(all).await {
                permits.forget();
            }
        }
    }

    async fn run(&self, function: &str, event: Event) -> Result<Bytes, InvokeError> {
        let worker = self.functions.get(function).ok_or_else(|| InvokeError::Unknown(function.to_owned()))?;
        let _use = worker.process.want();
        let deadline = self.clock.now() + worker.time_limit;
        let invoked = self.runtime_api.invoke(function, event, deadline);
        match time::timeout(worker.time_limit, invoked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Failure::Error(error))) => Err(InvokeError::Failed(String::from_utf8_lossy(&error).into_owned())),
            Ok(Err(Failure::Died)) => Err(InvokeError::Died),
            Err(_) => {
                worker.process.restart();
                Err(InvokeError::TimedOut(worker.time_limit))
            }
        }
    }
}
