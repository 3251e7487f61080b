//! A model behind a provider's interface: sends what an `Api` wrote, feeds what comes back to its
//! decoder.
//!
//! Knows keys, sockets and time; knows nothing of any provider's JSON. A key leaves here in the
//! header of its own provider's requests and nowhere else: what a provider says is searched for it
//! before anybody reads it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use polyloop_session::{Heal, Text};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT,
};
use reqwest::{Client, Response};

use super::api::{Api, Refused};
use super::http::Road;
use super::lane::{Body, Lanes};
use super::pieces::Pieces;
use super::secret::Secret;
use super::table::Card;
use super::token::Tokens;
use super::{Chunk, Failure, Model, Request, http};
use asking::Asking;

pub use asking::ANSWER_BYTES_MAX;

mod asking;

/// What a stream of events may be called.
const STREAMS: [&str; 2] = ["text/event-stream", "text/plain"];
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
    /// For what is not asked of a model.
    pub road: Road,
    pub lanes: Lanes,
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
        let body = self.endpoint.api.encode(&request, &self.name, &self.card);
        let (endpoint, model) = (self.endpoint.clone(), self.name.clone());
        let sending = async move { endpoint.send(body, &model).await }.boxed();
        Asking::new(self.endpoint.clone(), sending).boxed()
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
    async fn send(&self, body: Pieces, model: &str) -> Result<Body, Failure> {
        let url = format!("{}{}", self.base_url, self.api.path(model));
        let mut headers = self.headers().await?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(USER_AGENT, HeaderValue::from_static(http::USER_AGENT));
        let sent = tokio::time::timeout(self.idle_time_max, self.lanes.post(&url, &headers, &body));
        let answer = sent
            .await
            .map_err(|_| self.silent())?
            .map_err(|trouble| http::troubled(&trouble, &self.host()))?;
        drop((url, headers, body));
        if !answer.status.is_success() {
            let now = jiff::Timestamp::now();
            let retry_after_ms = http::retry_after_ms(&answer.headers, now);
            let status = answer.status.as_u16();
            let body = self.masked_bytes(http::short_answer(answer.body).await);
            let refused = Refused { status, body: &body, model, retry_after_ms };
            return Err(self.explained(self.api.refusal(&refused)));
        }
        match self.is_stream(&answer.headers) {
            Ok(()) => Ok(answer.body),
            // What it says in place of an answer is the best there is to know.
            Err(failure) if is_json(&answer.headers) => {
                let body = self.masked_bytes(http::short_answer(answer.body).await);
                let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
                let message = format!("{} ({})", failure.fault.message, said.trim());
                Err(Failure::new(Heal::Later { after_ms: None }, "bad_answer", message))
            }
            Err(failure) => Err(failure),
        }
    }

    /// What this provider wants to see on every request.
    async fn headers(&self) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.api.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let bearer = |secret: &Secret| header(&format!("Bearer {}", secret.expose()));
        match &self.auth {
            Auth::Open => {}
            Auth::Bearer(secret) => {
                headers.insert(AUTHORIZATION, self.checked(bearer(secret))?);
            }
            Auth::Header(name, secret) => {
                headers.insert(*name, self.checked(header(secret.expose()))?);
            }
            Auth::Account(tokens) => {
                let token = tokens.get(&self.client().await?).await?;
                headers.insert(AUTHORIZATION, self.checked(bearer(&token))?);
                if let Some(project) = tokens.quota_project() {
                    headers.insert(
                        "x-goog-user-project",
                        self.checked(HeaderValue::from_str(project).ok())?,
                    );
                }
            }
        }
        Ok(headers)
    }

    fn checked(&self, value: Option<HeaderValue>) -> Result<HeaderValue, Failure> {
        value.ok_or_else(|| {
            let message = format!("{}: has characters that no key has", self.key_from);
            Failure::new(Heal::Never, "unauthorized", message)
        })
    }

    /// A page, a file or packed bytes are no answer, whatever the status says.
    fn is_stream(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let header = |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
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
        let headers = endpoint.headers().await?;
        let request = endpoint.client().await?.get(url).headers(headers);
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

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json"))
}

fn header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
