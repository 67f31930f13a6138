#![doc = include_str!("../README.md")]

mod files;
mod operations;
mod refusal;
mod secret;
mod store;

use std::sync::Arc;

use http::{HeaderValue, Response, header::CONTENT_TYPE};
use hyper::body::Bytes;

pub use refusal::FileError;
pub use store::{Location, SecretStore};

use refusal::Refusal;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.1");

impl SecretStore {
    /// Responds to a request in Secrets Manager's protocol. `operation` is the part of `X-Amz-Target` after
    /// `secretsmanager.`. Acknowledged changes are on disk.
    pub async fn answer(self: &Arc<Self>, operation: &str, body: Bytes) -> Response<Bytes> {
        let store = Arc::clone(self);
        let operation = operation.to_owned();
        // Files are read and written on a blocking thread.
        let answered = tokio::task::spawn_blocking(move || operations::carry_out(&store, &operation, &body)).await;
        let (status, content) = match answered.unwrap_or(Err(Refusal::Panic)) {
            Ok(content) => (http::StatusCode::OK, content),
            Err(refusal) => {
                refusal.log();
                (refusal.status(), refusal.content())
            }
        };
        let mut response = Response::new(content.to_string().into());
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        response
    }
}
