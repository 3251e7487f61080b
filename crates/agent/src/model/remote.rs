//! A model behind a provider's interface: sends what an `Api` wrote, feeds what comes back to its
//! decoder.
//!
//! Knows keys, sockets and time; knows nothing of any provider's JSON. A key leaves here in the
//! header of its own provider's requests and nowhere else: what a provider says is searched for it
//! before anybody reads it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_session::{Heal, Text};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use tokio::time::{Instant, Sleep};

use super::api::{Api, Decode, Refused};
use super::http::Road;
use super::secret::Secret;
use super::sse::Parser;
use super::table::Card;
use super::token::Tokens;
use super::{Chunk, Failure, Model, Request, http};

/// What a stream of events may be called.
const STREAMS: [&str; 2] = ["text/event-stream", "text/plain"];
/// Of all text, reasoning and arguments of one answer.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// For a list of models: nobody waits for it while working.
const PROBE_TIME_MAX: Duration = Duration::from_secs(10);
/// Of such a list.
const PROBE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How one provider's interface is reached.
pub struct Endpoint {
    pub api: Box<dyn Api>,
    /// Without a slash at the end.
    pub base_url: String,
    pub auth: Auth,
    /// Where its key comes from, for people.
    pub key_from: &'static str,
    /// What else must not be seen: the password of a proxy.
    pub hidden: Vec<Secret>,
    pub road: Road,
    /// How long a provider may send nothing.
    pub idle_time_max: Duration,
}

/// How a request says whose it is.
pub enum Auth {
    /// Local servers want nothing.
    Open,
    Bearer(Secret),
    Header(&'static str, Secret),
    Account(Box<Tokens>),
}

pub struct Remote {
    name: String,
    card: Card,
    endpoint: Arc<Endpoint>,
}

impl Remote {
    pub fn new(name: String, card: Card, endpoint: Arc<Endpoint>) -> Remote {
        Remote { name, card, endpoint }
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn ask(&self, request: Request) -> BoxStream<'static, Chunk> {
        let asking = Asking {
            endpoint: self.endpoint.clone(),
            model: self.name.clone(),
            body: self.endpoint.api.encode(&request, &self.name, &self.card),
            reading: None,
            ready: VecDeque::new(),
            bytes: 0,
            over: false,
        };
        stream::unfold(asking, |mut asking| async move {
            let chunk = asking.next().await?;
            Some((chunk, asking))
        })
        .boxed()
    }
}

struct Asking {
    endpoint: Arc<Endpoint>,
    model: String,
    body: Vec<u8>,
    /// Once the provider has begun to answer.
    reading: Option<Reading>,
    ready: VecDeque<Chunk>,
    bytes: usize,
    over: bool,
}

struct Reading {
    response: Response,
    parser: Parser,
    decoder: Box<dyn Decode>,
    /// Looks now and then whether the provider has gone silent.
    silence: Pin<Box<Sleep>>,
    heard_at: Instant,
}

impl Reading {
    /// The next bytes; `None` when none came for so long.
    async fn part(&mut self, idle: Duration) -> Option<reqwest::Result<Option<Bytes>>> {
        let Reading { response, silence, heard_at, .. } = self;
        // One timer for the whole answer: setting one anew with every part costs more than the part.
        let mut reading = std::pin::pin!(response.chunk());
        let part = loop {
            tokio::select! {
                biased;
                part = &mut reading => break part,
                () = silence.as_mut() => match heard_at.elapsed() >= idle {
                    true => return None,
                    false => silence.as_mut().reset(*heard_at + idle),
                },
            }
        };
        *heard_at = Instant::now();
        Some(part)
    }
}

impl Asking {
    async fn next(&mut self) -> Option<Chunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                if matches!(chunk, Chunk::Done(_) | Chunk::Failed(_)) {
                    self.over = true;
                    self.ready.clear();
                    // Whatever else the provider sends is not read.
                    self.reading = None;
                }
                return Some(self.endpoint.masked(chunk));
            }
            if self.over {
                return None;
            }
            if let Err(failure) = self.more().await {
                self.ready.push_back(Chunk::Failed(failure));
            }
        }
    }

    async fn more(&mut self) -> Result<(), Failure> {
        let Some(reading) = &mut self.reading else {
            let body = std::mem::take(&mut self.body);
            let response = self.endpoint.send(body, &self.model).await?;
            let decoder = self.endpoint.api.decoder();
            let silence = Box::pin(tokio::time::sleep(self.endpoint.idle_time_max));
            let (parser, heard_at) = (Parser::new(), Instant::now());
            self.reading = Some(Reading { response, parser, decoder, silence, heard_at });
            return Ok(());
        };
        let part = reading
            .part(self.endpoint.idle_time_max)
            .await
            .ok_or_else(|| self.endpoint.silent())?
            .map_err(|error| http::broken(&error, &self.endpoint.host()))?;
        let Some(part) = part else {
            self.ready.extend(reading.decoder.end());
            // Without a last event it was cut, and whoever asked says so.
            self.over = self.ready.is_empty();
            return Ok(());
        };
        let events = reading.parser.push(&part).map_err(|_| {
            let message = format!("{} sent an event without end", self.endpoint.api.provider());
            Failure::new(Heal::Never, "bad_answer", message)
        })?;
        for event in events {
            let chunks = reading.decoder.event(&event);
            // What gives nothing may be kept, so it counts as it came.
            self.bytes += match chunks.is_empty() {
                true => event.data.len(),
                false => chunks.iter().map(chunk_bytes).sum(),
            };
            self.ready.extend(chunks);
        }
        if self.bytes > ANSWER_BYTES_MAX {
            let message = format!("The model's answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(Failure::new(Heal::Never, "answer_too_long", message));
        }
        Ok(())
    }
}

