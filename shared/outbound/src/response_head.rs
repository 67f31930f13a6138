//! A response's heads: their limit in bytes, including interim responses (1xx), and HTTP/1.0.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum number of headers of a response, and of each interim response. hyper's default of 100 is too small for
/// servers that set many cookies or policies.
pub(crate) const MAX_HEADERS: usize = 2_048;
/// The largest heads after which a connection is kept, since hyper's read buffer stays as large as the largest head.
const MAX_KEPT: usize = 64 * 1024;
/// The columns of the minor version and of the first digit of the status, as in `HTTP/1.1 204 No Content`.
const MINOR_VERSION: usize = 7;
const STATUS: usize = 9;

/// The heads of a response have too many bytes, or one of them has too many headers.
#[derive(Debug, thiserror::Error)]
#[error("the response's headers are too many or too large")]
pub(crate) struct HeadTooLong;

/// The heads of a connection's current response. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Heads(Arc<Mutex<Reading>>);

#[derive(Debug)]
struct Reading {
    /// The maximum size of all heads, in bytes.
    max: usize,
    /// The number of bytes in the heads so far.
    length: usize,
    is_complete: bool,
    is_http_1_0: bool,
    /// Whether the status line of the current head has ended.
    is_after_status: bool,
    is_interim: bool,
    /// The number of lines in the current head so far.
    lines: usize,
    /// The position in the current line.
    column: usize,
}

impl Reading {
    /// The heads of a response that has not begun.
    const fn new(max: usize) -> Self {
        Self {
            max,
            length: 0,
            is_complete: false,
            is_http_1_0: false,
            is_after_status: false,
            is_interim: false,
            lines: 0,
            column: 0,
        }
    }

    /// Reads bytes of the response and rewrites version HTTP/1.0 as 1.1: hyper refuses chunks in HTTP/1.0, but a client
    /// must read them and then close the connection (RFC 9112 §6.1).
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), HeadTooLong> {
        for byte in bytes {
            if self.is_complete {
                break;
            }
            self.length += 1;
            self.step(byte);
            // The status line counts as a line as well.
            if self.length > self.max || self.lines > MAX_HEADERS + 1 {
                return Err(HeadTooLong);
            }
        }
        Ok(())
    }

    fn step(&mut self, byte: &mut u8) {
        match *byte {
            b'\r' => return,
            b'\n' => {
                let is_empty = self.column == 0;
                self.column = 0;
                if !is_empty {
                    self.is_after_status = true;
                    self.lines += 1;
                } else if self.is_after_status {
                    // The final head ends the heads; after an interim head, another one follows.
                    self.is_complete = !self.is_interim;
                    self.is_after_status = false;
                    self.lines = 0;
                }
                return;
            }
            b'0' if !self.is_after_status && self.column == MINOR_VERSION => {
                self.is_http_1_0 = true;
                *byte = b'1';
            }
            digit if !self.is_after_status && self.column == STATUS => self.is_interim = digit == b'1',
            _ => {}
        }
        self.column += 1;
    }
}

impl Heads {
    /// The heads of a connection's responses, each with this limit in bytes.
    pub(crate) fn within(max: usize) -> Self {
        Self(Arc::new(Mutex::new(Reading::new(max))))
    }

    /// A stream whose bytes are read as response bytes.
    pub(crate) const fn over<S>(self, stream: S) -> HeadStream<S> {
        HeadStream { stream, heads: self }
    }

    /// Begins the next response's heads.
    pub(crate) fn begin(&self) {
        let mut reading = self.reading();
        *reading = Reading::new(reading.max);
    }

    /// Ends the heads: all further bytes belong to the body.
    pub(crate) fn end(&self) {
        self.reading().is_complete = true;
    }

    /// Whether the connection may be kept after this response.
    pub(crate) fn may_be_kept(&self) -> bool {
        let reading = self.reading();
        !reading.is_http_1_0 && reading.length <= MAX_KEPT
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose reads pass through [`Heads`], above TLS.
#[derive(Debug)]
pub(crate) struct HeadStream<S> {
    stream: S,
    heads: Heads,
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = self.heads.reading().read(&mut buffer.filled_mut()[before..]);
        Poll::Ready(read.map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response in pieces of this size. Returns it as hyper sees it, with the final state.
    fn read(response: &str, piece: usize) -> (String, Reading) {
        let mut bytes = response.as_bytes().to_vec();
        let mut reading = Reading::new(100);
        for piece in bytes.chunks_mut(piece) {
            reading.read(piece).expect("it is short");
        }
        (String::from_utf8(bytes).expect("text"), reading)
    }

    #[test]
    fn only_the_version_of_a_status_line_changes_in_pieces_of_any_size() {
        let response = "\r\nHTTP/1.1 103 A\r\nX-A: 0\r\n\r\nHTTP/1.0 200 B\nHTTP/1.0 000 C\n\nHTTP/1.0";
        for piece in 1..=response.len() {
            let (written, reading) = read(response, piece);
            assert_eq!(written, response.replace("HTTP/1.0 200", "HTTP/1.1 200"), "{piece}");
            assert!(reading.is_complete && reading.is_http_1_0, "{piece}");
            assert_eq!(reading.length, response.len() - "HTTP/1.0".len(), "{piece}");
        }
    }

    #[test]
    fn a_body_does_not_count_as_head_and_interim_responses_do() {
        let mut reading = Reading::new(40);
        let mut response = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[b'x'; 100]].concat();
        assert!(reading.read(&mut response).is_ok());
        let mut reading = Reading::new(40);
        let mut interim = b"HTTP/1.1 102 Wait\r\n\r\n".repeat(2);
        assert!(reading.read(&mut interim).is_err());
    }
}
