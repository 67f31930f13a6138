//! The local AWS stand-ins, on a separate port and without checks of credentials.

use std::{net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::HeaderMap,
    response::Response,
};
use base::{SystemClock, SystemRandom};
use queue::Queues;
use secret_store::{Location, SecretStore};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The running server, and its folder of secrets.
pub struct Ours {
    pub url: String,
    _folder: TempDir,
}

/// Starts a server with no queues or secrets.
pub async fn start() -> Ours {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let [prefix, region, account] = ["", "us-east-1", "000000000000"].map(str::to_owned);
    let queues = Queues::new(&url, &region, &account, Arc::new(SystemClock), Arc::new(SystemRandom));
    let location = Location { folder: folder.path().to_owned(), prefix, region, account };
    let secrets = SecretStore::open(location, Arc::new(SystemClock), Arc::new(SystemRandom)).expect("an empty folder");
    let service = Router::new().fallback(answer).with_state((queues, Arc::new(secrets)));
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ours { url, _folder: folder }
}

async fn answer(
    State((queues, secrets)): State<(Queues, Arc<SecretStore>)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let answer = match target.split_once('.') {
        Some(("AmazonSQS", operation)) => queues.answer(operation, &body).await,
        Some(("secretsmanager", operation)) => secrets.answer(operation, body).await,
        _ => panic!("a call of another service: {target}"),
    };
    answer.map(Body::from)
}
