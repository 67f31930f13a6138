//! A receiver's behaviour after it has read a request: a short script of steps that can express any misbehaviour.

use std::{
    io::{self, Write},
    sync::LazyLock,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::watch, time};

/// A single step of a behaviour.
#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>),
    /// Writes the same bytes repeatedly, with a pause after each.
    Repeat(Vec<u8>, Duration),
    Pause(Duration),
    /// Waits until a test opens its gate.
    Gate(watch::Receiver<bool>),
    /// Keeps the connection open silently until the other side closes it.
    Hang,
    /// Shuts down the sending side and continues to read.
    HalfClose,
    /// Closes the connection with RST instead of FIN.
    Reset,
}

/// A gate that behaviours wait at until the test opens or drops it. A request thus lasts as long as the test needs, no
/// matter how slow the machine is, but the service's timeout still applies.
#[derive(Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A gate that is closed.
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets the waiting behaviours and all later ones proceed.
    pub fn open(&self) {
        self.0.send_replace(true);
    }
}

/// A receiver's behaviour for one request.
#[derive(Debug, Clone)]
pub struct Behaviour {
    steps: Vec<Step>,
    /// Whether the connection is kept for another request.
    keeps_alive: bool,
}

impl Behaviour {
    /// Sends a status, headers and a body, as a well-behaved receiver would.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let head = format!("{}{length}\r\n", head(status, headers));
        Self { steps: vec![Step::Write([head.as_bytes(), body].concat())], keeps_alive: true }
    }

    /// Sends a status without headers or body.
    pub fn status(status: u16) -> Self {
        Self::answer(status, &[], "")
    }

    /// Sends these bytes, then ends the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of([Step::Write(bytes.into())])
    }

    /// Never responds.
    pub fn hang() -> Self {
        Self::of([Step::Hang])
    }

    /// Ends the connection without a response.
    pub fn close() -> Self {
        Self::of([])
    }

    /// Resets the connection without a response.
    pub fn reset() -> Self {
        Self::of([Step::Reset])
    }

    /// Sends a chunked body.
    pub fn chunked(status: u16, chunks: &[&[u8]]) -> Self {
        let mut bytes = format!("{}Transfer-Encoding: chunked\r\n\r\n", head(status, &[])).into_bytes();
        for chunk in chunks.iter().chain([&&b""[..]]) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(*chunk);
            bytes.extend(b"\r\n");
        }
        Self { steps: vec![Step::Write(bytes)], keeps_alive: true }
    }

    /// Sends an endless body as fast as it is read.
    pub fn endless_body(status: u16) -> Self {
        let head = format!("{}\r\n", head(status, &[("Connection", "close")]));
        Self::of([Step::Write(head.into()), Step::Repeat(vec![b'x'; 65_536], Duration::ZERO)])
    }

    /// Sends a body with a known length byte by byte.
    pub fn trickled_body(status: u16, pause: Duration) -> Self {
        let head = format!("{}Content-Length: 4000\r\n\r\n", head(status, &[]));
        Self::of([Step::Write(head.into()), Step::Repeat(b"x".to_vec(), pause)])
    }

    /// Sends a body that is shorter than announced.
    pub fn truncated_body(status: u16) -> Self {
        Self::raw(format!("{}Content-Length: 4000\r\n\r\nonly this", head(status, &[])))
    }

    /// Sends the beginning of a body, then nothing more.
    pub fn stalled_body(status: u16, body: &[u8], sent: usize) -> Self {
        let head = format!("{}Content-Length: {}\r\n\r\n", head(status, &[]), body.len());
        Self::of([Step::Write([head.as_bytes(), &body[..sent]].concat()), Step::Hang])
    }

    /// Sends a compressed body of 100 KB that expands to 100 MB.
    pub fn gzip_bomb(status: u16) -> Self {
        static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            let zeros = vec![0; 1 << 20];
            for _ in 0..100 {
                packed.write_all(&zeros).expect("memory takes everything");
            }
            packed.finish().expect("memory takes everything")
        });
        Self::answer(status, &[("Content-Encoding", "gzip"), ("Content-Type", "application/json")], &*BOMB)
    }

    /// Sends endless interim responses.
    pub fn endless_interim_answers(pause: Duration) -> Self {
        let answer = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
        // Each step takes at least a millisecond.
        Self::of([Step::Repeat(if pause.is_zero() { answer.repeat(1_000) } else { answer.to_vec() }, pause)])
    }

    /// Sends these bytes one by one, then ends the connection.
    pub fn byte_by_byte(bytes: &str, pause: Duration) -> Self {
        let steps = bytes.bytes().flat_map(|byte| [Step::Write(vec![byte]), Step::Pause(pause)]);
        Self::of(steps.collect::<Vec<_>>())
    }

    /// Half-closes the connection without a response: the sending side ends, and the receiving side stays open.
    pub fn half_close() -> Self {
        Self::of([Step::HalfClose, Step::Hang])
    }

    /// Sends endless headers.
    pub fn endless_headers(pause: Duration) -> Self {
        // If there is no pause, use large writes, so that a busy machine reaches the client's limit before its timeout.
        let headers = b"X-Another: one\r\n".repeat(if pause.is_zero() { 4_096 } else { 1 });
        Self::of([Step::Write(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::Repeat(headers, pause)])
    }

    /// Ends the connection after the behaviour, so that the next request uses another connection, and losing that one
    /// affects no other request.
    pub fn closing(self) -> Self {
        Self { keeps_alive: false, ..self }
    }

    /// Delays the behaviour.
    pub fn after(mut self, pause: Duration) -> Self {
        self.steps.insert(0, Step::Pause(pause));
        self
    }

    /// Starts the behaviour once this gate is open.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.steps.insert(0, Step::Gate(gate.0.subscribe()));
        self
    }

    fn of(steps: impl Into<Vec<Step>>) -> Self {
        Self { steps: steps.into(), keeps_alive: false }
    }

    /// Runs the steps; returns whether the connection is kept.
    pub(crate) async fn act(&self, stream: &mut TcpStream) -> io::Result<bool> {
        for step in &self.steps {
            match step {
                Step::Write(bytes) => stream.write_all(bytes).await?,
                Step::Repeat(bytes, pause) => loop {
                    stream.write_all(bytes).await?;
                    time::sleep(*pause).await;
                },
                Step::Pause(pause) => time::sleep(*pause).await,
                // A gate that the test dropped counts as open.
                Step::Gate(gate) => drop(gate.clone().wait_for(|open| *open).await),
                Step::Hang => hang(stream).await?,
                Step::HalfClose => stream.shutdown().await?,
                Step::Reset => {
                    stream.set_zero_linger()?;
                    return Ok(false);
                }
            }
        }
        stream.flush().await?;
        Ok(self.keeps_alive)
    }
}

async fn hang(stream: &mut TcpStream) -> io::Result<()> {
    let mut ignored = [0; 1_024];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut ignored) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Some Reason\r\n{headers}")
}
