//! A stream that records whether any byte was written. A request may be sent again only if the endpoint cannot have
//! read any of it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether a byte was written since the last call to [`WriteTracker::begin`]. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteTracker(Arc<AtomicBool>);

impl WriteTracker {
    /// Resets the record.
    pub(crate) fn begin(&self) {
        self.0.store(false, Relaxed);
    }

    /// Whether the stream has accepted a byte.
    pub(crate) fn has_written(&self) -> bool {
        self.0.load(Relaxed)
    }

    fn note(&self, written: &io::Result<usize>) {
        if written.as_ref().is_ok_and(|count| *count > 0) {
            self.0.store(true, Relaxed);
        }
    }
}

/// A stream whose writes are recorded in a [`WriteTracker`]. It wraps the socket, below TLS, because TLS accepts bytes
/// that are never written if the connection is broken.
#[derive(Debug)]
pub(crate) struct TrackedStream<S> {
    stream: S,
    tracker: WriteTracker,
}

impl<S> TrackedStream<S> {
    pub(crate) fn new(stream: S, tracker: WriteTracker) -> Self {
        Self { stream, tracker }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.tracker.note(&written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices));
        self.tracker.note(&written);
        Poll::Ready(written)
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
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn only_bytes_that_the_stream_took_count_as_written() {
        let (near, far) = duplex(64);
        let tracker = WriteTracker::default();
        let mut stream = TrackedStream::new(near, tracker.clone());
        stream.flush().await.expect("nothing to flush");
        assert!(!tracker.has_written());
        stream.write_all(b"x").await.expect("written");
        assert!(tracker.has_written());
        tracker.begin();
        drop(far);
        stream.write_all(b"x").await.expect_err("the other side is gone");
        assert!(!tracker.has_written());
    }
}
