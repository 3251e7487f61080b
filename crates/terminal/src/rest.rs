//! The server's REST, one request a connection.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::address::Address;

const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub enum Trouble {
    /// No server, or none that speaks HTTP.
    NotReached(String),
    /// It said no.
    Refused { status: u16, error: String },
}

impl Trouble {
    pub fn says(&self, address: &Address) -> String {
        match self {
            Trouble::NotReached(why) => format!(
                "no server answers at {} ({why}); start one with `polyloop demo` or `polyloop \
                 serve`, or give its address with --url",
                address.shown()
            ),
            Trouble::Refused { status: 401, .. } => format!(
                "the server at {} wants a token; set POLYLOOP_TOKEN to it, or give it with --token",
                address.shown()
            ),
            Trouble::Refused { error, .. } => error.clone(),
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Trouble::Refused { status: 404, .. })
    }
}

/// What the server says of itself; whoever says nothing is no server for this client.
pub async fn about(address: &Address) -> Result<Value, String> {
    let about = get(address, "/about").await;
    about.map_err(|trouble| match trouble {
        Trouble::Refused { status: 404, .. } => format!(
            "what answers at {} is no Polyloop server, or one that is older than this client",
            address.shown()
        ),
        trouble => trouble.says(address),
    })
}

pub async fn get(address: &Address, path: &str) -> Result<Value, Trouble> {
    send(address, Method::GET, path, None).await
}

pub async fn post(address: &Address, path: &str, body: Option<Value>) -> Result<Value, Trouble> {
    send(address, Method::POST, path, body).await
}

pub async fn patch(address: &Address, path: &str, body: Value) -> Result<Value, Trouble> {
    send(address, Method::PATCH, path, Some(body)).await
}

async fn send(
    address: &Address,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Value, Trouble> {
    match tokio::time::timeout(ANSWER_TIME_MAX, exchange(address, method, path, body)).await {
        Ok(answer) => answer,
        Err(_) => {
            let why = format!("no answer within {} s", ANSWER_TIME_MAX.as_secs());
            Err(Trouble::NotReached(why))
        }
    }
}

async fn exchange(
    address: &Address,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Value, Trouble> {
    let lost = |error: hyper::Error| Trouble::NotReached(error.to_string());
    let stream = address.connect().await.map_err(Trouble::NotReached)?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(lost)?;
    let request = request(address, method, path, body)?;
    // The connection does its work beside the request and ends with it.
    let serving = tokio::spawn(connection);
    let answered = async {
        let answer = sender.send_request(request).await.map_err(lost)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Trouble::NotReached(error.to_string()))?;
        Ok((status, body.to_bytes()))
    };
    let answered = answered.await;
    serving.abort();
    let (status, body) = answered?;
    read(status, &body)
}

fn request(
    address: &Address,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Request<Full<Bytes>>, Trouble> {
    let mut request =
        Request::builder().method(method).uri(address.path(path)).header(HOST, address.authority());
    if let Some(token) = &address.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    request
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Trouble::NotReached(format!("{path}: {error}")))
}

fn read(status: u16, body: &[u8]) -> Result<Value, Trouble> {
    let value = serde_json::from_slice::<Value>(body);
    if (200..300).contains(&status) {
        return value.map_err(|_| {
            Trouble::NotReached("what answers there is no Polyloop server".to_owned())
        });
    }
    let error = match &value {
        Ok(value) => value["error"].as_str().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    };
    let error = if error.is_empty() { format!("the server said {status}") } else { error };
    Err(Trouble::Refused { status, error })
}
