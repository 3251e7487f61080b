//! Accepts connections, reads requests, and finds out which answer each gets.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{HeaderMap, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::answer::{Answer, Script, Segment};
use crate::api::Job;
use crate::ask::{Ask, Delivery};
use crate::fault::{self, Fault};
use crate::flush::{Flushes, Socket};
use crate::models;
use crate::paced::{Cut, Paced};
use crate::reply::Reply;
use crate::route::{Route, Target, has_key, route};
use crate::store::{Open, Received, Store};
use crate::{token, words};

const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Serves until it is dropped; the connections end with it.
pub async fn serve(listener: TcpListener, store: Arc<Store>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, store.clone()));
                }
                // No more files, or a client that is gone: others may still come.
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }
}

async fn connection(stream: TcpStream, store: Arc<Store>) {
    let _ = stream.set_nodelay(true);
    let flushes = Arc::new(Flushes::default());
    let socket = TokioIo::new(Socket::new(stream, flushes.clone()));
    let service = service_fn(|request| handle(request, store.clone(), flushes.clone()));
    // A client that goes, or a script that cuts, is no error of ours.
    let _ = http1::Builder::new().serve_connection(socket, service).await;
}

/// An error ends the connection without an answer.
async fn handle(
    request: Request<Incoming>,
    store: Arc<Store>,
    flushes: Arc<Flushes>,
) -> Result<Response<Paced>, Cut> {
    let (head, body) = request.into_parts();
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let route = route(&head.method, path, query, &head.headers);
    let body = match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let answer = plain_error(413, &format!("a body has at most {REQUEST_BYTES_MAX} bytes"));
            return response(answer, flushes, None);
        }
    };
    if route == Route::Control {
        return response(control(&head.method, path, &body, &store), flushes, None);
    }
    let n = store.record(received(&head, body.clone()));
    let answer = match route {
        Route::Model(target) => {
            let open = store.open();
            return model(&target, &head, &body, n, &store, (flushes, open)).await;
        }
        Route::Models(api) if has_key(api, &head.headers, query) => {
            Answer::json(200, &models::list(api))
        }
        Route::Models(api) => Fault::of_status(api, 401).answer(api, n),
        Route::Token => token::answer(&body, &store),
        Route::Nothing | Route::Control => {
            plain_error(404, &format!("nothing answers {} {path}", head.method))
        }
    };
    response(answer, flushes, None)
}

async fn model(
    target: &Target,
    head: &Parts,
    body: &Bytes,
    n: u64,
    store: &Store,
    (flushes, open): (Arc<Flushes>, Open),
) -> Result<Response<Paced>, Cut> {
    let api = target.api;
    if !has_key(api, &head.headers, head.uri.query().unwrap_or_default()) {
        return response(Fault::of_status(api, 401).answer(api, n), flushes, Some(open));
    }
    let reply = Ask::read(target, body).and_then(|ask| {
        let reply = match store.next_reply() {
            Some(reply) => reply,
            None => Arc::new(words::reply(&ask)?),
        };
        Ok((ask, reply))
    });
    let (ask, reply) = match reply {
        Ok(found) => found,
        Err(message) => {
            let fault = Fault { message, ..Fault::of_status(api, 400) };
            return response(fault.answer(api, n), flushes, Some(open));
        }
    };
    if reply.disconnect {
        open.ended();
        return Err(Cut);
    }
    if reply.hang {
        // Dropped, and so counted as aborted, when the client goes.
        return std::future::pending().await;
    }
    response(reply_answer(&ask, &reply, n), flushes, Some(open))
}

fn reply_answer(ask: &Ask, reply: &Reply, n: u64) -> Answer {
    let http = reply.http.as_ref();
    let status = http.and_then(|http| http.status).unwrap_or(200);
    let mut answer = if let Some(body) = http.and_then(|http| http.body.as_ref()) {
        match body {
            Value::String(text) => Answer::new(status, "text/plain", Script::whole(text.clone())),
            value => Answer::json(status, value),
        }
    } else if let Some(bytes) = reply.raw_body() {
        raw(ask, bytes, reply.raw_times.unwrap_or(1))
    } else if status >= 300 {
        fault::http(ask.api, status, reply, n)
    } else {
        Job::new(ask, reply, n).answer()
    };
    if status != 200 {
        answer.status = status;
    }
    answer.told(reply)
}

/// A body as it is; only its length is told to those who want it whole.
fn raw(ask: &Ask, bytes: Bytes, times: u64) -> Answer {
    let whole_bytes = (bytes.len() as u64).saturating_mul(times);
    let (content_type, length) = match ask.delivery {
        Delivery::Events => ("text/event-stream; charset=utf-8", None),
        Delivery::Whole | Delivery::Array => ("application/json", Some(whole_bytes)),
    };
    let segments = vec![Segment::Bytes { bytes, times }];
    Answer::new(200, content_type, Script { segments, length, ..Script::default() })
}

fn control(method: &Method, path: &str, body: &[u8], store: &Store) -> Answer {
    let done = || Answer::json(200, &store.state());
    match (method, path) {
        (&Method::POST, "/_script") => match store.append(body) {
            Ok(()) => done(),
            Err(problem) => plain_error(400, &problem),
        },
        (&Method::DELETE, "/_script") => {
            store.clear_queue();
            done()
        }
        (&Method::GET, "/_requests") => Answer::json(200, &Value::Array(store.requests())),
        (&Method::DELETE, "/_requests") => {
            store.clear_requests();
            done()
        }
        (&Method::GET, "/_state") => done(),
        _ => {
            let known = "POST or DELETE /_script, GET or DELETE /_requests, GET /_state";
            plain_error(404, &format!("nothing answers {method} {path}; there are {known}"))
        }
    }
}

fn plain_error(status: u16, problem: &str) -> Answer {
    Answer::json(status, &json!({"error": {"message": format!("fake-model: {problem}")}}))
}

fn received(head: &Parts, body: Bytes) -> Received {
    Received {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: header_texts(&head.headers),
        body,
    }
}

/// A header that comes twice has both values.
fn header_texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        texts
            .entry(name.to_string())
            .and_modify(|text| *text = format!("{text}, {value}"))
            .or_insert_with(|| value.into_owned());
    }
    texts
}

fn response(
    answer: Answer,
    flushes: Arc<Flushes>,
    open: Option<Open>,
) -> Result<Response<Paced>, Cut> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers: HeaderMap = answer.headers.iter().cloned().collect();
    let mut response = Response::new(Paced::new(answer, flushes, open));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Binds to loopback; nobody else can reach it.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).await
}
