//! Events that invoke a function, and results of their handlers.

use std::{error::Error, future, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use lambda_runtime::LambdaEvent;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::{RawValue, to_raw_value};
use tracing::Instrument;

use base::trace::{LambdaTrace, Trace};
use base::{SharedRandom, logging};

/// A handler of events for the runtime: JSON in, JSON out.
pub(crate) type EventHandler = dyn Fn(LambdaEvent<Box<RawValue>>) -> BoxFuture<'static, Result<Box<RawValue>, lambda_runtime::Error>>
    + Send
    + Sync;

/// A schedule's event, with any content.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled;

impl<'de> Deserialize<'de> for Scheduled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// An event with the span of its handling, for a handler that continues the trace of the invocation.
#[derive(Debug)]
pub struct Traced<E> {
    /// The event.
    pub event: E,
    /// The span.
    pub trace: Trace,
}

/// The type in which a handler receives an event.
pub trait FromInvocation: Sized {
    /// Reads an invocation's event.
    fn read(event: &RawValue, trace: Trace) -> serde_json::Result<Self>;
}

impl<E: DeserializeOwned> FromInvocation for E {
    fn read(event: &RawValue, _: Trace) -> serde_json::Result<Self> {
        serde_json::from_str(event.get())
    }
}

impl<E: DeserializeOwned> FromInvocation for Traced<E> {
    fn read(event: &RawValue, trace: Trace) -> serde_json::Result<Self> {
        Ok(Self { event: serde_json::from_str(event.get())?, trace })
    }
}

/// The result of an event's handler.
pub trait EventResult {
    /// The result for Lambda: JSON, or an error as a sentence with its causes.
    fn into_response(self) -> Result<Box<RawValue>, lambda_runtime::Error>;
}

impl<R: Serialize, X: Error + 'static> EventResult for Result<R, X> {
    fn into_response(self) -> Result<Box<RawValue>, lambda_runtime::Error> {
        match self {
            Ok(value) => Ok(to_raw_value(&value)?),
            Err(error) => {
                let error = logging::chain(&error);
                tracing::error!(error, "an event could not be handled");
                Err(error.into())
            }
        }
    }
}

/// Turns a handler of typed events into one for the runtime.
pub(crate) fn event_handler<S, E, A>(
    state: &'static S,
    random: SharedRandom,
    handler: impl Fn(&'static S, E) -> A + Send + Sync + 'static,
) -> Arc<EventHandler>
where
    S: Sync,
    E: FromInvocation,
    A: Future<Output: EventResult> + Send + 'static,
{
    Arc::new(move |LambdaEvent { payload, context }| {
        let lambda = context.xray_trace_id.as_deref().and_then(LambdaTrace::parse);
        let trace = Trace::of_invocation(lambda, &*random);
        let span = logging::call_span(&context.request_id, &trace, lambda);
        match E::read(&payload, trace) {
            Ok(event) => handler(state, event).map(EventResult::into_response).instrument(span).boxed(),
            Err(error) => {
                span.in_scope(|| tracing::error!(%error, "an event could not be read"));
                future::ready(Err(error.into())).boxed()
            }
        }
    })
}

/// Whether an event came over HTTP, in which case it has a request context.
pub(crate) fn is_request(event: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        #[serde(rename = "requestContext")]
        request_context: Option<IgnoredAny>,
    }
    serde_json::from_str::<Marked>(event.get()).is_ok_and(|marked| marked.request_context.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_with_a_request_context_is_a_request() {
        for (event, http) in [
            (include_str!("../../../events/publish-event.json"), true),
            (include_str!("../../../events/sweep-deliveries.json"), false),
            ("{}", false),
            ("null", false),
            (r#""text""#, false),
            (r#"{"requestContext": null}"#, false),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(event).expect("JSON");
            assert_eq!((is_request(&raw), gate::event::request(raw.get()).is_ok()), (http, http), "{event}");
            assert!(http || serde_json::from_str::<Scheduled>(raw.get()).is_ok(), "{event}");
        }
    }
}
