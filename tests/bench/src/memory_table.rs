//! A table that answers from memory: a repeated request gets the answer of its first time. So a function can be
//! measured that reads from its table, without the table.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, RwLock},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode},
    response::{IntoResponse, Response},
};
use tokio::net::TcpListener;

/// The header that says what is asked for, which is part of the question.
const OPERATION: HeaderName = HeaderName::from_static("x-amz-target");

pub struct MemoryTable {
    /// Where a function finds it.
    pub address: String,
}

/// An answer, by operation and request.
type Known = RwLock<HashMap<(String, Bytes), (StatusCode, HeaderMap, Bytes)>>;

struct Behind {
    table: String,
    client: reqwest::Client,
    known: Known,
}

impl MemoryTable {
    /// Starts one on a free port, before the table of this address.
    pub async fn before(table: &str) -> Result<Self, Box<dyn Error>> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let behind = Arc::new(Behind { table: table.to_owned(), client, known: Known::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let router = Router::new().fallback(answer).with_state(behind);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address })
    }
}

async fn answer(State(behind): State<Arc<Behind>>, headers: HeaderMap, request: Bytes) -> Response {
    let operation = headers.get(OPERATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let question = (operation.to_owned(), request);
    let known = behind.known.read().expect("no holder panics").get(&question).cloned();
    match known {
        Some(known) => known.into_response(),
        None => match ask(&behind, headers, question.1.clone()).await {
            Ok(answer) => {
                behind.known.write().expect("no holder panics").insert(question, answer.clone());
                answer.into_response()
            }
            Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        },
    }
}

async fn ask(behind: &Behind, headers: HeaderMap, request: Bytes) -> reqwest::Result<(StatusCode, HeaderMap, Bytes)> {
    let answer = behind.client.post(&behind.table).headers(headers).body(request).send().await?;
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove("transfer-encoding");
    Ok((status, headers, answer.bytes().await?))
}
