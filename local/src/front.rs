//! One address for all services but the table: calls of queues are answered here, and everything else goes on to
//! ministack.

use std::net::SocketAddr;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
    serve::ListenerExt,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::net::TcpListener;

use crate::queues::{self, Queues};

/// More than the largest batch of messages takes as JSON.
const MAX_QUEUE_CALL: usize = 8 * 1024 * 1024;

#[derive(Clone)]
struct Front {
    address: String,
    queues: Queues,
    ministack: SocketAddr,
    client: Client<HttpConnector, Body>,
}

/// Answers until the process ends.
pub async fn serve(listener: TcpListener, queues: Queues, ministack: SocketAddr) -> std::io::Result<()> {
    let address = format!("http://{}", listener.local_addr()?);
    let client = Client::builder(TokioExecutor::new()).build_http();
    let service = Router::new().fallback(handle).with_state(Front { address, queues, ministack, client });
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    axum::serve(listener, service).await
}

async fn handle(State(front): State<Front>, request: Request) -> Response {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
    let Some(operation) = target.and_then(|target| target.strip_prefix("AmazonSQS.")) else {
        return front.forward(request).await;
    };
    let (operation, path) = (operation.to_owned(), request.uri().path().to_owned());
    match to_bytes(request.into_body(), MAX_QUEUE_CALL).await {
        Ok(body) => queues::answer(&front.queues, &front.address, &path, &operation, &body).await,
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

impl Front {
    async fn forward(&self, mut request: Request) -> Response {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("http://{}{path}", self.ministack).parse::<Uri>() else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        *request.uri_mut() = uri;
        match self.client.request(request).await {
            Ok(answer) => answer.into_response(),
            // It dies, and comes again; clients try again.
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }
}
