//! A stream that knows whether anything came over it: only a connection that broke in silence may be tried again.

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

/// Whether nothing has come since the silence began. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Silence(Arc<AtomicBool>);

impl Silence {
    /// From now on it lasts until a byte comes.
    pub(crate) fn begin(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether no byte has come.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// A stream whose bytes end a silence.
#[derive(Debug)]
pub(crate) struct Listening<S> {
    stream: S,
    silence: Silence,
}

impl<S> Listening<S> {
    /// The stream, and the silence that its bytes end.
    pub(crate) fn to(stream: S, silence: Silence) -> Self {
        Self { stream, silence }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Listening<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.silence.0.store(false, Relaxed);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Listening<S> {
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
