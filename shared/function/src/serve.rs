//! Serves an endpoint through the gate, events, or both.
//!
//! A function's state is leaked, since it lives as long as the process, so handlers can borrow it without cloning.
//! Handlers are trait objects and the runtime's futures are boxed, so that the runtime is compiled once, here, rather
//! than in each function: the compiler generates the code of an `async fn` in the crate that polls its future.

use std::sync::Arc;

use futures::{FutureExt, future::LocalBoxFuture};
use lambda_http::RequestExt;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Scheduled, Service, StartError,
    events::{EventHandler, EventResult, FromInvocation, event_handler, is_request},
};
use gate::{Admitted, Endpoint, Gate, Reply, endpoint::Declaration, event, gate::Handler};
use problem::Problem;

impl Service {
    /// Serves an endpoint until Lambda ends the process.
    pub async fn serve<S, C, A>(
        &self,
        endpoint: Endpoint<C>,
        state: S,
        handler: impl Fn(&'static S, C) -> A + Send + Sync + 'static,
    ) -> Result<(), StartError>
    where
        S: Sync + 'static,
        C: Admitted,
        A: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let gate = self.gate(endpoint.declaration(), boxed(leaked(state), handler)).await;
        run(request_handler(gate)).await
    }

    /// Serves events until Lambda ends the process: batches of a queue, an event bus, a schedule, Secrets Manager.
    /// Lambda or the sender retries after a failure.
    pub async fn serve_events<S, E, A>(
        &self,
        state: S,
        handler: impl Fn(&'static S, E) -> A + Send + Sync + 'static,
    ) -> Result<(), StartError>
    where
        S: Sync + 'static,
        E: FromInvocation,
        A: Future<Output: EventResult> + Send + 'static,
    {
        run(event_handler(leaked(state), self.random(), handler)).await
    }

    /// Serves an endpoint, and a schedule's events, until Lambda ends the process. An event with a request context came
    /// over HTTP; all others belong to the schedule, and IAM controls who may send them.
    pub async fn serve_with_schedule<S, C, A, B>(
        &self,
        endpoint: Endpoint<C>,
        state: S,
        handler: impl Fn(&'static S, C) -> A + Send + Sync + 'static,
        job: impl Fn(&'static S, Scheduled) -> B + Send + Sync + 'static,
    ) -> Result<(), StartError>
    where
        S: Sync + 'static,
        C: Admitted,
        A: Future<Output = Result<Reply, Problem>> + Send + 'static,
        B: Future<Output: EventResult> + Send + 'static,
    {
        let state = leaked(state);
        let gate = self.gate(endpoint.declaration(), boxed(state, handler)).await;
        run(requests_or(request_handler(gate), event_handler(state, self.random(), job))).await
    }

    /// An endpoint's gate. Its verifier is warm if the endpoint reads tokens.
    fn gate(&self, endpoint: Declaration, handler: Box<Handler>) -> LocalBoxFuture<'_, Arc<Gate>> {
        let gate = Gate {
            endpoint,
            handler,
            tokens: self.tokens(),
            clock: self.clock(),
            random: self.random(),
            base_url: self.settings().base_url.as_str().into(),
            environment: self.settings().environment.clone(),
        };
        async move {
            if endpoint.access.reads_tokens() {
                gate.tokens.warm_up().await;
            }
            Arc::new(gate)
        }
        .boxed_local()
    }
}

/// Turns a typed handler into the gate's.
fn boxed<S, C, A>(state: &'static S, handler: impl Fn(&'static S, C) -> A + Send + Sync + 'static) -> Box<Handler>
where
    S: Sync,
    C: Admitted,
    A: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    Box::new(move |call, entity| match C::admit(call, entity) {
        Ok(admitted) => handler(state, admitted).boxed(),
        Err(problem) => std::future::ready(Err(problem)).boxed(),
    })
}

fn leaked<S>(state: S) -> &'static S {
    Box::leak(Box::new(state))
}

fn run(handler: Arc<EventHandler>) -> LocalBoxFuture<'static, Result<(), StartError>> {
    let serve = move |event: LambdaEvent<Box<RawValue>>| handler(event);
    async move { lambda_runtime::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime) }.boxed_local()
}

/// Passes events that came over HTTP to one handler, and all others to the schedule's handler.
fn requests_or(requests: Arc<EventHandler>, schedule: Arc<EventHandler>) -> Arc<EventHandler> {
    Arc::new(move |event| if is_request(&event.payload) { requests(event) } else { schedule(event) })
}

/// Passes the request in an event to the gate.
fn request_handler(gate: Arc<Gate>) -> Arc<EventHandler> {
    Arc::new(move |LambdaEvent { payload, context }| {
        let gate = gate.clone();
        async move {
            let request = event::request(payload.get())
                .inspect_err(|error| tracing::error!(%error, "an HTTP event could not be read"))?;
            drop(payload);
            let response = gate.handle(request.with_lambda_context(context)).await;
            Ok(to_raw_value(&event::response(response))?)
        }
        .boxed()
    })
}
