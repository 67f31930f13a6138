//! A small HTTP server whose responses can break off, stall, or be missing.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use url::Url;

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    _running: JoinSet<()>,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub path: String,
    headers: Vec<(String, String)>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answering {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
    sent: Option<usize>,
    silent: bool,
    pause: Option<Duration>,
}

impl Request {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.clone())
    }
}

impl Answering {
    /// 200 with a body.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: Some(200),
            headers: vec![],
            body: body.into(),
            chunked: false,
            sent: None,
            silent: false,
            pause: None,
        }
    }

    /// A response with this status and no body.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::ok("") }
    }

    /// A redirect.
    pub fn redirect(to: &str) -> Self {
        Self::status(302).with_header("location", to)
    }

    /// No response: closes the connection.
    pub fn nothing() -> Self {
        Self { status: None, ..Self::ok("") }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the body chunked, without a length.
    pub fn chunked(self) -> Self {
        Self { chunked: true, ..self }
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { sent: Some(bytes), ..self }
    }

    /// Sends nothing more after this many bytes of the body and keeps the connection open.
    pub fn silent_after(self, bytes: usize) -> Self {
        Self { sent: Some(bytes), silent: true, ..self }
    }
}

impl Answering {
    /// Sends the body byte by byte, with a pause before each.
    pub fn trickled(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }
}

impl Server {
    /// Starts a server.
    pub async fn start(answer: impl Fn(&Request) -> Answering + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let mut running = JoinSet::new();
        let noted = requests.clone();
        running.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let noted = noted.clone();
                let answer = answer.clone();
                connections.spawn(async move {
                    let _ = serve(stream, &noted, &*answer).await;
                });
            }
        });
        Self { address, requests, _running: running }
    }

    /// The URL of a path on the server.
    pub fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).expect("an address")
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no holder panics").clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    noted: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Answering + Send + Sync),
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let request = Request { path, headers };
    noted.lock().expect("no holder panics").push(request.clone());
    let answer = answer(&request);
    let Some(status) = answer.status else { return Ok(()) };
    let mut text = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n");
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    if answer.chunked {
        text += "Transfer-Encoding: chunked\r\n\r\n";
    } else {
        text += &format!("Content-Length: {}\r\n\r\n", answer.body.len());
    }
    stream.write_all(text.as_bytes()).await?;
    let end = answer.sent.unwrap_or(answer.body.len());
    for piece in answer.body[..end].chunks(if answer.pause.is_some() { 1 } else { 1024 }) {
        if let Some(pause) = answer.pause {
            base::pause(pause).await;
        }
        if answer.chunked {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        }
        stream.write_all(piece).await?;
        if answer.chunked {
            stream.write_all(b"\r\n").await?;
        }
    }
    if answer.chunked && answer.sent.is_none() {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await?;
    if answer.silent {
        std::future::pending::<()>().await;
    }
    Ok(())
}
