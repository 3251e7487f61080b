//! As much of HTTP as a model and its clients on the same machine need: a head, a body of known
//! length or in chunks, connections that are used again.

use std::io;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt};

const READ_BYTES: usize = 8 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

pub struct Reader<S> {
    stream: S,
    held: Vec<u8>,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    pub fn new(stream: S) -> Reader<S> {
        Reader { stream, held: Vec::with_capacity(READ_BYTES) }
    }

    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Whether another chunk is there already, at least its beginning.
    pub fn has_chunk(&self) -> bool {
        !self.held.is_empty()
    }

    /// False at the end.
    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.held).await? > 0)
    }

    /// A head with its end; `None` when there is no further one.
    pub async fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = memmem::find(&self.held, HEAD_END) {
                return Ok(Some(self.take(at + HEAD_END.len())));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    pub async fn body(&mut self, length: usize) -> io::Result<Vec<u8>> {
        self.body_seen(length, <[u8]>::to_vec).await
    }

    /// What is found in a body, where it lies: a model is sent long ones.
    pub async fn body_seen<T>(
        &mut self,
        length: usize,
        look: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        while self.held.len() < length {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let seen = look(&self.held[..length]);
        self.held.drain(..length);
        Ok(seen)
    }

    /// The data of the next chunk; empty at the end of the body.
    pub async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let line = loop {
            if let Some(at) = memmem::find(&self.held, b"\r\n") {
                break self.take(at + 2);
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let digits = std::str::from_utf8(&line[..line.len() - 2]).map_err(io::Error::other)?;
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        let mut data = self.body(length + 2).await?;
        data.truncate(length);
        Ok(data)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        self.held.drain(..length).collect()
    }
}

/// The number that a header of a head gives.
pub fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Whether the length of the body was not known when it began.
pub fn is_chunked(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines().any(|line| line.trim_end() == "transfer-encoding: chunked")
}
