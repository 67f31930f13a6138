//! The wire: AWS JSON 1.0, as every SDK speaks it.

use http::{Response, StatusCode};
use hyper::body::Bytes;

use crate::Queues;

impl Queues {
    /// Answers an operation by its name (`SendMessage`: the header `X-Amz-Target` without `AmazonSQS.`) and the request's body.
    /// The response has status, `Content-Type`, `x-amzn-query-error` if it is an error, and the body. A `ReceiveMessage` may
    /// take as long as its `WaitTimeSeconds`; dropping the future ends the wait, and takes no message.
    pub async fn answer(&self, _operation: &str, _body: &[u8]) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from_static(b"{}"));
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        response
    }
}
