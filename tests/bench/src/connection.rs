//! A persistent HTTP connection with little overhead.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, StatusCode, Uri,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::HOST,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The result of a client that runs as a task.
pub type TaskResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Converts a task's error into a string, which can be returned outside a task.
pub fn in_words(error: Box<dyn Error + Send + Sync>) -> String {
    error.to_string()
}

/// The timeout for a response.
const LIMIT: Duration = Duration::from_secs(60);

/// An open connection to one server.
pub struct Connection {
    server: String,
    sender: SendRequest<Full<Bytes>>,
}

/// A response, and how long it took.
pub struct TimedResponse {
    pub status: StatusCode,
    pub body: Bytes,
    /// The time from the first byte sent to the last byte received.
    pub time: Duration,
}

/// A request's headers.
pub type Headers<'a> = &'a [(&'a str, &'a str)];

impl Connection {
    /// Connects to the server at this address.
    pub async fn open(address: &str) -> TaskResult<Self> {
        let address: Uri = address.parse()?;
        let server = address.authority().ok_or("the address has no host")?.to_string();
        let stream = TcpStream::connect(&server).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { server, sender })
    }

    /// Posts a body, and reads the whole response.
    pub async fn post(
        &mut self,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> TaskResult<TimedResponse> {
        let mut request = Request::post(path).header(HOST, &self.server);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into()))?;
        let began = Instant::now();
        let answer = async {
            self.sender.ready().await?;
            let answer = self.sender.send_request(request).await?;
            let status = answer.status();
            Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(LIMIT, answer).await??;
        Ok(TimedResponse { status, body, time: began.elapsed() })
    }
}
