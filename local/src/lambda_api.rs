//! Lambda's own `Invoke`, for tests and `cargo lambda invoke`: the emulator's would let a client that hangs up end a
//! worker, so this one goes the invoker's way.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderName, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use shared::logging;
use tokio::net::TcpListener;

use crate::invoke::{InvokeError, Invoker};

/// Lambda's limit on an event.
const MAX_EVENT: usize = 6 * 1024 * 1024;

/// Answers until the process ends.
pub async fn serve(listener: TcpListener, invoker: Invoker) -> std::io::Result<()> {
    let service = Router::new()
        .route("/2015-03-31/functions/{function}/invocations", post(invoke))
        .layer(DefaultBodyLimit::max(MAX_EVENT))
        .with_state(invoker);
    axum::serve(listener, service).await
}

async fn invoke(State(invoker): State<Invoker>, Path(function): Path<String>, event: Bytes) -> Response {
    match invoker.invoke(&function, event).await {
        Ok(answer) => answer.into_response(),
        // As on AWS, a function's failure is a success of the invocation, told by a header.
        Err(InvokeError::Failed(error)) => {
            ([(HeaderName::from_static("x-amz-function-error"), "Unhandled")], error).into_response()
        }
        Err(error @ InvokeError::Unknown(_)) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, logging::chain(&error)).into_response(),
    }
}
