//! A receiver of webhooks on plain TCP, so that it can misbehave in ways that no HTTP library offers. What it does
//! with a request is set by path; what it received is kept.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{Behaviour, LONG, until};

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The verb.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names as they were written, in their order.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// When it was complete.
    pub at: Instant,
}

impl Received {
    /// A header's value, or nothing; a header that came twice is a fault.
    pub fn header(&self, name: &str) -> &str {
        let mut values =
            self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next().map_or("", String::as_str);
        assert!(values.next().is_none(), "the header {name} came twice: {self:?}");
        first
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("what is delivered is JSON")
    }
}

/// A listening receiver; it stops when it is dropped.
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    scripts: Mutex<HashMap<String, Vec<Behaviour>>>,
    received: Mutex<Vec<Received>>,
}

impl Receiver {
    /// A receiver on a free port, which answers 404 until it is told otherwise.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                // A client that goes away in mid exchange is what many tests are about.
                tokio::spawn(async move { drop(state.serve(stream).await) });
            }
        });
        Self { address, state, accepting }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What to do with requests to a path, one behaviour after the other; the last one stays.
    pub fn on(&self, path: &str, script: impl Into<Vec<Behaviour>>) -> String {
        locked(&self.state.scripts).insert(path.to_owned(), script.into());
        self.url(path)
    }

    /// What has come to a path so far.
    pub fn received(&self, path: &str) -> Vec<Received> {
        locked(&self.state.received).iter().filter(|received| received.path == path).cloned().collect()
    }

    /// Everything that has come so far.
    pub fn everything(&self) -> Vec<Received> {
        locked(&self.state.received).clone()
    }

    /// Waits until at least so many requests have come to a path.
    pub async fn until(&self, path: &str, count: usize) -> Vec<Received> {
        until(&format!("{count} requests to {path}"), LONG, async || {
            Some(self.received(path)).filter(|received| received.len() >= count)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let received = read(&mut stream).await?;
            let behaviour = self.next_behaviour(&received.path);
            locked(&self.received).push(received);
            if !behaviour.act(stream.get_mut()).await? {
                return Ok(());
            }
        }
    }

    fn next_behaviour(&self, path: &str) -> Behaviour {
        let mut scripts = locked(&self.scripts);
        match scripts.get_mut(path) {
            Some(script) if script.len() > 1 => script.remove(0),
            Some(script) => script.first().cloned().unwrap_or_else(Behaviour::close),
            None => Behaviour::status(404),
        }
    }
}

/// A test that panics must not take the others' reports with it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Received> {
    let request_line = line(stream).await?;
    let mut words = request_line.split(' ').map(str::to_owned);
    let (Some(method), Some(path), Some(_)) = (words.next(), words.next(), words.next()) else {
        // TLS, for one.
        return Err(not_http());
    };
    let mut headers = Vec::new();
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(not_http)?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut received = Received { method, path, headers, body: Vec::new(), at: Instant::now() };
    received.body = match received.header("content-length").parse() {
        Ok(length) => exactly(stream, length).await?,
        Err(_) if received.header("transfer-encoding").eq_ignore_ascii_case("chunked") => chunks(stream).await?,
        Err(_) => Vec::new(),
    };
    received.at = Instant::now();
    Ok(received)
}

fn not_http() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not HTTP")
}

async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(65_536).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = String::from_utf8(line).map_err(|_| not_http())?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn exactly(stream: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

async fn chunks(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let length = usize::from_str_radix(&line(stream).await?, 16).map_err(|_| not_http())?;
        body.extend(exactly(stream, length).await?);
        line(stream).await?;
        if length == 0 {
            return Ok(body);
        }
    }
}
