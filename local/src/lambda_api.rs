//! Lambda's `Invoke`, for tests, `aws lambda invoke` and `cargo lambda invoke`, and for events that nothing triggers
//! here, such as those from the event bus.
//! <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>

use std::time::Duration;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, HeaderName, StatusCode},
    middleware,
    response::{IntoResponse, Response},
    routing::post,
};
use base::logging;
use tokio::{net::TcpListener, time};

use crate::{
    callers::{self, Callers},
    invoke::{InvokeError, Invoker},
};

/// Lambda's limit on the size of an event.
const MAX_EVENT: usize = 6 * 1024 * 1024;

/// The delays before Lambda's two retries of an asynchronous event. On AWS, the delays are one and two minutes, and
/// events survive any failure.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];

/// Responds to authenticated requests until the process ends.
pub async fn serve(listener: TcpListener, invoker: Invoker, callers: Callers) -> std::io::Result<()> {
    let service = Router::new()
        .route("/2015-03-31/functions/{function}/invocations", post(invoke))
        .layer(DefaultBodyLimit::max(MAX_EVENT))
        .layer(middleware::from_fn_with_state(callers, callers::with_credentials))
        .with_state(invoker);
    axum::serve(listener, service).await
}

async fn invoke(
    State(invoker): State<Invoker>,
    Path(function): Path<String>,
    headers: HeaderMap,
    event: Bytes,
) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let kind = header("x-amz-invocation-type");
    let trace = header("x-amzn-trace-id").map(str::to_owned);
    match kind.unwrap_or("RequestResponse") {
        "RequestResponse" => answer(&invoker, &function, event, trace).await,
        "DryRun" | "Event" if !invoker.knows(&function) => {
            (StatusCode::NOT_FOUND, InvokeError::Unknown(function).to_string()).into_response()
        }
        "DryRun" => StatusCode::NO_CONTENT.into_response(),
        "Event" => {
            tokio::spawn(until_it_succeeds(invoker, function, event, trace));
            StatusCode::ACCEPTED.into_response()
        }
        kind => (StatusCode::BAD_REQUEST, format!("there is no invocation type `{kind}`")).into_response(),
    }
}

async fn answer(invoker: &Invoker, function: &str, event: Bytes, trace: Option<String>) -> Response {
    match invoker.invoke_traced(function, event, trace).await {
        Ok(answer) => answer.into_response(),
        // As on AWS, invoking a function that fails still succeeds, and a header reports the failure.
        Err(InvokeError::Failed(error)) => {
            ([(HeaderName::from_static("x-amz-function-error"), "Unhandled")], error).into_response()
        }
        Err(error @ InvokeError::Unknown(_)) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, logging::chain(&error)).into_response(),
    }
}

/// Invokes a function asynchronously, at most three times.
async fn until_it_succeeds(invoker: Invoker, function: String, event: Bytes, trace: Option<String>) {
    let mut delays = RETRY_DELAYS.into_iter();
    while let Err(error) = invoker.invoke_traced(&function, event.clone(), trace.clone()).await {
        let Some(delay) = delays.next() else {
            return tracing::warn!("{function} failed for the last time: {}", logging::chain(&error));
        };
        time::sleep(delay).await;
    }
}
