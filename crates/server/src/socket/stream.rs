//! The bytes of an upgraded connection, on whichever thread they are wanted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection between two threads: it belongs to none.
pub(super) struct Unbound {
    socket: std::net::TcpStream,
    early: Bytes,
}

impl Unbound {
    pub(super) fn of(upgraded: Upgraded) -> io::Result<Unbound> {
        let parts = upgraded
            .downcast::<TokioIo<TcpStream>>()
            .map_err(|_| io::Error::other("not a connection of ours"))?;
        // Even with nothing in it, it holds on to the whole buffer of the handshake.
        let early = Bytes::copy_from_slice(&parts.read_buf);
        Ok(Unbound { socket: parts.io.into_inner().into_std()?, early })
    }

    /// From here on it belongs to the thread that calls this.
    pub(super) fn bind(self) -> io::Result<Stream> {
        Ok(Stream { socket: TcpStream::from_std(self.socket)?, early: self.early })
    }
}

pub(super) struct Stream {
    socket: TcpStream,
    /// What the client sent before it had the answer to its handshake.
    early: Bytes,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.socket).poll_read(cx, buf);
        }
        let length = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..length]);
        self.early.advance(length);
        if self.early.is_empty() {
            // Nobody needs it any more.
            self.early = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}
