//! The server for queues and secrets, a stand-in for SQS and Secrets Manager. It forwards S3 requests if geo-IP
//! databases are published in a bucket.

mod s3;

pub use s3::S3;

use std::{io, sync::Arc};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse, Response},
    serve::ListenerExt,
};
use queue::Queues;
use secret_store::SecretStore;
use tokio::net::TcpListener;

use crate::callers::{self, Callers};

/// The maximum size of a request in bytes: an SQS batch of 1 MiB, where JSON may escape one byte as six.
const MAX_REQUEST: usize = 8 * 1024 * 1024;

/// The services behind the server.
#[derive(Clone)]
pub struct Services {
    pub queues: Queues,
    pub secrets: Arc<SecretStore>,
    /// The S3 of another server, if there is one.
    pub s3: Option<S3>,
}

/// Responds to authenticated requests until the process ends.
pub async fn serve(listener: TcpListener, services: Services, callers: Callers) -> io::Result<()> {
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let service = Router::new()
        .fallback(answer)
        .layer(middleware::from_fn_with_state(callers, callers::with_credentials))
        .with_state(services);
    axum::serve(listener, service).await
}

/// Responds to a request. A header contains the service and the operation; S3 requests lack this header.
async fn answer(State(services): State<Services>, request: Request) -> Response {
    let Services { queues, secrets, s3 } = services;
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()).map(str::to_owned);
    let Some(target) = target else {
        return match s3 {
            Some(s3) => s3.pass(request).await,
            None => (StatusCode::NOT_FOUND, "There is no S3 on one machine.").into_response(),
        };
    };
    let Ok(body) = to_bytes(request.into_body(), MAX_REQUEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match target.split_once('.') {
        Some(("AmazonSQS", operation)) => queues.answer(operation, &body).await.map(Body::from),
        Some(("secretsmanager", operation)) => secrets.answer(operation, body).await.map(Body::from),
        _ => {
            let unknown = r#"{"__type":"UnknownOperationException"}"#;
            (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/x-amz-json-1.1")], unknown).into_response()
        }
    }
}
