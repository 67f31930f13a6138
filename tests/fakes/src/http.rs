//! HTTP over plain TCP, so that a fake can misbehave in ways that no HTTP library allows, and see every byte that it
//! receives.

use std::{io, sync::Arc, time::Instant};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::Behaviour;

/// A request that a fake received.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path, including the query.
    pub path: String,
    /// The header names as sent, in order.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// When the complete request had been received.
    pub at: Instant,
}

impl Received {
    /// A header's value, or an empty string; panics if the header is repeated.
    pub fn header(&self, name: &str) -> &str {
        let mut values =
            self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next().map_or("", String::as_str);
        assert!(values.next().is_none(), "the header {name} came twice: {self:?}");
        first
    }

    /// The body, parsed as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

/// Responds to every request until the task is aborted.
pub(crate) fn serve<A>(listener: TcpListener, answer: A) -> JoinHandle<()>
where
    A: Fn(Received) -> Behaviour + Send + Sync + 'static,
{
    serve_counted(listener, || {}, answer)
}

/// Responds to every request until the task is aborted, and calls a function for every connection.
pub(crate) fn serve_counted<C, A>(listener: TcpListener, connected: C, answer: A) -> JoinHandle<()>
where
    C: Fn() + Send + 'static,
    A: Fn(Received) -> Behaviour + Send + Sync + 'static,
{
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connected();
            let answer = Arc::clone(&answer);
            // Many tests make a client disappear during an exchange.
            tokio::spawn(async move { drop(converse(stream, answer.as_ref()).await) });
        }
    })
}

async fn converse(stream: TcpStream, answer: &(impl Fn(Received) -> Behaviour + Sync)) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let received = read(&mut stream).await?;
        let behaviour = answer(received);
        if !behaviour.act(stream.get_mut()).await? {
            return Ok(());
        }
    }
}

pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Received> {
    let request_line = line(stream).await?;
    let mut words = request_line.split(' ').map(str::to_owned);
    let (Some(method), Some(path), Some(_)) = (words.next(), words.next(), words.next()) else {
        // The bytes may be TLS, for example.
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
