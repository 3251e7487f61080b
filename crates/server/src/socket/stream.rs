//! The bytes of an upgraded connection, on whichever thread they are wanted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::outlet::{Broken, Outlet};
use crate::access::Visit;
use crate::app::App;

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
    pub(super) fn bind(self, app: Arc<App>, visit: Arc<Visit>) -> io::Result<Stream> {
        let (reading, writing) = TcpStream::from_std(self.socket)?.into_split();
        Ok(Stream { reading, early: self.early, outlet: Outlet::new(writing, app, visit) })
    }
}

/// What the WebSocket protocol reads from, and where it puts frames of its own.
pub(super) struct Stream {
    reading: OwnedReadHalf,
    /// What the client sent before it had the answer to its handshake.
    early: Bytes,
    pub(super) outlet: Arc<Outlet>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.reading).poll_read(cx, buf);
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

/// Pongs and answers to a close: each is written whole, alone, before the next message is read.
/// They are always taken; that they go out is the writing half's affair.
impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        frame: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = self.outlet.control(frame).map(|()| frame.len());
        Poll::Ready(taken.map_err(|Broken| io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let frame: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter()).copied().collect();
        self.poll_write(cx, &frame)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outlet.shut();
        Poll::Ready(Ok(()))
    }
}
