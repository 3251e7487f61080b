//! NATS' own protocol, as much of it as a publisher needs. No client library, so that none is
//! measured with the servers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

const ANSWERS: &str = "_INBOX.load";
/// Longer than another leader takes to be found.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(20);
/// How each line ends.
const END: &str = "\r\n";

pub struct Wire {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    /// What is to be sent with the next acknowledgement that is waited for.
    waiting: Vec<u8>,
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> io::Result<Wire> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (from, to) = stream.into_split();
        let mut wire = Wire { from: BufReader::new(from), to, waiting: Vec::new() };
        let hello = format!("CONNECT {{\"verbose\":false}}{END}SUB {ANSWERS} 1{END}");
        wire.waiting.extend_from_slice(hello.as_bytes());
        Ok(wire)
    }

    pub async fn ask(&mut self, subject: &str, body: &Value) -> io::Result<Value> {
        self.publish(subject, body.to_string().as_bytes());
        self.flush().await?;
        let answer = self.answer().await?;
        serde_json::from_slice(&answer).map_err(io::Error::other)
    }

    pub fn put(&mut self, subject: &str, bytes: usize) {
        self.publish(subject, &vec![b'x'; bytes]);
    }

    fn publish(&mut self, subject: &str, body: &[u8]) {
        let head = format!("PUB {subject} {ANSWERS} {}{END}", body.len());
        self.waiting.extend_from_slice(head.as_bytes());
        self.waiting.extend_from_slice(body);
        self.waiting.extend_from_slice(END.as_bytes());
    }

    /// How many more were stored: at least one, and all that came with it.
    pub async fn acknowledged(&mut self) -> io::Result<usize> {
        self.flush().await?;
        let mut count = 0;
        while count == 0 || !self.from.buffer().is_empty() {
            let answer = timeout(SILENCE_TIME_MAX, self.answer()).await;
            let answer = answer.map_err(|_| io::Error::other("NATS acknowledges nothing"))??;
            let answer = String::from_utf8_lossy(&answer);
            if !answer.contains("\"seq\"") {
                return Err(io::Error::other(format!("NATS did not store a message: {answer}")));
            }
            count += 1;
        }
        Ok(count)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.waiting).await?;
        self.waiting.clear();
        Ok(())
    }

    async fn answer(&mut self) -> io::Result<Vec<u8>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line).await? == 0 {
                return Err(io::Error::other("NATS closed the connection"));
            }
            match line.split_whitespace().next() {
                Some("MSG") => break,
                Some("PING") => self.to.write_all(format!("PONG{END}").as_bytes()).await?,
                Some("-ERR") => return Err(io::Error::other(format!("NATS says {line}"))),
                _ => {} // What it tells of itself.
            }
        }
        let length = line.split_whitespace().last().and_then(|word| word.parse::<usize>().ok());
        let length = length.ok_or_else(|| io::Error::other(format!("no length: {line}")))?;
        let mut body = vec![0; length + END.len()];
        self.from.read_exact(&mut body).await?;
        body.truncate(length);
        Ok(body)
    }
}
