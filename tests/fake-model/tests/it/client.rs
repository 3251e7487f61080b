//! An HTTP client that hides nothing: it knows how a connection ended and which bytes came.

use std::time::Duration;

use polyloop_fake_model::FakeModel;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Generous: a busy machine must not fail a test.
const WAIT: Duration = Duration::from_secs(30);

pub const APIS: [&str; 4] = ["responses", "chat", "anthropic", "gemini"];

/// The path, the key and a body of each API.
pub fn request(api: &str, stream: bool, text: &str) -> (String, &'static str, Value) {
    let messages = json!([{"role": "user", "content": text}]);
    match api {
        "responses" => {
            let body = json!({"model": "m", "stream": stream, "input": text});
            ("/v1/responses".to_owned(), "authorization: Bearer k", body)
        }
        "chat" => {
            let body = json!({"model": "m", "stream": stream, "messages": messages});
            ("/v1/chat/completions".to_owned(), "authorization: Bearer k", body)
        }
        "anthropic" => {
            let body = json!({"model": "m", "stream": stream, "messages": messages});
            ("/v1/messages".to_owned(), "x-api-key: k", body)
        }
        _ => {
            let call = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let body = json!({"contents": [{"role": "user", "parts": [{"text": text}]}]});
            (format!("/v1beta/models/m:{call}"), "x-goog-api-key: k", body)
        }
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body came to the end that HTTP promised.
    pub is_whole: bool,
    /// The sizes of the HTTP chunks of a stream.
    pub chunks: Vec<usize>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub struct Connection {
    stream: TcpStream,
    /// Read, but behind what was asked for.
    rest: Vec<u8>,
}

impl Connection {
    pub async fn open(model: &FakeModel) -> Connection {
        let stream = TcpStream::connect(model.address()).await.unwrap();
        Connection { stream, rest: Vec::new() }
    }

    pub async fn send(&mut self, method: &str, path: &str, header: &str, body: &str) {
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{header}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// More bytes; false at the end of the connection.
    async fn more(&mut self) -> bool {
        let mut buffer = vec![0; 64 * 1024];
        let read = timeout(WAIT, self.stream.read(&mut buffer)).await.expect("nothing comes");
        let read = read.unwrap_or(0);
        self.rest.extend_from_slice(&buffer[..read]);
        read > 0
    }

    /// The bytes before a mark, which is taken too; none if the connection ends before it.
    async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.rest.windows(mark.len()).position(|it| it == mark) {
                let rest = self.rest.split_off(at + mark.len());
                let mut taken = std::mem::replace(&mut self.rest, rest);
                taken.truncate(at);
                return Some(taken);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// So many bytes, or as many as come.
    async fn take(&mut self, bytes: usize) -> Vec<u8> {
        while self.rest.len() < bytes && self.more().await {}
        let rest = self.rest.split_off(bytes.min(self.rest.len()));
        std::mem::replace(&mut self.rest, rest)
    }

    /// The head of an answer: status and text.
    pub async fn head(&mut self) -> Option<(u16, String)> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some((status, head.to_lowercase()))
    }

    /// A whole answer, as far as it comes; none if the connection ends before its head.
    pub async fn answer(&mut self) -> Option<Answer> {
        let (status, head) = self.head().await?;
        let mut answer = Answer { status, head, body: Vec::new(), is_whole: false, chunks: vec![] };
        let length = answer.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if let Some(length) = length {
            let length = length.parse().unwrap();
            answer.body = self.take(length).await;
            answer.is_whole = answer.body.len() == length;
            return Some(answer);
        }
        while let Some(size) = self.until(b"\r\n").await {
            let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap(), 16).unwrap();
            let piece = self.take(size).await;
            answer.is_whole = size == 0 && self.take(2).await.len() == 2;
            answer.body.extend_from_slice(&piece);
            if size == 0 || piece.len() < size || self.take(2).await.len() < 2 {
                break;
            }
            answer.chunks.push(size);
        }
        Some(answer)
    }

    /// At least so many bytes of a body that then stands still.
    pub async fn bytes_of_open_stream(&mut self, bytes: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < bytes {
            let size = self.until(b"\r\n").await.unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap(), 16).unwrap();
            body.extend_from_slice(&self.take(size).await);
            self.take(2).await;
        }
        body
    }
}

/// One request on a connection of its own.
pub async fn ask(model: &FakeModel, api: &str, stream: bool, text: &str) -> Option<Answer> {
    let (path, key, body) = request(api, stream, text);
    let mut connection = Connection::open(model).await;
    connection.send("POST", &path, key, &body.to_string()).await;
    connection.answer().await
}

/// A stream that a reply makes.
pub async fn streamed(model: &FakeModel, api: &str, reply: &Value) -> Answer {
    model.script(&json!([reply])).unwrap();
    ask(model, api, true, "x").await.unwrap()
}

/// A control request.
pub async fn control(model: &FakeModel, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut connection = Connection::open(model).await;
    connection.send(method, path, "", body).await;
    let answer = connection.answer().await.unwrap();
    (answer.status, answer.json())
}

/// Waits until the state is as wanted.
pub async fn until_state(model: &FakeModel, key: &str, value: u64) {
    let reached = async {
        while model.state()[key] != value {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(WAIT, reached).await.unwrap_or_else(|_| panic!("{key} is {}", model.state()));
}

/// The JSON of every event, by the rules for server-sent events.
pub fn events(text: &str) -> Vec<Value> {
    let text = text.trim_start_matches('\u{FEFF}').replace("\r\n", "\n");
    let mut events = Vec::new();
    for block in text.split_inclusive("\n\n").filter(|block| block.ends_with("\n\n")) {
        let data: Vec<&str> = block
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        if !data.is_empty() && data != ["[DONE]"] {
            events.push(serde_json::from_str(&data.join("\n")).unwrap());
        }
    }
    events
}

/// The text that the deltas of a stream make: what is said, thought, or the arguments of calls.
pub fn grown(api: &str, text: &str) -> String {
    let piece = |event: &Value| -> Option<String> {
        let found = match api {
            "responses" => event.get("delta"),
            "chat" => {
                let delta = event["choices"].get(0)?.get("delta")?;
                let call = delta.pointer("/tool_calls/0/function/arguments");
                call.or(delta.get("content")).or(delta.get("reasoning_content"))
            }
            "anthropic" => {
                let delta = event.get("delta")?;
                let keys = ["text", "thinking", "partial_json"];
                keys.iter().find_map(|key| delta.get(key))
            }
            _ => event.pointer("/candidates/0/content/parts/0/text"),
        };
        found?.as_str().map(str::to_owned)
    };
    events(text).iter().filter_map(piece).collect()
}