impl Endpoint {
    /// The host and port, as people know it.
    pub fn host(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(&*self.base_url, |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest).to_owned()
    }

    async fn client(&self) -> Result<Client, Failure> {
        let made = self.road.client().await;
        made.map_err(|why| Failure::new(Heal::Never, "unreachable", why))
    }

    /// The beginning of an answer, or why there is none.
    async fn send(&self, body: Vec<u8>, model: &str) -> Result<Response, Failure> {
        let url = format!("{}{}", self.base_url, self.api.path(model));
        let mut request = self.client().await?.post(url).body(body);
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request = request.header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let request = self.signed(request).await?;
        let response = tokio::time::timeout(self.idle_time_max, request.send())
            .await
            .map_err(|_| self.silent())?
            .map_err(|error| http::unreachable(&error, &self.host()))?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            let now = jiff::Timestamp::now();
            let retry_after_ms = http::retry_after_ms(response.headers(), now);
            let body = self.masked_bytes(http::short_body(response).await);
            let refused = Refused { status, body: &body, model, retry_after_ms };
            return Err(self.explained(self.api.refusal(&refused)));
        }
        match self.is_stream(&response) {
            Ok(()) => Ok(response),
            // What it says in place of an answer is the best there is to know.
            Err(failure) if is_json(&response) => {
                let body = self.masked_bytes(http::short_body(response).await);
                let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
                let message = format!("{} ({})", failure.fault.message, said.trim());
                Err(Failure::new(Heal::Later { after_ms: None }, "bad_answer", message))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Puts on what this provider wants to see on every request.
    async fn signed(&self, mut request: RequestBuilder) -> Result<RequestBuilder, Failure> {
        for (name, value) in self.api.headers() {
            request = request.header(*name, *value);
        }
        let bearer = |secret: &Secret| header(&format!("Bearer {}", secret.expose()));
        Ok(match &self.auth {
            Auth::Open => request,
            Auth::Bearer(secret) => request.header(AUTHORIZATION, self.checked(bearer(secret))?),
            Auth::Header(name, secret) => {
                request.header(*name, self.checked(header(secret.expose()))?)
            }
            Auth::Account(tokens) => {
                let token = tokens.get(&self.client().await?).await?;
                request = request.header(AUTHORIZATION, self.checked(bearer(&token))?);
                match tokens.quota_project() {
                    Some(project) => request.header("x-goog-user-project", project),
                    None => request,
                }
            }
        })
    }

    fn checked(&self, value: Option<HeaderValue>) -> Result<HeaderValue, Failure> {
        value.ok_or_else(|| {
            let message = format!("{}: has characters that no key has", self.key_from);
            Failure::new(Heal::Never, "unauthorized", message)
        })
    }

    /// A page, a file or packed bytes are no answer, whatever the status says.
    fn is_stream(&self, response: &Response) -> Result<(), Failure> {
        let header = |name| response.headers().get(name).and_then(|v| v.to_str().ok());
        let provider = self.api.provider();
        let refuse = |what: String| {
            let message = format!(
                "{provider} answered with {what} instead of a stream of events; check the base \
                 URL ({})",
                self.base_url
            );
            Err(Failure::new(Heal::Never, "bad_answer", message))
        };
        if let Some(packed) = header(CONTENT_ENCODING).filter(|how| *how != "identity") {
            return refuse(format!("{} encoding", shown(packed)));
        }
        match header(CONTENT_TYPE).map(|kind| kind.split(';').next().unwrap_or(kind).trim()) {
            Some(kind) if !STREAMS.iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
                refuse(shown(kind))
            }
            // Small servers forget to say what it is.
            Some(_) | None => Ok(()),
        }
    }

    fn silent(&self) -> Failure {
        let (host, seconds) = (self.host(), self.idle_time_max.as_secs());
        let message = format!("No answer of {host} for {seconds} s");
        Failure::new(Heal::Later { after_ms: None }, "timeout", message)
    }

    /// A refusal, with what the operator can do about it.
    fn explained(&self, mut failure: Failure) -> Failure {
        let fault = &mut failure.fault;
        let advice = match (&*fault.code, &self.auth) {
            ("unauthorized", Auth::Account(tokens)) => {
                // It may have been taken back before its time.
                tokens.forget();
                failure.heal = Heal::Once;
                format!("check {}", self.key_from)
            }
            ("unauthorized", Auth::Open) => format!("set {}", self.key_from),
            ("unauthorized", Auth::Bearer(_) | Auth::Header(..)) => {
                format!("check {}", self.key_from)
            }
            ("proxy", _) => format!("check the proxy on the way to {}", self.host()),
            ("not_found" | "redirected", _) => {
                format!("check MODEL and the base URL {}", self.base_url)
            }
            _ => return failure,
        };
        fault.message = format!("{}; {advice}", fault.message).into();
        failure
    }

    fn masked(&self, chunk: Chunk) -> Chunk {
        match chunk {
            Chunk::Failed(mut failure) => {
                failure.fault.message = self.mask(failure.fault.message);
                failure.fault.code = self.mask(failure.fault.code);
                Chunk::Failed(failure)
            }
            Chunk::Raw { provider, json } => Chunk::Raw { provider, json: self.mask(json) },
            answer => answer,
        }
    }

    fn mask(&self, text: Text) -> Text {
        self.masked_text(&text).map_or(text, Into::into)
    }

    fn masked_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        // One byte that is no text must not keep the rest from being searched.
        let masked = self.masked_text(&String::from_utf8_lossy(&bytes));
        masked.map_or(bytes, String::into_bytes)
    }

