//! The minimal part of Lambda's Runtime API that a function needs, with little overhead.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    routing::{get, post},
};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};

/// The id that every request has, since invocations never overlap.
const REQUEST_ID: &str = "8476a536-e9f4-11e8-9739-2dfe598c3fcd";

/// A server for one function.
pub struct RuntimeApi {
    /// The address that the function polls.
    pub address: SocketAddr,
    events: mpsc::Sender<String>,
    answers: mpsc::Receiver<Bytes>,
}

struct Ends {
    events: Mutex<mpsc::Receiver<String>>,
    answers: mpsc::Sender<Bytes>,
}

impl RuntimeApi {
    /// Starts a server on a free port.
    pub async fn start() -> std::io::Result<Self> {
        let (events, events_end) = mpsc::channel(1);
        let (answers_end, answers) = mpsc::channel(1);
        let ends = Arc::new(Ends { events: Mutex::new(events_end), answers: answers_end });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answer))
            .with_state(ends);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, events, answers })
    }

    /// Passes an event to the function on its next poll, and waits for the response.
    pub async fn invoke(&mut self, event: &str) -> Option<Bytes> {
        self.events.send(event.to_owned()).await.ok()?;
        self.answers.recv().await
    }
}

async fn next(State(ends): State<Arc<Ends>>) -> (StatusCode, HeaderMap, String) {
    let Some(event) = ends.events.lock().await.recv().await else {
        return (StatusCode::GONE, HeaderMap::new(), String::new());
    };
    let headers = [
        ("lambda-runtime-aws-request-id", REQUEST_ID),
        ("lambda-runtime-deadline-ms", "4102444800000"),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:bench"),
        ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0"),
    ];
    let headers = headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    (StatusCode::OK, headers.into_iter().collect(), event)
}

async fn answer(State(ends): State<Arc<Ends>>, body: Bytes) -> StatusCode {
    // If the bench has given up, no receiver is waiting for the response; this is not the function's fault.
    drop(ends.answers.send(body).await);
    StatusCode::ACCEPTED
}
