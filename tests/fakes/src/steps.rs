//! What a receiver does once it has read a request: a short script of steps, from which any misbehaviour can be made.

use std::{
    io::{self, Write},
    sync::LazyLock,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use tokio::{io::AsyncWriteExt, net::TcpStream, time};

/// One step.
#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>),
    /// Writes the same again and again, with a pause after each.
    Repeat(Vec<u8>, Duration),
    Pause(Duration),
    /// Keeps the connection open without a word, until the other side closes it.
    Hang,
    /// Says that nothing more will come, and keeps listening.
    HalfClose,
    /// Closes the connection with RST instead of FIN.
    Reset,
}

/// What a receiver answers with.
#[derive(Debug, Clone)]
pub struct Behaviour {
    steps: Vec<Step>,
    /// Whether another request may follow on the connection.
    keeps_alive: bool,
}

impl Behaviour {
    /// A status, some headers and a body: what a well-behaved receiver says.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let head = format!("{}{length}\r\n", head(status, headers));
        Self { steps: vec![Step::Write([head.as_bytes(), body].concat())], keeps_alive: true }
    }

    /// A status and nothing else.
    pub fn status(status: u16) -> Self {
        Self::answer(status, &[], "")
    }

    /// Bytes as they are, and then the end of the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of([Step::Write(bytes.into())])
    }

    /// Not a word.
    pub fn hang() -> Self {
        Self::of([Step::Hang])
    }

    /// The end of the connection without an answer.
    pub fn close() -> Self {
        Self::of([])
    }

    /// The same, rudely.
    pub fn reset() -> Self {
        Self::of([Step::Reset])
    }

    /// A body of chunks, as HTTP frames them.
    pub fn chunked(status: u16, chunks: &[&[u8]]) -> Self {
        let mut bytes = format!("{}Transfer-Encoding: chunked\r\n\r\n", head(status, &[])).into_bytes();
        for chunk in chunks.iter().chain([&&b""[..]]) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(*chunk);
            bytes.extend(b"\r\n");
        }
        Self { steps: vec![Step::Write(bytes)], keeps_alive: true }
    }

    /// A body that never ends, as fast as it is read.
    pub fn endless_body(status: u16) -> Self {
        let head = format!("{}\r\n", head(status, &[("Connection", "close")]));
        Self::of([Step::Write(head.into()), Step::Repeat(vec![b'x'; 65_536], Duration::ZERO)])
    }

    /// A body that says how long it is and then comes byte by byte.
    pub fn trickled_body(status: u16, pause: Duration) -> Self {
        let head = format!("{}Content-Length: 4000\r\n\r\n", head(status, &[]));
        Self::of([Step::Write(head.into()), Step::Repeat(b"x".to_vec(), pause)])
    }

    /// A body that says that it is longer than what comes.
    pub fn truncated_body(status: u16) -> Self {
        Self::raw(format!("{}Content-Length: 4000\r\n\r\nonly this", head(status, &[])))
    }

    /// The beginning of a body, and then not a word.
    pub fn stalled_body(status: u16, body: &[u8], sent: usize) -> Self {
        let head = format!("{}Content-Length: {}\r\n\r\n", head(status, &[]), body.len());
        Self::of([Step::Write([head.as_bytes(), &body[..sent]].concat()), Step::Hang])
    }

    /// A body of 100 KB that is 100 MB when it is unpacked.
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

    /// Interim answers without an end.
    pub fn endless_interim_answers(pause: Duration) -> Self {
        Self::of([Step::Repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_vec(), pause)])
    }

    /// Bytes one by one, and then the end of the connection.
    pub fn byte_by_byte(bytes: &str, pause: Duration) -> Self {
        let steps = bytes.bytes().flat_map(|byte| [Step::Write(vec![byte]), Step::Pause(pause)]);
        Self::of(steps.collect::<Vec<_>>())
    }

    /// The end of what is sent, while what is received goes on, and not a word.
    pub fn half_close() -> Self {
        Self::of([Step::HalfClose, Step::Hang])
    }

    /// Headers without an end.
    pub fn endless_headers(pause: Duration) -> Self {
        let header = b"X-Another: one\r\n".to_vec();
        Self::of([Step::Write(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::Repeat(header, pause)])
    }

    /// The same, and then the end of the connection: the next request comes over another, and is lost with that one alone.
    pub fn closing(self) -> Self {
        Self { keeps_alive: false, ..self }
    }

    /// The same, later.
    pub fn after(mut self, pause: Duration) -> Self {
        self.steps.insert(0, Step::Pause(pause));
        self
    }

    fn of(steps: impl Into<Vec<Step>>) -> Self {
        Self { steps: steps.into(), keeps_alive: false }
    }

    /// Does it; whether the connection goes on afterwards.
    pub(crate) async fn act(&self, stream: &mut TcpStream) -> io::Result<bool> {
        for step in &self.steps {
            match step {
                Step::Write(bytes) => stream.write_all(bytes).await?,
                Step::Repeat(bytes, pause) => loop {
                    stream.write_all(bytes).await?;
                    time::sleep(*pause).await;
                },
                Step::Pause(pause) => time::sleep(*pause).await,
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