    /// `None` when there is nothing to hide in it.
    fn masked_text(&self, text: &str) -> Option<String> {
        let own = match &self.auth {
            Auth::Open => None,
            Auth::Bearer(secret) | Auth::Header(_, secret) => secret.masked(text),
            Auth::Account(tokens) => tokens.masked(text),
        };
        self.hidden.iter().fold(own, |masked, secret| {
            let again = secret.masked(masked.as_deref().unwrap_or(text));
            again.or(masked)
        })
    }
}

/// What an endpoint says when it is only asked what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub status: u16,
    /// Empty where the answer was no list.
    pub models: Vec<String>,
}

/// Asks for the list of models; an answer of any status is an answer.
pub async fn probe(endpoint: &Endpoint) -> Result<Probe, Failure> {
    let host = endpoint.host();
    let asking = async {
        let url = format!("{}{}", endpoint.base_url, endpoint.api.models_path());
        let request = endpoint.signed(endpoint.client().await?.get(url)).await?;
        let response = request.send().await.map_err(|error| http::unreachable(&error, &host))?;
        let status = response.status().as_u16();
        Ok(Probe { status, models: listed(response).await })
    };
    let probed = tokio::time::timeout(PROBE_TIME_MAX, asking).await.unwrap_or_else(|_| {
        let seconds = PROBE_TIME_MAX.as_secs();
        let message = format!("No answer of {host} for {seconds} s");
        Err(Failure::new(Heal::Later { after_ms: None }, "timeout", message))
    });
    probed.map_err(|mut failure: Failure| {
        failure.fault.message = endpoint.mask(failure.fault.message);
        failure
    })
}

/// The names in a list of models, in any provider's form.
async fn listed(mut response: Response) -> Vec<String> {
    let mut body = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        if body.len() + part.len() > PROBE_BYTES_MAX {
            return Vec::new();
        }
        body.extend_from_slice(&part);
    }
    let list: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let rows = list["data"].as_array().or_else(|| list["models"].as_array());
    let name = |row: &serde_json::Value| {
        let name = row["id"].as_str().or_else(|| row["name"].as_str())?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    };
    rows.into_iter().flatten().filter_map(name).collect()
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json"))
}

fn chunk_bytes(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Text { text, .. } | Chunk::Args { text, .. } => text.len(),
        Chunk::Ended { opaque, .. } => opaque.as_ref().map_or(0, |opaque| opaque.json.len()),
        Chunk::Started { .. }
        | Chunk::Usage(_)
        | Chunk::Raw { .. }
        | Chunk::Done(_)
        | Chunk::Failed(_) => 0,
    }
}

fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
